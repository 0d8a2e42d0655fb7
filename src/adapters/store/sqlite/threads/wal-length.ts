/**
 * How long the log is, and what the writer does about it. Moving a long log into the database takes tens of milliseconds, so
 * another thread does it while writes go on; the writer moves only the last few pages, after which the log begins anew.
 */
import type { DatabaseSync } from 'node:sqlite'

export interface LogLength {
  /** Between batches. True when somebody else should move the log. */
  tidy(): boolean
  /** When nobody has written for a moment, so that it delays no one. */
  tidyAll(): void
}

const LOOK_EVERY_BATCHES = 4
/** Pages that are not in the database yet, from which on they should be moved: 16 MiB. */
const MOVE_FROM_PAGES = 4_096
/** A log that should begin anew, which it does at the first write after its last page is moved. */
const LONG_LOG_PAGES = 8_192
/** What is left after somebody else has moved the rest. */
const FEW = 1 / 8
/** Nobody has moved it. */
const ENDLESS_LOG_PAGES = 24_576

export function createLogLength(database: DatabaseSync): LogLength {
  const look = database.prepare('PRAGMA wal_checkpoint(NOOP)')
  const checkpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  let batches = 0

  function measure(): { readonly pages: number; readonly left: number } {
    const { log, checkpointed } = look.get() as { log: number; checkpointed: number }
    return { pages: log, left: log - checkpointed }
  }

  function move(): void {
    try {
      checkpoint.get()
    } catch {
      // The log keeps everything; the next checkpoint tries again.
    }
  }

  return {
    tidy() {
      batches += 1
      if (batches % LOOK_EVERY_BATCHES !== 0) return false
      const { pages, left } = measure()
      const isNearlyMoved = pages > LONG_LOG_PAGES && left < pages * FEW
      if (!isNearlyMoved && left <= ENDLESS_LOG_PAGES) return left > MOVE_FROM_PAGES
      move()
      return false
    },
    tidyAll() {
      if (measure().left > 0) move()
    },
  }
}
