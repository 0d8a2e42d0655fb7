/**
 * Opens a data directory: locks it, brings its schema up to date, starts the writer and the reader. The returned store is
 * ready; disposing it answers everything that was asked, closes the database and unlocks the directory.
 */

import { type Clock, systemClock } from '../../../../lib/clock.ts'
import { type Log, silentLog } from '../../../../lib/log.ts'
import type { AccountDirectory, AccountStore } from '../../../domain/accounts/account-store.ts'
import type { AuditEntry, AuditStore } from '../../../domain/accounts/audit.ts'
import type { KeyStore } from '../../../domain/accounts/keys/key-store.ts'
import type { UserFileStore } from '../../../domain/accounts/user-files.ts'
import type { AssetStore } from '../../../domain/assets/asset-store.ts'
import type { LedgerStore } from '../../../domain/credits/ledger.ts'
import type { LimitStore } from '../../../domain/credits/rate-limit.ts'
import type { DeploymentStore } from '../../../domain/deployments/deployment-store.ts'
import type { DirectoryVersions } from '../../../domain/events/follow-directories.ts'
import type { IdempotencyStore } from '../../../domain/idempotency/idempotency-key.ts'
import type { JobStore } from '../../../domain/jobs/job-store.ts'
import type { RunRecordStore } from '../../../domain/jobs/read/recorded-jobs.ts'
import type { CallStore } from '../../../domain/models/calls/call-store.ts'
import type { RequestStore } from '../../../domain/models/queue/request-store.ts'
import { prepareDataDirectory, type StoreFiles } from './database/data-directory.ts'
import { type DirectoryLock, lockDirectory } from './database/directory-lock.ts'
import { MIGRATIONS_DIRECTORY } from './database/migrations.ts'
import type { Synchronous } from './database/sqlite-connections.ts'
import type { ReadOperations } from './operations/read-operations.ts'
import {
  createAccountDirectory,
  createAccountStore,
  createAuditStore,
  createDeploymentStore,
  createIdempotencyStore,
  createKeyStore,
  createLedgerStore,
  createLimitStore,
  createUserFileStore,
} from './stores/sqlite-account-stores.ts'
import { createAssetStore } from './stores/sqlite-asset-store.ts'
import { createCallStore, createRequestStore } from './stores/sqlite-call-stores.ts'
import { createJobCancels, createJobStore } from './stores/sqlite-job-store.ts'
import { createRunRecordStore } from './stores/sqlite-run-record-store.ts'
import { type StoreChannels, toAuditedChannels } from './stores/store-channels.ts'
import { type Channel, type ChannelStats, DamagedError, openChannel } from './threads/channel.ts'
import type { ReaderData } from './threads/reader-thread.ts'
import { createWalCheckpointer, type WalCheckpointer } from './threads/wal-checkpointer.ts'
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

interface SqliteStoreStats {
  readonly write: ChannelStats
  readonly read: ChannelStats
}

/** What operators change. Each of these stores is also available with an audit line bound to its writes. */
interface OperatorStores {
  readonly directory: AccountDirectory
  readonly apiKeys: KeyStore
  readonly ledger: LedgerStore
  readonly deployments: DeploymentStore
  readonly cancels: Pick<JobStore, 'cancel'>
}

export interface SqliteStore extends OperatorStores, AsyncDisposable {
  readonly jobs: JobStore
  readonly assets: AssetStore
  readonly accounts: AccountStore
  readonly keys: IdempotencyStore
  readonly calls: CallStore
  readonly requests: RequestStore
  readonly limits: LimitStore
  readonly audit: AuditStore
  /** The same stores; whatever is written through them is written together with this line, or not at all. */
  audited(entry: AuditEntry): OperatorStores
  readonly records: RunRecordStore
  readonly userFiles: UserFileStore
  readMeta(key: string): Promise<string | null>
  writeMeta(key: string, value: string): Promise<void>
  /** Whether other processes may write to it too. Here the lock of the folder keeps them out. */
  readonly isShared: boolean
  /** Whoever keeps a copy of a list asks for its changes when its version here is above the copy's. */
  directoryVersions(): Promise<DirectoryVersions>
  stats(): SqliteStoreStats
  /** `ok`, or what is wrong. Walks the whole database; other reads wait meanwhile. */
  checkIntegrity(): Promise<string>
  /** Resolves with the reason when a store thread dies. Nothing can be stored from then on: the process should end. */
  readonly failed: Promise<Error>
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
    return createStore(channels, { clock, lock, failed })
  } catch (error) {
    lock.release()
    throw error
  }
}

