/**
 * Looks over a JSON text before it is parsed. Parsing happens in one go on the thread that serves everybody, and what it
 * costs depends on the number of values and on long numbers far more than on the bytes: a text within its size limit could
 * hold the service up for seconds. It sees brackets, commas and digits outside strings only; a malformed text is left to
 * the parser.
 */
import {
  BACKSLASH,
  CLOSING_BRACE,
  CLOSING_BRACKET,
  COMMA,
  OPENING_BRACE,
  OPENING_BRACKET,
  QUOTE,
} from '../../../../lib/json/json-characters.ts'

interface JsonShapeLimits {
  readonly maxDepth: number
  /** Members and elements at every level together, give or take one per bracket. */
  readonly maxValues: number
  /** Digits of all numbers that are longer than any seed, together: reading one takes time quadratic in its length. */
  readonly maxLongDigits: number
}

type JsonShapeFault = 'too_deep' | 'too_many_values' | 'too_many_digits'

// As many digits as 2^64 - 1 has.
const SEED_DIGITS = 20

const ZERO = 0x30
const NINE = 0x39

export function findShapeFault(text: Buffer, limits: JsonShapeLimits): JsonShapeFault | null {
  const { maxDepth, maxValues, maxLongDigits } = limits
  let depth = 0
  let values = 0
  let longDigits = 0
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]
    if (byte === QUOTE) at = endOfString(text, at + 1)
    else if (byte === COMMA) values++
    else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
      depth++
      values++
      if (depth > maxDepth) return 'too_deep'
    } else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) depth--
    else if (byte >= ZERO && byte <= NINE) {
      const end = endOfDigits(text, at + 1)
      if (end - at > SEED_DIGITS) longDigits += end - at
      if (longDigits > maxLongDigits) return 'too_many_digits'
      at = end - 1
    }
    if (values > maxValues) return 'too_many_values'
  }
  return null
}

/** The index of the closing quote, or the end of the text. */
function endOfString(text: Buffer, from: number): number {
  let at = from
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1
  return at
}

function endOfDigits(text: Buffer, from: number): number {
  let at = from
  while (at < text.length && text[at] >= ZERO && text[at] <= NINE) at++
  return at
}
