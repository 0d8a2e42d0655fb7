/** The bytes of a base64 data URI, or of plain base64; null when it is neither. */
const DATA_URI = /^data:[a-z]+\/[a-z0-9.+-]+(?:;[a-z0-9=-]+)*;base64,/i
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

export function readDataUri(value: unknown): Buffer | null {
  if (typeof value !== 'string') return null
  const head = DATA_URI.exec(value)?.[0] ?? ''
  const text = value.slice(head.length)
  return BASE64.test(text) ? Buffer.from(text, 'base64') : null
}