interface OpenChannels extends StoreChannels {
  readonly checkpointer: WalCheckpointer
}

async function openChannels(files: StoreFiles, options: SqliteStoreOptions): Promise<OpenChannels> {
  const path = files.database
  const { clock = systemClock, synchronous = 'FULL', maxPages = null, maxPending = DEFAULT_MAX_PENDING } = options
  const migrationsDirectory = options.migrationsDirectory ?? MIGRATIONS_DIRECTORY
  const log = options.log ?? silentLog
  const checkpointer = createWalCheckpointer(path, (error) =>
    log.warn({ err: error }, 'the WAL checkpointer failed; the writer runs the checkpoints itself'),
  )
  const { reserve, damageNote } = files
  const writerData: WriterData = {
    path,
    reserve,
    damageNote,
    synchronous,
    maxPages,
    migrationsDirectory,
    openedAt: clock.now(),
  }
  // The writer first: it creates the tables that the reader prepares its statements against.
  const write = await openChannel<WriterOperations>({
    name: 'writer',
    script: new URL('./threads/writer-thread.ts', import.meta.url),
    workerData: writerData,
    maxPending,
    onLongWal: checkpointer.request,
    onRepaired: () => log.error({ path }, 'the database was damaged; its indexes were rebuilt and it is sound again'),
  })
  try {
    const readerData: ReaderData = { path }
    const read = await openChannel<ReadOperations>({
      name: 'reader',
      script: new URL('./threads/reader-thread.ts', import.meta.url),
      workerData: readerData,
      maxPending,
    })
    return { write, read: repairingReads(read, write), checkpointer }
  } catch (error) {
    await write.close()
    throw error
  }
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

function createOperatorStores(channels: StoreChannels): OperatorStores {
  return {
    directory: createAccountDirectory(channels),
    apiKeys: createKeyStore(channels),
    ledger: createLedgerStore(channels),
    deployments: createDeploymentStore(channels),
    cancels: createJobCancels(channels),
  }
}

interface StoreParts {
  readonly clock: Clock
  readonly lock: DirectoryLock
  readonly failed: Promise<Error>
}

function createStore(channels: OpenChannels, { clock, lock, failed }: StoreParts): SqliteStore {
  const { write, read, checkpointer } = channels
  return {
    jobs: createJobStore({ write, read, clock }),
    assets: createAssetStore(channels),
    accounts: createAccountStore(channels),
    keys: createIdempotencyStore(channels),
    calls: createCallStore(channels),
    requests: createRequestStore(channels),
    ...createOperatorStores(channels),
    limits: createLimitStore(channels),
    audit: createAuditStore(channels),
    audited: (entry) => createOperatorStores(toAuditedChannels(channels, entry)),
    records: createRunRecordStore(channels),
    userFiles: createUserFileStore(channels),
    readMeta: (key) => read.call('readMeta', key),
    writeMeta: (key, value) => write.call('writeMeta', { key, value }),
    isShared: false,
    async directoryVersions() {
      const [accounts, keys, deployments] = await read.call('directoryVersions', null)
      return { accounts, keys, deployments }
    },
    stats: () => ({ write: write.stats(), read: read.stats() }),
    checkIntegrity: () => read.call('checkIntegrity', null),
    failed,
    async [Symbol.asyncDispose]() {
      // The others go first, so that the writer is the last connection: closing it copies the WAL into the database.
      await read.close()
      await checkpointer.close()
      await write.close()
      lock.release()
    },
  }
}
