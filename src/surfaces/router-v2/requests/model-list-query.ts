/**
 * `limit` and `cursor` of the model list. A limit is corrected, never refused, as long as it is a number. Cursors are opaque,
 * signed and good for one walk. A cursor names the last id of its page, so that a catalogue which changes meanwhile repeats
 * nothing; one that we did not make, or made long ago, is refused.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { RouterError } from '../../../domain/models/router-error.ts'
import { createCursorSeal } from '../../kit/cursor.ts'
import { readQuery } from '../../kit/request-url.ts'

interface ListQuery {
  readonly limit: number
  readonly cursor: string | null
}

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100
const WHOLE = /^-?\d+$/

export function readListQuery(url: string): ListQuery {
  const pairs = readQuery(url)
  if (pairs === null) throw new RouterError('malformed', 'the query cannot be read')
  const values = new Map(pairs)
  return { limit: readLimit(values.get('limit')), cursor: readCursor(values.get('cursor')) }
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT
  if (!WHOLE.test(text)) throw new RouterError('malformed', 'limit must be a whole number')
  const limit = Number(text)
  return limit <= 0 ? DEFAULT_LIMIT : Math.min(limit, MAX_LIMIT)
}

function readCursor(text: string | undefined): string | null {
  if (text === '') throw new RouterError('malformed', 'cursor is empty; leave it out to begin the list')
  return text ?? null
}

export interface ListCursors {
  encode(lastId: string): string
  /** Throws malformed. */
  read(cursor: string): string
}

const LIFE_MS = 24 * 60 * 60 * 1000

export function createListCursors(secret: Uint8Array, clock: Clock): ListCursors {
  // Another list's cursors are signed with the same secret: a cursor says what it belongs to.
  const { seal, open } = createCursorSeal(secret)
  return {
    encode: (lastId) => seal(JSON.stringify(['models', clock.now().getTime(), lastId])),
    read(cursor) {
      const content = open(cursor)
      const [list, madeAt, lastId] = content === null ? [] : (JSON.parse(content) as [string, number, string])
      if (list !== 'models' || madeAt === undefined || lastId === undefined) {
        throw new RouterError('malformed', 'cursor was not issued by this service; begin again at the first page')
      }
      if (clock.now().getTime() - madeAt > LIFE_MS) {
        throw new RouterError('malformed', 'cursor has expired; begin again at the first page')
      }
      return lastId
    },
  }
}
