/**
 * The one thread that writes. Checkpoints move the log into the database: under load SQLite does this by itself once the log
 * is long; here it also happens as soon as nobody has written for a moment, when it delays no one.
 */
import { workerData } from 'node:worker_threads'
import { openWriter, type WriterOptions } from '../connection.ts'
import { applyMigrations, loadMigrations } from '../migrations.ts'
import { prepareWriteOperations, RELAXED_OPERATIONS } from '../operations/write-operations.ts'
import { createWriteBatch } from './run-batch.ts'
import { serveBatches, type ThreadBody } from './serve-batches.ts'

export interface WriterData extends WriterOptions {
  readonly path: string
  readonly migrationsDirectory: string
  readonly openedAt: Date
}

const IDLE_BEFORE_CHECKPOINT_MS = 250

function openWriterThread(data: WriterData): ThreadBody {
  const database = openWriter(data.path, data)
  applyMigrations(database, loadMigrations(data.migrationsDirectory), data.openedAt)
  const runBatch = createWriteBatch(database, prepareWriteOperations(database), {
    relaxed: RELAXED_OPERATIONS,
    synchronous: data.synchronous,
  })
  const checkpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  let changesAtCheckpoint = 0
  const totalChanges = database.prepare('SELECT total_changes() AS count')

  function checkpointWhenIdle(): void {
    const changes = Number(totalChanges.get()?.['count'])
    if (changes === changesAtCheckpoint) return
    changesAtCheckpoint = changes
    try {
      checkpoint.get()
    } catch {
      // The log keeps everything; the next checkpoint tries again.
    }
  }

  let timer: NodeJS.Timeout | null = null
  return {
    run(batch) {
      const answer = runBatch(batch)
      if (timer === null) timer = setTimeout(checkpointWhenIdle, IDLE_BEFORE_CHECKPOINT_MS)
      else timer.refresh()
      return answer
    },
    close() {
      if (timer !== null) clearTimeout(timer)
      database.close()
    },
  }
}

const data = workerData as WriterData
serveBatches(data.path, () => openWriterThread(data))
