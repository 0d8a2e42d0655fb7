/**
 * Cursors of the model list: opaque, signed, good for one walk. A cursor names the last id of its page, so that a catalogue
 * that changes meanwhile repeats nothing; one that we did not make, or made long ago, is refused.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { RouterError } from '../../domain/models/router-error.ts'
import type { Clock } from '../../lib/clock.ts'

export interface ListCursors {
  encode(lastId: string): string
  /** Throws malformed. */
  read(cursor: string): string
}

const PATTERN = /^[A-Za-z0-9._~+/=-]{1,512}$/
const MAC_BYTES = 16
const LIFE_MS = 24 * 60 * 60 * 1000

export function createListCursors(secret: Uint8Array, clock: Clock): ListCursors {
  const sign = (payload: Buffer) => createHmac('sha256', secret).update(payload).digest().subarray(0, MAC_BYTES)
  return {
    encode(lastId) {
      const payload = Buffer.from(JSON.stringify([clock.now().getTime(), lastId]))
      return Buffer.concat([sign(payload), payload]).toString('base64url')
    },
    read(cursor) {
      const bytes = PATTERN.test(cursor) ? Buffer.from(cursor, 'base64url') : Buffer.alloc(0)
      const [mac, payload] = [bytes.subarray(0, MAC_BYTES), bytes.subarray(MAC_BYTES)]
      if (mac.length !== MAC_BYTES || !timingSafeEqual(mac, sign(payload))) {
        throw new RouterError('malformed', 'cursor is not one that this service gave out; begin the list anew')
      }
      const [madeAt, lastId] = JSON.parse(payload.toString()) as [number, string]
      if (clock.now().getTime() - madeAt > LIFE_MS) {
        throw new RouterError('malformed', 'cursor has expired; begin the list anew')
      }
      return lastId
    },
  }
}
