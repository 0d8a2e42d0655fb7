/** What a form holds, as text, to change what no field is for. */
import { useState } from 'preact/hooks'
import { JsonEditor } from '../components/json/json-editor.tsx'
import { indentJson } from '../text/indent-json.ts'

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
