/**
 * The one thread that writes. SQLite copies its log (the WAL) into the database when that is long, inside of a commit; this thread does
 * so as soon as nobody has written for a moment, when it delays no one.
 */
import { workerData } from 'node:worker_threads'
import { loadMigrations } from '../../migration-files.ts'
import { applyMigrations } from '../database/migrations.ts'
import { openWriter, type WriterOptions } from '../database/sqlite-connections.ts'
import {
  ESSENTIAL_OPERATIONS,
  prepareWriteOperations,
  RELAXED_OPERATIONS,
  type WriteOperations,
} from '../operations/write-operations.ts'
import { openDamageControl, prepareCheckDamage } from './damage-control.ts'
import { openDiskReserve } from './disk-reserve.ts'
import { createWriteBatch } from './run-batch.ts'
import { serveBatches, type ThreadBody } from './serve-batches.ts'

export interface WriterData extends WriterOptions {
  readonly path: string
  readonly reserve: string
  readonly damageNote: string
  readonly migrationsDirectory: string
  readonly openedAt: Date
}

export type WriterOperations = WriteOperations & { checkDamage(input: null): void }

const IDLE_BEFORE_CHECKPOINT_MS = 250
const RESTORE_EVERY_MS = 5_000

function openWriterThread(data: WriterData): ThreadBody {
  const database = openWriter(data.path, data)
  let isRepaired = false
  const damage = openDamageControl({
    database,
    path: data.path,
    notePath: data.damageNote,
    onRepaired() {
      isRepaired = true
    },
  })
  applyMigrations(database, loadMigrations(data.migrationsDirectory), data.openedAt)
  const reserve = openDiskReserve({ path: data.reserve, database, maxPages: data.maxPages })
  const restoring = setInterval(() => reserve.restore(), RESTORE_EVERY_MS)
  const runBatch = createWriteBatch(
    database,
    { ...prepareWriteOperations(database), checkDamage: prepareCheckDamage(database) },
    {
      relaxed: RELAXED_OPERATIONS,
      essential: ESSENTIAL_OPERATIONS,
      reserve,
      repair: () => damage.repair(),
      synchronous: data.synchronous,
    },
  )
  const checkpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  const copyLog = () => {
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
      if (timer === null) timer = setTimeout(copyLog, IDLE_BEFORE_CHECKPOINT_MS)
      else timer.refresh()
      return answer
    },
    wasRepaired() {
      const wasRepaired = isRepaired
      isRepaired = false
      return wasRepaired
    },
    rest: () => database.exec('PRAGMA shrink_memory'),
    close() {
      clearInterval(restoring)
      if (timer !== null) clearTimeout(timer)
      database.close()
    },
  }
}

const data = workerData as WriterData
serveBatches(data.path, () => openWriterThread(data))
