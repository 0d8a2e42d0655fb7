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

// JavaScript's own search compares up to this many characters at each position of the text: still well under a second.
const SHORT_SEARCH = 32

/**
 * Where a text occurs next in another, from `start` on; -1: nowhere. Linear in both, by Knuth, Morris and Pratt: JavaScript's own
 * search takes hours for a long `find` that nearly occurs again and again, and nothing can stop it.
 */
function createSearch(find: string): (text: string, start: number) => number {
  if (find.length <= SHORT_SEARCH) return (text, start) => text.indexOf(find, start)
  const { length } = find
  /** Of each beginning of `find`, how long a shorter one is that it ends with. */
  const borders = new Int32Array(length)
  for (let at = 1, border = 0; at < length; at += 1) {
    const unit = find.charCodeAt(at)
    while (border > 0 && find.charCodeAt(border) !== unit) border = borders[border - 1]
    if (find.charCodeAt(border) === unit) border += 1
    borders[at] = border
  }
  return (text, start) => {
    let matched = 0
    for (let at = start; at < text.length; at += 1) {
      const unit = text.charCodeAt(at)
      while (matched > 0 && find.charCodeAt(matched) !== unit) matched = borders[matched - 1]
      if (find.charCodeAt(matched) === unit) matched += 1
      if (matched === length) return at - length + 1
    }
    return -1
  }
}

/** `find in text`. */
export function pyContains(text: string, find: string): boolean {
  return createSearch(find)(text, 0) !== -1
}

function pySplit(text: string, find: string): string[] {
  const search = createSearch(find)
  const parts: string[] = []
  let start = 0
  for (let at = search(text, 0); at !== -1; at = search(text, start)) {
    parts.push(text.slice(start, at))
    start = at + find.length
  }
  parts.push(text.slice(start))
  return parts
}

/** `text.replace(find, replacement)`: literal, every occurrence; an empty `find` stands between all characters. */
export function pyReplace(text: string, find: string, replacement: string): string {
  if (find === '') {
    const characters = Array.from(text)
    refuseLongText(text.length + (characters.length + 1) * replacement.length)
    return ['', ...characters, ''].join(replacement)
  }
  const parts = pySplit(text, find)
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
