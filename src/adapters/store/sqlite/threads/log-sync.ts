/**
 * How the writer makes its commits durable. With little to do it syncs by itself, which is the shortest way to an answer; a
 * batch of several is handed over to the keeper, so that the next one runs while the disk works.
 */
import { closeSync, fdatasyncSync, openSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { HAND_OVER_FROM, KEEPER_ABSENT, KEEPER_READY, type LogWords, ring, WORD } from './log-words.ts'

export interface LogSync {
  /** Before the commit: readers may see it from then on. */
  begin(): void
  /** After the commit: the ticket to wait for, or null when it is on disk. */
  end(operations: number): number | null
  /** Between batches: looks now and then whether the log has grown. */
  tidy(): void
  /** When nobody has written for a moment, so that it delays no one. */
  tidyAll(): void
  close(): void
}

const LOOK_EVERY_BATCHES = 4
/** Pages of the log that are not in the database yet, from which on the keeper moves them. */
const MOVE_FROM_PAGES = 4_096
/**
 * A log that should begin anew. It does so at the next write once its last pages are moved, which only the writer can do: as
 * soon as the keeper has left it few of them, or however many there are when there is no keeper.
 */
const LONG_LOG_PAGES = 8_192
const FEW = 1 / 8

export function openLogSync(database: DatabaseSync, path: string, words: LogWords): LogSync {
  const log = openSync(`${path}-wal`, 'r+')
  const look = database.prepare('PRAGMA wal_checkpoint(NOOP)')
  const checkpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  let ticket = Atomics.load(words, WORD.committing)
  let batches = 0

  function handOver(): boolean {
    if (Atomics.load(words, WORD.keeper) !== KEEPER_READY) return false
    Atomics.store(words, WORD.handedOver, ticket)
    // The keeper may have turned to the database in between: either it has seen the ticket, or we see that it is busy.
    if (Atomics.load(words, WORD.keeper) !== KEEPER_READY) return false
    ring(words)
    return true
  }

  function measure(): { readonly pages: number; readonly moved: number } {
    const { log: pages, checkpointed: moved } = look.get() as { log: number; checkpointed: number }
    return { pages, moved }
  }

  function move(): void {
    try {
      checkpoint.get()
    } catch {
      // The log keeps everything; the next checkpoint tries again.
    }
  }

  function askForCheckpoint(): void {
    Atomics.add(words, WORD.checkpoint, 1)
    ring(words)
  }

  return {
    begin() {
      ticket = (ticket + 1) | 0
      Atomics.store(words, WORD.committing, ticket)
    },
    end(operations) {
      if (operations >= HAND_OVER_FROM && handOver()) return ticket
      fdatasyncSync(log)
      Atomics.store(words, WORD.syncedByWriter, ticket)
      return null
    },
    tidy() {
      batches += 1
      if (batches % LOOK_EVERY_BATCHES !== 0) return
      const { pages, moved } = measure()
      const left = pages - moved
      const keeper = Atomics.load(words, WORD.keeper)
      if (pages > LONG_LOG_PAGES && (left < pages * FEW || keeper === KEEPER_ABSENT)) move()
      else if (left > MOVE_FROM_PAGES && keeper === KEEPER_READY) askForCheckpoint()
    },
    tidyAll() {
      const { pages, moved } = measure()
      if (moved < pages) move()
    },
    close: () => closeSync(log),
  }
}
