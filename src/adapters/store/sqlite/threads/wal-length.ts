/**
 * How long the WAL is, and what the writer does about it. A checkpoint of a long WAL takes tens of milliseconds, so another
 * thread runs it while writes go on; the writer itself copies only the last few pages. After that SQLite starts the WAL over
 * from its beginning.
 */
import type { DatabaseSync } from 'node:sqlite'

interface WalLength {
  /** To be called between batches. True when the other thread should run a checkpoint. */
  limit(): boolean
  /** Runs a checkpoint of all that is left. To be called when nobody has written for a moment, so that it delays no one. */
  checkpoint(): void
}

const LOOK_EVERY_BATCHES = 4
/** Pages that are not in the database yet, from which on they should be copied: 16 MiB. */
const LONG_PAGES = 4_096
/** From here on the WAL should start over, which it does at the first write after its last page was copied. */
const RESTART_FROM_PAGES = 8_192
/** The share of pages that is left once the other thread has copied the rest. */
const NEARLY_NONE = 1 / 8
/** The other thread does not keep up, or is gone. */
const NEGLECTED_PAGES = 24_576

export function createWalLength(database: DatabaseSync): WalLength {
  const look = database.prepare('PRAGMA wal_checkpoint(NOOP)')
  const runCheckpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  let batches = 0

  function measure(): { readonly pages: number; readonly left: number } {
    const { log: pages, checkpointed } = look.get() as { log: number; checkpointed: number }
    return { pages, left: pages - checkpointed }
  }

  function checkpoint(): void {
    try {
      runCheckpoint.get()
    } catch {
      // The WAL keeps everything; the next checkpoint tries again.
    }
  }

  return {
    limit() {
      batches += 1
      if (batches % LOOK_EVERY_BATCHES !== 0) return false
      const { pages, left } = measure()
      const isNearlyCopied = pages > RESTART_FROM_PAGES && left < pages * NEARLY_NONE
      if (!isNearlyCopied && left <= NEGLECTED_PAGES) return left > LONG_PAGES
      checkpoint()
      return false
    },
    checkpoint() {
      if (measure().left > 0) checkpoint()
    },
  }
}
