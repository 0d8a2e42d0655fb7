/** What a form holds, as text, to change what no field is for. */
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorState } from '@codemirror/state'
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef, useState } from 'preact/hooks'
import { indentJson } from '../../../lib/json/indent-json.ts'

interface JsonPaneProps {
  readonly label: string
  readonly text: string
  readonly onText: (text: string) => void
}

export function JsonPane({ label, text, onText }: JsonPaneProps) {
  const [draft, setDraft] = useState(() => indentJson(text))
  const [problem, setProblem] = useState<string | null>(null)
  function take(next: string): void {
    setDraft(next)
    try {
      JSON.parse(next)
      setProblem(null)
    } catch (error) {
      setProblem((error as Error).message)
    }
  }
  return (
    <div class="stack">
      <JsonEditor label={label} text={draft} onText={take} />
      {problem !== null && (
        <p class="failed-text" role="status">
          {problem}
        </p>
      )}
      <div class="row">
        <button type="button" class="button" disabled={problem !== null} onClick={() => onText(draft)}>
          Take these changes
        </button>
      </div>
    </div>
  )
}

interface JsonEditorProps {
  readonly label: string
  readonly text: string
  readonly onText: (text: string) => void
}

const COLOURS = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--text)', fontWeight: '600' },
  { tag: tags.string, color: 'var(--succeeded)' },
  { tag: tags.number, color: 'var(--running)' },
  { tag: [tags.bool, tags.null], color: 'var(--warning)' },
])

const LOOK = EditorView.theme({
  '&': { color: 'var(--text)', backgroundColor: 'var(--card)', fontSize: '13px', maxHeight: '60vh' },
  '.cm-gutters': { backgroundColor: 'var(--sunk)', color: 'var(--dim)', border: 'none' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--rule) !important' },
  '.cm-scroller': { fontFamily: 'var(--mono)', overflow: 'auto' },
})

/**
 * CodeMirror in a shadow root: there it makes its styles as constructed style sheets, which the page's policy lets be; in the document
 * it would write style elements, which it does not.
 */
function JsonEditor({ label, text, onText }: JsonEditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const listener = useRef(onText)
  listener.current = onText
  useEffect(() => {
    const element = host.current
    if (element === null) return
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' })
    const view = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: text,
        extensions: [
          ...[lineNumbers(), foldGutter(), history(), drawSelection(), bracketMatching()],
          ...[json(), syntaxHighlighting(COLOURS), LOOK, EditorView.lineWrapping],
          keymap.of([...defaultKeymap.filter(({ key }) => key !== 'Mod-Enter'), ...historyKeymap, ...foldKeymap]),
          EditorView.contentAttributes.of({ 'aria-label': label }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) listener.current(update.state.doc.toString())
          }),
        ],
      }),
    })
    // A part that scrolls must be reachable by keys.
    view.scrollDOM.tabIndex = 0
    return () => view.destroy()
  }, [])
  return <div ref={host} class="json-editor" />
}
