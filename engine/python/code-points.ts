/** Text as Python counts it: in code points, not in UTF-16 units. */

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
