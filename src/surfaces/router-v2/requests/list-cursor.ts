/**
 * Cursors of the model list: opaque, signed, good for one walk. A cursor names the last id of its page, so that a catalogue
 * that changes meanwhile repeats nothing; one that we did not make, or made long ago, is refused.
 */

import type { Clock } from '../../../../lib/clock.ts'
import { RouterError } from '../../../domain/models/router-error.ts'
import { createCursorSeal } from '../../kit/cursor.ts'

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
        throw new RouterError('malformed', 'cursor is not one that this service gave out; begin the list anew')
      }
      if (clock.now().getTime() - madeAt > LIFE_MS) {
        throw new RouterError('malformed', 'cursor has expired; begin the list anew')
      }
      return lastId
    },
  }
}
