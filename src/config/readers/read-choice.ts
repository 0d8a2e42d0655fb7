/** Readers for closed sets, switches, lists, and for the words that stand for "no limit" or "choose for me". */
import { closestWord } from '../../../lib/text/closest-word.ts'

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
