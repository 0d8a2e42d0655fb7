/**
 * Page cursors: opaque to the caller, and only those that we gave out count. Each is signed as a whole and has exactly one
 * spelling, so that one which was cut, extended or changed anywhere is refused instead of leading to some other page.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { ServiceError } from '../../domain/errors.ts'

interface CursorSeal {
  seal(content: string): string
  /** null for a text that this seal did not make. */
  open(cursor: string): string | null
}

const MAX_LENGTH = 512
const MAC_BYTES = 16

/** `maxLength`: of the whole cursor; longer ones are not looked at. */
export function createCursorSeal(secret: Uint8Array, maxLength = MAX_LENGTH): CursorSeal {
  const sign = (content: Buffer) => createHmac('sha256', secret).update(content).digest().subarray(0, MAC_BYTES)
  return {
    seal(content) {
      const bytes = Buffer.from(content)
      return Buffer.concat([sign(bytes), bytes]).toString('base64url')
    },
    open(cursor) {
      if (cursor.length > maxLength) return null
      const bytes = Buffer.from(cursor, 'base64url')
      // Decoding ignores characters outside of the alphabet and surplus bits of the last one, so the spelling is checked.
      if (bytes.length < MAC_BYTES || bytes.toString('base64url') !== cursor) return null
      const content = bytes.subarray(MAC_BYTES)
      return timingSafeEqual(bytes.subarray(0, MAC_BYTES), sign(content)) ? content.toString() : null
    },
  }
}

interface CursorPosition {
  readonly createdAt: Date
  readonly id: string
}

/** Cursors of a list by time. `filters` is any text that is equal exactly when the filters of the list are. */
export interface TimeCursors {
  encode(position: CursorPosition, filters: string): string
  read(cursor: string, filters: string): CursorPosition
}

export function createTimeCursors(secret: Uint8Array): TimeCursors {
  const { seal, open } = createCursorSeal(secret)
  return {
    encode: ({ createdAt, id }, filters) => seal(JSON.stringify([digest(filters), createdAt.getTime(), id])),
    read(cursor, filters) {
      // One answer for both: a caller must not learn whether a cursor belongs to another account or is made up.
      const refusal = () =>
        new ServiceError(
          'invalid_cursor',
          'cursor is not one that this service gave out for this list; repeat the filters of its page, or begin anew',
        )
      const content = open(cursor)
      if (content === null) throw refusal()
      const [filtersDigest, createdAtMs, id] = JSON.parse(content) as [string, number, string]
      if (filtersDigest !== digest(filters)) throw refusal()
      return { createdAt: new Date(createdAtMs), id }
    },
  }
}

function digest(filters: string): string {
  return createHash('sha256').update(filters).digest('base64url').slice(0, 12)
}
