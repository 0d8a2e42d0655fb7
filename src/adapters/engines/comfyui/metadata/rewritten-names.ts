/**
 * Finds names that were rewritten for the server in bytes, and replaces them by those of the submitted graph. ComfyUI writes the
 * graph it ran, as JSON, into the files it saves, so a name is looked for as a whole JSON string (or, for the folder of the
 * attempt, as its beginning), also in JSON inside a JSON string. Pure.
 */

export interface RewrittenNames {
  /** The attempt's folder within the server's output folder; prefixes of file names begin with it. */
  readonly folder: string
  /** Names on the server by the names in the graph. */
  readonly staged: ReadonlyMap<string, string>
  /** An input that was added to the graph for the server only; it is removed with its value. */
  readonly extraInput: string
}

/** `exact`: the text may get shorter or longer. `padded`: it keeps its length, with spaces where JSON allows them. */
type Fit = 'exact' | 'padded'

interface Match {
  readonly start: number
  readonly end: number
  readonly bytes: Buffer
}

/** The longest JSON string that is looked at. */
const MAX_STRING_BYTES = 65_536
/** How far before a name its match may begin: a comma, a space, the backslashes and the quote. */
export const LOOK_BEHIND_BYTES = 32
/** JSON in JSON in JSON is as deep as anybody goes. */
const MAX_BACKSLASHES = 7
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const SPACE = 0x20

type Judge = (bytes: Buffer, at: number) => Match | 'more' | null

interface Needle {
  readonly bytes: Buffer
  readonly judge: Judge
}

export class NameFinder {
  readonly #needles: readonly Needle[]
  readonly longestBytes: number

  constructor({ folder, staged, extraInput }: RewrittenNames, fit: Fit) {
    const fitted = (judge: Judge): Judge => (fit === 'exact' ? judge : (bytes, at) => pad(judge(bytes, at), bytes))
    const stagedNeedles = [...staged].map(([name, stagedName]) => {
      const needle = Buffer.from(escapeJson(stagedName))
      return { bytes: needle, judge: fitted((bytes, at) => judgeName(bytes, at, { needle, name })) }
    })
    const prefix = Buffer.from(`${folder}/`)
    const input = Buffer.from(extraInput)
    this.#needles = [
      { bytes: prefix, judge: fitted((bytes, at) => judgePrefix(bytes, at, prefix)) },
      { bytes: input, judge: fitted((bytes, at) => judgeInput(bytes, at, input)) },
      ...stagedNeedles,
    ]
    this.longestBytes = Math.max(...this.#needles.map(({ bytes }) => bytes.length))
  }

  /** The first match at or after `from`; a number: where a match may begin that needs more bytes to be decided. */
  next(bytes: Buffer, from: number, isEnd: boolean): Match | number | null {
    let at = from
    while (true) {
      const found = this.#find(bytes, at)
      if (found === null) return null
      const match = found.needle.judge(bytes, found.at)
      if (match === 'more' && !isEnd && bytes.length - found.at < MAX_STRING_BYTES) return found.at
      if (match !== null && match !== 'more') return match
      at = found.at + 1
    }
  }

  /** All of it at once. */
  restore(bytes: Buffer): Buffer {
    const parts: Buffer[] = []
    let done = 0
    for (let match = this.next(bytes, 0, true); match !== null && typeof match !== 'number'; ) {
      parts.push(bytes.subarray(done, match.start), match.bytes)
      done = match.end
      match = this.next(bytes, done, true)
    }
    return done === 0 ? bytes : Buffer.concat([...parts, bytes.subarray(done)])
  }

  #find(bytes: Buffer, from: number): { readonly at: number; readonly needle: Needle } | null {
    let first: { readonly at: number; readonly needle: Needle } | null = null
    for (const needle of this.#needles) {
      const at = bytes.indexOf(needle.bytes, from)
      if (at !== -1 && (first === null || at < first.at)) first = { at, needle }
    }
    return first
  }
}

/** How many backslashes stand before the quote that opens a string at `at`; null: none opens there. */
function openingAt(bytes: Buffer, at: number): number | null {
  if (bytes[at - 1] !== QUOTE) return null
  let count = 0
  while (count <= MAX_BACKSLASHES && bytes[at - 2 - count] === BACKSLASH) count++
  // One level deeper, every backslash and every quote gets a backslash: 0, 1, 3, 7.
  return (count & (count + 1)) === 0 && count <= MAX_BACKSLASHES ? count : null
}

/** Where the string ends (before its backslashes and quote); -1: not in these bytes. */
function closingOf(bytes: Buffer, from: number, backslashes: number): number {
  let quote = bytes.indexOf(QUOTE, from)
  while (quote !== -1) {
    let run = 0
    while (quote - 1 - run >= from && bytes[quote - 1 - run] === BACKSLASH) run++
    if (run % (2 * (backslashes + 1)) === backslashes) return quote - backslashes
    quote = bytes.indexOf(QUOTE, quote + 1)
  }
  return -1
}

function judgePrefix(bytes: Buffer, at: number, prefix: Buffer): Match | 'more' | null {
  const backslashes = openingAt(bytes, at)
  if (backslashes === null) return null
  const close = closingOf(bytes, at, backslashes)
  if (close === -1) return 'more'
  const end = close + backslashes + 1
  return { start: at, end, bytes: bytes.subarray(at + prefix.length, end) }
}

function judgeName(
  bytes: Buffer,
  at: number,
  { needle, name }: { needle: Buffer; name: string },
): Match | 'more' | null {
  const backslashes = openingAt(bytes, at)
  if (backslashes === null) return null
  const close = at + needle.length
  const end = close + backslashes + 1
  if (end > bytes.length) return 'more'
  if (closingOf(bytes, at, backslashes) !== close) return null
  let text = escapeJson(name)
  for (let level = 0; 2 ** (level + 1) - 1 <= backslashes; level++) text = text.replaceAll(/["\\]/g, '\\$&')
  return { start: at, end, bytes: Buffer.concat([Buffer.from(text), bytes.subarray(close, end)]) }
}

/** The input with its value, and the comma before it. */
function judgeInput(bytes: Buffer, at: number, input: Buffer): Match | 'more' | null {
  const backslashes = openingAt(bytes, at)
  if (backslashes === null) return null
  let from = skip(bytes, at + input.length + backslashes + 1, COLON)
  from += backslashes + 1
  if (from >= bytes.length) return 'more'
  if (closingOf(bytes, at, backslashes) !== at + input.length || openingAt(bytes, from) !== backslashes) return null
  const close = closingOf(bytes, from, backslashes)
  if (close === -1) return 'more'
  let start = at - 1 - backslashes
  while (bytes[start - 1] === SPACE) start--
  if (bytes[start - 1] === COMMA) start--
  return { start, end: close + backslashes + 1, bytes: Buffer.alloc(0) }
}

function skip(bytes: Buffer, from: number, byte: number): number {
  let at = from
  while (bytes[at] === byte || bytes[at] === SPACE) at++
  return at
}

/** A replacement that is longer than the original is not made. */
function pad(match: Match | 'more' | null, within: Buffer): Match | 'more' | null {
  if (match === null || match === 'more') return match
  const missing = match.end - match.start - match.bytes.length
  if (missing < 0) return null
  return missing === 0 && within.subarray(match.start, match.end).equals(match.bytes)
    ? null
    : { ...match, bytes: Buffer.concat([match.bytes, Buffer.alloc(missing, SPACE)]) }
}

/** As Python writes a text into JSON, without the quotes: nothing but ASCII. */
export function escapeJson(text: string): string {
  return JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
