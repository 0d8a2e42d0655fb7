/**
 * Opens the store on a Postgres database, which any number of processes may share. The schema is brought up to date first,
 * unless that is left to an operator. Disposing the store waits for what was asked and closes the connections.
 */
import { type Clock, systemClock } from '../../../../lib/clock.ts'
import { type Log, silentLog } from '../../../../lib/log.ts'
import type { OperatorStores, Store } from '../../../domain/store.ts'
import { loadMigrations } from '../migration-files.ts'
import { openConnections } from './database/connections.ts'
import { mustBeMigrated, mustBeSupported } from './database/migrate-database.ts'
import { applyMigrations, MIGRATIONS_DIRECTORY } from './database/migrations.ts'
import { toOpenError } from './database/open-error.ts'
import { openPartitions } from './database/partitions.ts'
import type { ConnectionOptions } from './database/pool.ts'
import { openSession } from './database/session.ts'
import { createUpkeep } from './database/upkeep.ts'
import { glance } from './operations/nodes/glance.ts'
import { readServerTime } from './operations/nodes/server-time.ts'
import {
  createAccountDirectory,
  createAuditStore,
  createDeploymentStore,
  createKeyStore,
  createLedgerStore,
  createLimitStore,
  createUserFileStore,
} from './stores/postgres-account-stores.ts'
import { createAssetStore } from './stores/postgres-asset-store.ts'
import { createBatchStore } from './stores/postgres-batch-store.ts'
import { createBlobIndex } from './stores/postgres-blob-index.ts'
import { createCallStore, createOwnEnds, createRequestStore, createSentJournal } from './stores/postgres-call-stores.ts'
import { createEngineRegistry } from './stores/postgres-engine-registry.ts'
import { createJobCancels, createJobStore } from './stores/postgres-job-store.ts'
import { createMetaStore } from './stores/postgres-meta-store.ts'
import { createNodeStore } from './stores/postgres-node-store.ts'
import { createAccountStore, createIdempotencyStore } from './stores/postgres-queue-stores.ts'
import { createRunRecordStore } from './stores/postgres-run-record-store.ts'
import { createSummaryStore } from './stores/postgres-summary-store.ts'
import { createUploadStore } from './stores/postgres-upload-store.ts'
import { createWebhookStore } from './stores/postgres-webhook-store.ts'
import { type StoreParts, toAuditedParts } from './stores/store-parts.ts'

interface PostgresStoreOptions extends Omit<ConnectionOptions, 'log'> {
  readonly clock?: Clock
  readonly log?: Log
  /** Run pending migrations, the default; false: the start is refused while there are any. */
  readonly migrates?: boolean
  readonly migrationsDirectory?: string
  /** The width of a partition of ended jobs. */
  readonly partitionMs?: number
}

export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { clock = systemClock, log = silentLog } = options
  await using opening = new AsyncDisposableStack()
  const schemaNumber = await prepareSchema(options, clock)
  const connections = opening.use(openConnections({ ...options, log }))
  // Submits may have to wait for it: a chore that takes a minute must not come in between.
  const partitions = openPartitions(connections.durable, options.partitionMs)
  const parts: StoreParts = { ...connections, partitions, clock, log }
  const toOwnEnd = createOwnEnds()
  const open = opening.move()
  return {
    jobs: createJobStore(parts),
    assets: createAssetStore(parts),
    blobIndex: createBlobIndex(parts),
    smallBytes: null,
    accounts: createAccountStore(parts),
    batches: createBatchStore(parts),
    keys: createIdempotencyStore(parts),
    calls: createCallStore(parts, toOwnEnd),
    requests: createRequestStore(parts, toOwnEnd),
    sentJournal: createSentJournal(parts),
    ...createOperatorStores(parts),
    limits: createLimitStore(parts),
    audit: createAuditStore(parts),
    audited: (entry) => createOperatorStores(toAuditedParts(parts, entry)),
    records: createRunRecordStore(parts),
    summaries: createSummaryStore(parts),
    userFiles: createUserFileStore(parts),
    nodes: createNodeStore(parts),
    engines: createEngineRegistry(parts),
    webhooks: createWebhookStore(parts),
    uploads: createUploadStore(parts),
    isExclusive: false,
    readTime: () => readServerTime(connections.read),
    schemaNumber,
    glance: () => glance(parts.read),
    ...createMetaStore(parts),
    stats: () => connections.stats(),
    upkeep: createUpkeep({ ...connections, partitions }),
    // The server may come back, so nothing here is for good.
    failed: new Promise(() => {}),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

/** Returns how many migrations this program knows. */
async function prepareSchema(options: PostgresStoreOptions, clock: Clock): Promise<number> {
  const known = loadMigrations(options.migrationsDirectory ?? MIGRATIONS_DIRECTORY)
  try {
    await using session = await openSession(options)
    await mustBeSupported(session)
    if (options.migrates ?? true) await applyMigrations(session, known, { clock })
    await mustBeMigrated(session, known)
    return known.length
  } catch (error) {
    throw toOpenError(error, options.url)
  }
}

function createOperatorStores(parts: StoreParts): OperatorStores {
  return {
    directory: createAccountDirectory(parts),
    apiKeys: createKeyStore(parts),
    ledger: createLedgerStore(parts),
    deployments: createDeploymentStore(parts),
    cancels: createJobCancels(parts),
  }
}
