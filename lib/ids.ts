/**
 * Identifiers. Time-ordered ids are UUIDv7, ids derived from a text are UUIDv8, all others UUIDv4. An id is a canonical lower-case
 * UUID; anything else can be refused before a store is asked.
 */
import { hash, randomBytes, randomUUID } from 'node:crypto'

export type NewId = () => string

const CANONICAL_UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export function isUuid(text: string): boolean {
  return text.length === 36 && CANONICAL_UUID.test(text)
}

export const newUuidV4: NewId = () => randomUUID()

// Random bytes are drawn for many ids at once: one draw per id is expensive.
const POOL_BYTES = 4096
// Behind the counter: the variant with two bits of its own, and 60 random bits.
const RANDOM_DIGITS = 16
const COUNTER_MAX = 0xfff
// The upper half of the counter's range is left for further ids of the same millisecond.
const COUNTER_START_MASK = 0x7ff
const COUNTERS = Array.from({ length: COUNTER_MAX + 1 }, (_, count) => count.toString(16).padStart(3, '0'))
const VARIANTS = '89ab'

/**
 * Ids of one generator always rise, also within a millisecond and when the clock is set back: the bits after the time are a
 * counter (RFC 9562, 6.2, method 1), and when the counter of a millisecond is used up, the next millisecond is used.
 */
export function createUuidV7(now: () => number): NewId {
  let digits = ''
  let offset = 0
  let lastMs = 0
  let counter = 0
  // The same for all ids of one millisecond.
  let head = ''

  function draw(): string {
    if (offset + RANDOM_DIGITS > digits.length) {
      digits = randomBytes(POOL_BYTES).toString('hex')
      offset = 0
    }
    const drawn = digits.slice(offset, offset + RANDOM_DIGITS)
    offset += RANDOM_DIGITS
    return drawn
  }

  return () => {
    const random = draw()
    const nowMs = now()
    if (nowMs > lastMs || counter === COUNTER_MAX) {
      lastMs = Math.max(nowMs, lastMs + 1)
      counter = Number.parseInt(draw().slice(0, 3), 16) & COUNTER_START_MASK
      const millis = lastMs.toString(16).padStart(12, '0')
      head = `${millis.slice(0, 8)}-${millis.slice(8)}-7`
    } else counter++
    const variant = VARIANTS[random.charCodeAt(0) & 3]
    return `${head}${COUNTERS[counter]}-${variant}${random.slice(1, 4)}-${random.slice(4)}`
  }
}

/** The UUID of a text, derived by SHA-256 (version 8: RFC 9562, 5.8), so that no other text with the same UUID can be found. */
export function uuidFromText(text: string): string {
  const bytes = hash('sha256', text, 'buffer').subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
