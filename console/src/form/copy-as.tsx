/** What a form would send, as a program sends it. The key is a name, never its text. */
import { BASE } from '../base.ts'
import { CopyButton } from '../components/copy-button.tsx'
import { session } from '../state/session.ts'

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
