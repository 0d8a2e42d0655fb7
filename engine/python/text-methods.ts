/** Methods of text as Python has them; it counts in code points, not in UTF-16 units. */

import { pythonStrip } from '../../lib/python/text.ts'
import { refuseLongText } from './text-limit.ts'

/** `len(text)`. */
export function pyLength(text: string): number {
  let length = text.length
  for (let at = 0; at < text.length - 1; at += 1) {
    if (isHighSurrogate(text.charCodeAt(at)) && isLowSurrogate(text.charCodeAt(at + 1))) {
      length -= 1
      at += 1
    }
  }
  return length
}

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdbff
const isLowSurrogate = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff

function hasSurrogates(text: string): boolean {
  return /[\ud800-\udfff]/.test(text)
}

/** `text[start:end]` with ints of any size; negative ones count from the end. */
export function pySlice(text: string, start: number | bigint, end: number | bigint): string {
  // Without surrogates units are code points, and JavaScript's slice follows the same rules.
  if (!hasSurrogates(text)) return text.slice(Number(start), Number(end))
  return Array.from(text).slice(Number(start), Number(end)).join('')
}

/** `text[:count]`. */
export function pyHead(text: string, count: number): string {
  return text.length <= count ? text : pySlice(text, 0, count)
}

/** `text.replace(find, replacement)`: literal, every occurrence; an empty `find` stands between all characters. */
export function pyReplace(text: string, find: string, replacement: string): string {
  if (find === '') {
    const characters = Array.from(text)
    refuseLongText(text.length + (characters.length + 1) * replacement.length)
    return ['', ...characters, ''].join(replacement)
  }
  const parts = text.split(find)
  refuseLongText(text.length + (parts.length - 1) * (replacement.length - find.length))
  return parts.join(replacement)
}

// `pythonStrip` knows Python's set of spaces and strips both sides; a sentinel protects the side that stays.
const SENTINEL = '|'

/** `text.lstrip()`. */
export function pyStripLeft(text: string): string {
  return pythonStrip(text + SENTINEL).slice(0, -1)
}

/** `text.rstrip()`. */
export function pyStripRight(text: string): string {
  return pythonStrip(SENTINEL + text).slice(1)
}
