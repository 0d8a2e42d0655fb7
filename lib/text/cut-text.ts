/** Cuts texts to a number of UTF-8 bytes without splitting a character. A text that fits is returned unchanged. */

/** The beginning of the text. */
export function keepHead(text: string, maxBytes: number): string {
  // A UTF-16 unit takes at least one byte, so cutting by units first avoids encoding a huge text.
  const candidate = text.length > maxBytes ? text.slice(0, maxBytes) : text
  const bytes = Buffer.from(candidate)
  if (bytes.length <= maxBytes) return candidate
  let end = maxBytes
  while (end > 0 && isContinuation(bytes[end])) end--
  return bytes.toString('utf8', 0, end)
}

/** The end of the text. */
export function keepTail(text: string, maxBytes: number): string {
  const candidate = text.length > maxBytes ? text.slice(text.length - maxBytes) : text
  const bytes = Buffer.from(candidate)
  if (bytes.length <= maxBytes) return candidate
  let start = bytes.length - maxBytes
  while (start < bytes.length && isContinuation(bytes[start])) start++
  return bytes.toString('utf8', start)
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

/** Whether a text has at most this many characters, counted in code points as the API contracts do, not in UTF-16 units. */
export function hasAtMost(text: string, characters: number): boolean {
  if (text.length <= characters) return true
  if (text.length > 2 * characters) return false
  let count = 0
  for (const _ of text) if (++count > characters) return false
  return true
}
