import type { LogLine } from '../api/job-detail.ts'

/** Lines that programs printed: colour codes of terminals are dropped, addresses become links. Pure. */
interface LogPiece {
  readonly text: string
  readonly href: string | null
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminal codes begin with one
const TERMINAL_CODE = /\u001b\[[0-9;?]*[A-Za-z]/g
const ADDRESS = /https?:\/\/[\w\-.~:/?#[\]@!$&()*+,;=%]+/g

export function withoutTerminalCodes(text: string): string {
  return text.replaceAll(TERMINAL_CODE, '')
}

export function toPieces(text: string): readonly LogPiece[] {
  const pieces: LogPiece[] = []
  let from = 0
  for (const match of text.matchAll(ADDRESS)) {
    const address = match[0].replace(/[.,;:!?)\]]+$/, '')
    if (match.index > from) pieces.push({ text: text.slice(from, match.index), href: null })
    pieces.push({ text: address, href: address })
    from = match.index + address.length
  }
  if (from < text.length) pieces.push({ text: text.slice(from), href: null })
  return pieces
}

/** What is shown of a long text: its end, from the beginning of a line on where there is one. Pure. */
export function toTail(text: string, { maxLines = 1000, maxChars = 131_072 } = {}): { text: string; isCut: boolean } {
  const whole = text.trimEnd()
  const lines = whole.slice(-maxChars).split('\n')
  // The first of them may have lost its beginning.
  const isTorn = whole.length > maxChars && lines.length > 1
  const end = lines
    .slice(isTorn ? 1 : 0)
    .slice(-maxLines)
    .join('\n')
  return { text: end, isCut: end.length < whole.length }
}

/** The service keeps no more of a log than this, and a tab must not either. */
const MAX_LINES = 100_000

/** Lines in the order of their numbers, each once, from pages and from the stream in whatever order they come. Pure. */
export function addLines(known: readonly LogLine[], more: readonly LogLine[]): readonly LogLine[] {
  if (more.length === 0) return known
  const last = known.at(-1)?.n ?? Number.NEGATIVE_INFINITY
  const isBehind = more.every((line, index) => line.n > (index === 0 ? last : more[index - 1].n))
  if (isBehind) return [...known, ...more].slice(-MAX_LINES)
  const byNumber = new Map([...known, ...more].map((line) => [line.n, line]))
  return [...byNumber.values()].toSorted((a, b) => a.n - b.n).slice(-MAX_LINES)
}
