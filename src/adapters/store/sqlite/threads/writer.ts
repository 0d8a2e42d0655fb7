/**
 * The one thread that writes. What must survive a power cut is synced before it is answered; see log-sync.ts for how, and
 * for when the log is moved into the database.
 */
import { workerData } from 'node:worker_threads'
import { openWriter, type WriterOptions } from '../connection.ts'
import { applyMigrations, loadMigrations } from '../migrations.ts'
import { prepareWriteOperations, RELAXED_OPERATIONS } from '../operations/write-operations.ts'
import { type LogSync, openLogSync } from './log-sync.ts'
import type { LogWords } from './log-words.ts'
import type { Answer, Batch } from './protocol.ts'
import { createWriteBatch, type RunBatch } from './run-batch.ts'
import { serveBatches, type ThreadBody } from './serve-batches.ts'

export interface WriterData extends WriterOptions {
  readonly path: string
  readonly migrationsDirectory: string
  readonly openedAt: Date
  readonly words: LogWords
}

const IDLE_BEFORE_TIDYING_MS = 250

function openWriterThread(data: WriterData): ThreadBody {
  const database = openWriter(data.path, data)
  applyMigrations(database, loadMigrations(data.migrationsDirectory), data.openedAt)
  const runBatch = createWriteBatch(database, prepareWriteOperations(database))
  const log = openLogSync(database, data.path, data.words)
  let timer: NodeJS.Timeout | null = null
  return {
    run(batch) {
      const answer = runDurably(runBatch, batch, data.synchronous === 'FULL' ? log : null)
      if (timer === null) timer = setTimeout(() => log.tidyAll(), IDLE_BEFORE_TIDYING_MS)
      else timer.refresh()
      return answer
    },
    rest: () => log.tidy(),
    close() {
      if (timer !== null) clearTimeout(timer)
      log.close()
      database.close()
    },
  }
}

/** What nobody is told of needs no sync of its own: it is in the log, where the next one carries it along. */
function runDurably(runBatch: RunBatch, batch: Batch, log: LogSync | null): Answer {
  const needsSync = log !== null && !batch[0].every((name) => RELAXED_OPERATIONS.has(name))
  if (needsSync) log.begin()
  const [results, failures] = runBatch(batch)
  if (!needsSync) return [results, failures, null]
  return [results, failures, log.end(batch[0].length)]
}

const data = workerData as WriterData
serveBatches(data.path, () => openWriterThread(data))
