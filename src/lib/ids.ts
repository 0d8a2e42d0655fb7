/**
 * Identifiers. Job ids are UUIDv7, so that they sort by creation; everything else is UUIDv4.
 * An id that is not a canonical lower-case UUID is refused before any store is asked.
 */
import { randomBytes, randomUUID } from 'node:crypto'

export type NewId = () => string

const CANONICAL_UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export function isUuid(text: string): boolean {
  return text.length === 36 && CANONICAL_UUID.test(text)
}

export const newUuidV4: NewId = () => randomUUID()

// One draw of the system's randomness serves many ids: a draw per id costs more than the whole rest of a submit's bookkeeping.
const POOL_BYTES = 4096
const RANDOM_BYTES = 10
const COUNTER_MAX = 0xfff
// The upper half of the counter's room is left for further ids of the same millisecond.
const COUNTER_START_MASK = 0x7ff

/**
 * Ids of one maker always rise, also within a millisecond and when the clock is set back: the bits behind the time count
 * (RFC 9562, 6.2, method 1), and a millisecond whose numbers are used up borrows from the next.
 */
export function createUuidV7(now: () => number): NewId {
  let pool = randomBytes(POOL_BYTES)
  let offset = 0
  let lastMs = 0
  let counter = 0
  return () => {
    if (offset + RANDOM_BYTES > POOL_BYTES) {
      pool = randomBytes(POOL_BYTES)
      offset = 0
    }
    const nowMs = now()
    if (nowMs > lastMs || counter === COUNTER_MAX) {
      lastMs = Math.max(nowMs, lastMs + 1)
      counter = pool.readUInt16BE(offset) & COUNTER_START_MASK
    } else counter++
    const millis = lastMs.toString(16).padStart(12, '0')
    const count = counter.toString(16).padStart(3, '0')
    const variant = ((pool[offset + 9] & 0x3f) | 0x80).toString(16)
    const random = pool.toString('hex', offset + 2, offset + 9)
    offset += RANDOM_BYTES
    return `${millis.slice(0, 8)}-${millis.slice(8)}-7${count}-${variant}${random.slice(0, 2)}-${random.slice(2)}`
  }
}
