/** Below a form: run it, what it will cost, the form as JSON, and whatever else the page offers. */
import type { ComponentChildren } from 'preact'
import { Icon } from '../components/icon.tsx'
import { CopyButton } from '../components/text.tsx'
import { useKeys } from '../keys/keys.ts'
import { BASE } from '../routes.ts'
import { session } from '../state/session.ts'

interface RunBarProps {
  /** On the button: `Run`, `Run 12 jobs`. */
  readonly word: string
  readonly isReady: boolean
  readonly isBusy: boolean
  readonly onRun: () => void
  /** Ends what is under way; left out: it cannot be ended from here. */
  readonly onStop?: (() => void) | undefined
  readonly isJson: boolean
  readonly onJson: (isJson: boolean) => void
  readonly price: string
  readonly children: ComponentChildren
}

export function RunBar(props: RunBarProps) {
  const { word, isReady, isBusy, onRun, onStop, isJson, onJson, price, children } = props
  useKeys({
    'mod+enter': () => {
      if (isReady && !isBusy) onRun()
      return true
    },
  })
  return (
    <div class="run-bar">
      <div class="run-deeds">
        <button type="button" class="button primary" disabled={isBusy || !isReady} onClick={onRun}>
          <Icon name="play" /> {isBusy ? 'Running…' : word} <kbd aria-hidden="true">⌘↵</kbd>
        </button>
        {isBusy && onStop !== undefined && (
          <button type="button" class="button" onClick={onStop}>
            Stop waiting
          </button>
        )}
        <span class="price" role="status">
          {price}
        </span>
      </div>
      <div class="run-more">
        <button type="button" class="button" aria-pressed={isJson} onClick={() => onJson(!isJson)}>
          {isJson ? 'Form' : 'JSON'}
        </button>
        {children}
      </div>
    </div>
  )
}

export interface ClientLines {
  readonly curl: string
  readonly SDK: string
  /** Left out: the command line does not do it. */
  readonly 'command line'?: string
}

interface CopyAsProps {
  readonly words: readonly (keyof ClientLines)[]
  /** Written when they are asked for: a workflow may be long. */
  readonly lines: () => ClientLines
}

/** What a form would send, as a program sends it. The key is a name, never its text. */
export function CopyAs({ words, lines }: CopyAsProps) {
  return (
    <div class="row">
      {words.map((word) => (
        <CopyButton key={word} text={() => lines()[word] ?? ''} label={`Copy for ${word}`} word={word} />
      ))}
    </div>
  )
}

export function serviceAddress(): string {
  return window.location.origin + BASE
}

export function needsKey(): boolean {
  return session.value?.needs_credential === true
}

/** `body` is JSON text; it stands between single quotes of a shell. */
export function curlLines(path: string, body: string): string {
  return [
    `curl -sf ${serviceAddress()}${path} \\`,
    ...(needsKey() ? ['  -H "Authorization: Bearer $ATELIER_KEY" \\'] : []),
    `  -H 'Content-Type: application/json' -d '${body.replaceAll("'", "'\\''")}'`,
  ].join('\n')
}
