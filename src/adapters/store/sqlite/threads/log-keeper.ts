/**
 * The thread that looks after the log while there is much to write: it syncs commits while the writer runs the next batch,
 * and moves the log into the database, so that nobody waits behind that. It sleeps until the writer rings.
 */
import { closeSync, fdatasyncSync, openSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { openCheckpointer } from '../connection.ts'
import { isAtLeast, KEEPER_CHECKPOINTS, KEEPER_READY, type LogWords, WORD } from './log-words.ts'

export interface KeeperData {
  readonly path: string
  readonly words: LogWords
}

const { path, words } = workerData as KeeperData
const log = openSync(`${path}-wal`, 'r+')
const database = openCheckpointer(path)
const checkpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')
let checkpointed = Atomics.load(words, WORD.checkpoint)

function syncWhatIsHandedOver(): boolean {
  const ticket = Atomics.load(words, WORD.handedOver)
  if (isAtLeast(Atomics.load(words, WORD.syncedByKeeper), ticket)) return false
  fdatasyncSync(log)
  Atomics.store(words, WORD.syncedByKeeper, ticket)
  parentPort?.postMessage(ticket)
  return true
}

function moveLogWhenAsked(): boolean {
  const asked = Atomics.load(words, WORD.checkpoint)
  if (asked === checkpointed) return false
  Atomics.store(words, WORD.keeper, KEEPER_CHECKPOINTS)
  // Whatever was handed over before the writer could know comes first; from here on the writer syncs by itself.
  syncWhatIsHandedOver()
  checkpointed = asked
  try {
    checkpoint.get()
  } catch {
    // The log keeps everything; the next checkpoint tries again.
  }
  Atomics.store(words, WORD.keeper, KEEPER_READY)
  return true
}

Atomics.store(words, WORD.syncedByKeeper, Atomics.load(words, WORD.handedOver))
Atomics.store(words, WORD.keeper, KEEPER_READY)
while (Atomics.load(words, WORD.stop) === 0) {
  const bell = Atomics.load(words, WORD.bell)
  const hasSynced = syncWhatIsHandedOver()
  const hasMoved = moveLogWhenAsked()
  if (!hasSynced && !hasMoved) Atomics.wait(words, WORD.bell, bell)
}
database.close()
closeSync(log)
