/** Lines that programs printed: colour codes of terminals are dropped, addresses become links. Pure. */
export interface LogPiece {
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
