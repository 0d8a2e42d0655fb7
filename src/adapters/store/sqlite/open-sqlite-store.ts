/**
 * Opens a data directory: locks it, brings its schema up to date, starts the writer and the reader. The returned store is
 * ready; disposing it answers everything that was asked, closes the database and unlocks the directory.
 */

import { type Clock, systemClock } from '../../../../lib/clock.ts'
import { type Log, silentLog } from '../../../../lib/log.ts'
import type { OperatorStores, Store } from '../../../domain/store.ts'
import { loadMigrations } from '../migration-files.ts'
import { createSummaryStore } from '../search/summary-store.ts'
import type { OpenStore } from '../statements/operation.ts'
import { assetSteps, createAssetStore } from '../stores/asset-store.ts'
import { createRunRecordStore } from '../stores/run-record-store.ts'
import { createOperatorStores, createSharedStores } from '../stores/shared-stores.ts'
import { prepareDataDirectory, type StoreFiles } from './database/data-directory.ts'
import { type DirectoryLock, lockDirectory } from './database/directory-lock.ts'
import { MIGRATIONS_DIRECTORY } from './database/migrations.ts'
import type { Synchronous } from './database/sqlite-connections.ts'
import type { ReadOperations } from './operations/read-operations.ts'
import { limitStore } from './own/limit-store.ts'
import { poolDemands } from './own/pool-demands.ts'
import { recordReads } from './own/run-records.ts'
import { summarySteps } from './own/search-walks.ts'
import { submits } from './own/submits.ts'
import { openShared } from './shared-stores.ts'
import { createJobCancels, createJobStore } from './stores/sqlite-job-store.ts'
import { type StoreChannels, toAuditedChannels } from './stores/store-channels.ts'
import { type Channel, DamagedError, openChannel } from './threads/channel.ts'
import type { ReaderData } from './threads/reader-thread.ts'
import type { WriterData, WriterOperations } from './threads/writer-thread.ts'

export interface SqliteStoreOptions {
  readonly directory: string
  readonly clock?: Clock
  /** In a power cut NORMAL may lose the last moments and FULL (the default) nothing; a killed process loses nothing with either. */
  readonly synchronous?: Synchronous
  /** Pages of 4 KiB beyond which writes are refused like on a full disk; null, the default, leaves it to the disk. */
  readonly maxPages?: number | null
  /** Operations that may wait for a thread before further ones are refused with `queue_full`. */
  readonly maxPending?: number
  readonly migrationsDirectory?: string
  readonly log?: Log
}

export interface SqliteStore extends Store {
  /** `ok`, or what is wrong. Walks the whole database; other reads wait meanwhile. */
  checkIntegrity(): Promise<string>
}

// Deep enough that only a writer in trouble reaches it: this is several seconds of full load.
const DEFAULT_MAX_PENDING = 20_000

export async function openSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const { directory, clock = systemClock, log = silentLog } = options
  const files = prepareDataDirectory(directory)
  const lock = lockDirectory(directory, files.lock)
  try {
    const channels = await openChannels(files, options)
    const failed = Promise.race([channels.write.failed, channels.read.failed])
    failed.then((error) => log.error({ err: error, directory }, 'the store has failed'))
    const schemaNumber = loadMigrations(options.migrationsDirectory ?? MIGRATIONS_DIRECTORY).length
    return createStore(channels, { clock, lock, failed, schemaNumber })
  } catch (error) {
    lock.release()
    throw error
  }
}

async function openChannels(files: StoreFiles, options: SqliteStoreOptions): Promise<StoreChannels> {
  const path = files.database
  const { clock = systemClock, synchronous = 'FULL', maxPages = null, maxPending = DEFAULT_MAX_PENDING } = options
  const migrationsDirectory = options.migrationsDirectory ?? MIGRATIONS_DIRECTORY
  const log = options.log ?? silentLog
  const { reserve, damageNote } = files
  const openedAt = clock.now()
  const writerData: WriterData = { path, reserve, damageNote, synchronous, maxPages, migrationsDirectory, openedAt }
  const writing = openChannel<WriterOperations>({
    name: 'writer',
    script: new URL('./threads/writer-thread.ts', import.meta.url),
    workerData: writerData,
    maxPending,
    onRepaired: () => log.error({ path }, 'the database was damaged; its indexes were rebuilt and it is sound again'),
  })
  const readerData: ReaderData = { path }
  // The reader starts with the writer, and opens after it: the writer creates the tables that its statements name.
  const reading = openChannel<ReadOperations>({
    name: 'reader',
    script: new URL('./threads/reader-thread.ts', import.meta.url),
    workerData: readerData,
    maxPending,
    mayOpen: writing,
  })
  const [write, read] = await Promise.allSettled([writing, reading])
  if (write.status === 'rejected') throw write.reason
  if (read.status === 'fulfilled') return { write: write.value, read: repairingReads(read.value, write.value) }
  await write.value.close()
  throw read.reason
}

/** The reader cannot repair what it finds damaged: it asks the writer to, and tries the read once more. */
function repairingReads(
  read: Channel<ReadOperations>,
  write: Pick<Channel<WriterOperations>, 'call'>,
): Channel<ReadOperations> {
  return {
    failed: read.failed,
    stats: () => read.stats(),
    close: () => read.close(),
    async call(name, input, weight) {
      try {
        return await read.call(name, input, weight)
      } catch (error) {
        if (!(error instanceof DamagedError)) throw error
        await write.call('checkDamage', null)
        return read.call(name, input, weight)
      }
    },
  }
}

function openOperatorStores(channels: StoreChannels): OperatorStores {
  const open: OpenStore = (store) => openShared(store, channels)
  return createOperatorStores(open, { cancels: createJobCancels(channels), demands: open(poolDemands) })
}

interface StoreParts {
  readonly clock: Clock
  readonly lock: DirectoryLock
  readonly failed: Promise<Error>
  readonly schemaNumber: number
}

function createStore(channels: StoreChannels, { clock, lock, failed, schemaNumber }: StoreParts): SqliteStore {
  const { write, read } = channels
  const open: OpenStore = (store) => openShared(store, channels)
  return {
    ...createSharedStores(open, { clock, submits: open(submits) }),
    jobs: createJobStore({ write, read, clock }),
    assets: createAssetStore(open(assetSteps)),
    blobIndex: null,
    sentJournal: null,
    ...openOperatorStores(channels),
    limits: open(limitStore),
    audited: (entry) => openOperatorStores(toAuditedChannels(channels, entry)),
    records: createRunRecordStore(open, open(recordReads)),
    summaries: createSummaryStore(open(summarySteps)),
    // The lock on the folder proves it.
    isExclusive: true,
    upkeep: null,
    readTime: async () => clock.now(),
    schemaNumber,
    stats: () => ({ write: write.stats(), read: read.stats() }),
    checkIntegrity: () => read.call('checkIntegrity', null),
    failed,
    async [Symbol.asyncDispose]() {
      // The reader goes first, so that the writer is the last connection: closing it copies the WAL into the database.
      await read.close()
      await write.close()
      lock.release()
    },
  }
}
