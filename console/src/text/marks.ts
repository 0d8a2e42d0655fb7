/**
 * Words of users, as they may be shown: characters that turn the direction of a line, hide, or control a terminal become visible
 * marks, so that a name cannot pretend to be another one.
 */
export interface Segment {
  readonly text: string
  readonly isMark: boolean
}

const NAMED: Readonly<Record<number, string>> = {
  173: 'SHY',
  1564: 'ALM',
  6158: 'MVS',
  8203: 'ZWSP',
  8206: 'LRM',
  8207: 'RLM',
  8232: 'LS',
  8233: 'PS',
  8234: 'LRE',
  8235: 'RLE',
  8236: 'PDF',
  8237: 'LRO',
  8238: 'RLO',
  8288: 'WJ',
  8294: 'LRI',
  8295: 'RLI',
  8296: 'FSI',
  8297: 'PDI',
  65279: 'BOM',
}

// Joiners (200C, 200D) stay: emoji and several scripts need them.
const UNSEEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu

/** `isBlock`: line breaks and tabs are layout there and stay. */
export function toSegments(text: string, { isBlock = false }: { readonly isBlock?: boolean } = {}): readonly Segment[] {
  const segments: Segment[] = []
  let from = 0
  for (const match of text.matchAll(UNSEEN)) {
    const [found] = match
    if (isBlock && (found === '\n' || found === '\t' || found === '\r')) continue
    if (match.index > from) segments.push({ text: text.slice(from, match.index), isMark: false })
    segments.push({ text: markOf(found), isMark: true })
    from = match.index + found.length
  }
  if (from < text.length) segments.push({ text: text.slice(from), isMark: false })
  return segments
}

/** For places that take plain text alone: titles, labels, options. */
export function toMarkedText(text: string): string {
  return toSegments(text)
    .map((segment) => segment.text)
    .join('')
}

function markOf(character: string): string {
  const code = character.codePointAt(0) ?? 0
  if (code === 0x0a) return '↵'
  if (code === 0x09) return '⇥'
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  if (code === 0x7f) return '␡'
  return `⟨${NAMED[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`}⟩`
}
