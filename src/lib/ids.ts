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

export function createUuidV7(now: () => number): NewId {
  let pool = randomBytes(POOL_BYTES)
  let offset = 0
  return () => {
    if (offset + 10 > POOL_BYTES) {
      pool = randomBytes(POOL_BYTES)
      offset = 0
    }
    const millis = now().toString(16).padStart(12, '0')
    const random = pool.toString('hex', offset, offset + 10)
    const variant = ((pool[offset + 9] & 0x3f) | 0x80).toString(16)
    offset += 10
    return `${millis.slice(0, 8)}-${millis.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(3, 5)}-${random.slice(5, 17)}`
  }
}
