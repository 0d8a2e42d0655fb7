/** Readers for closed sets, switches, lists, whole objects, and for the words that stand for "no limit" or "choose for me". */
import { readFileSync, statSync } from 'node:fs'
import { closestWord } from '../../../lib/text/closest-word.ts'
import { ConfigError, positionIn, quote } from '../config-error.ts'

export function readChoice<const Choice extends string>(choices: readonly Choice[]): (text: string) => Choice {
  return function readOneOf(text) {
    const found = choices.find((choice) => choice === text)
    if (found !== undefined) return found
    throw new Error(`is not one of ${choices.join(', ')}${suggest(text, choices)}`)
  }
}

const readOnOrOff = readChoice(['on', 'off'])

/** For settings that are on unless switched off: their flag takes a word. */
export function readOnOff(text: string): boolean {
  return readOnOrOff(text) === 'on'
}

const SWITCH: Readonly<Record<string, boolean>> = {
  true: true,
  false: false,
  on: true,
  off: false,
  yes: true,
  no: false,
  '1': true,
  '0': false,
}

export function readSwitch(text: string): boolean {
  const value = Object.hasOwn(SWITCH, text) ? SWITCH[text] : undefined
  if (value === undefined) throw new Error('is neither true nor false; give true or false')
  return value
}

/** The word (`none`, `never`, `auto`) becomes `value`; anything else goes to `read`. */
export function readWordOr<const Value, Other>(
  word: string,
  value: Value,
  read: (text: string) => Other,
): (text: string) => Value | Other {
  return function readWordOrOther(text) {
    if (text === word) return value
    try {
      return read(text)
    } catch (error) {
      throw new Error(`${(error as Error).message}, or ${word}`)
    }
  }
}

// Lists are searched on many requests, so their length is bounded.
const MAX_ITEMS = 100

/** Items separated by commas; blanks around them and empty items are ignored. */
export function readList<Item>(readItem: (text: string) => Item): (text: string) => readonly Item[] {
  return function readItems(text) {
    const items = text.split(',').map((item) => item.trim())
    const filled = items.filter((item) => item !== '')
    if (filled.length > MAX_ITEMS) throw new Error(`has ${filled.length} items; at most ${MAX_ITEMS} are allowed`)
    return filled.map(readItem)
  }
}

/** A path, relative or absolute; made absolute later, where its base is known. */
export function readPath(text: string): string {
  if (text === '' || text.includes('\0')) throw new Error('is not a path; give a folder, for example .atelier')
  return text
}

/** `; did you mean "port"?`, or nothing when no known name is near. Ends a message. */
export function suggest(word: string, known: Iterable<string>): string {
  const meant = closestWord(word, known)
  return meant === null ? '' : `; did you mean "${meant}"?`
}

export type Block =
  | { readonly kind: 'inline'; readonly value: object }
  | { readonly kind: 'file'; readonly path: string }

// Room for ten thousand node names in each of a hundred tiers.
const MAX_FILE_BYTES = 64 * 2 ** 20

export function readBlock(text: string): Block {
  if (!text.trimStart().startsWith('{')) return { kind: 'file', path: readPath(text) }
  try {
    return { kind: 'inline', value: JSON.parse(text) as object }
  } catch {
    throw new Error('is not valid JSON; give an object or the name of a JSON file')
  }
}

/** The object itself; its content is checked by the code that uses it. */
export function loadBlock<Name extends string>(
  name: Name,
  block: Block | null,
  toAbsolute: (name: Name, path: string) => string,
): object | null {
  if (block === null) return null
  if (block.kind === 'inline') return block.value
  const path = toAbsolute(name, block.path)
  const value = parse(readText(path, name), path, name)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new ConfigError(`${name}: the file ${quote(path)} must hold one JSON object`)
}

function readText(path: string, name: string): string {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat?.isFile() === true && stat.size <= MAX_FILE_BYTES) return readFileSync(path, 'utf8')
  throw new ConfigError(`${name}: there is no JSON file ${quote(path)}; create it or correct the path`)
}

function parse(text: string, path: string, name: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ConfigError(`${name}: the file ${quote(path)} is not valid JSON${positionIn(error)}`)
  }
}
