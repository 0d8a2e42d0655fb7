/**
 * Opens the store on a Postgres database, which any number of processes may share. The schema is brought up to date first,
 * unless that is left to an operator. Disposing the store waits for what was asked and closes the connections.
 */
import { type Clock, systemClock } from '../../../../lib/clock.ts'
import { type Log, silentLog } from '../../../../lib/log.ts'
import type { AssetStore } from '../../../domain/assets/asset-store.ts'
import type { OperatorStores, Store } from '../../../domain/store.ts'
import { loadMigrations } from '../migration-files.ts'
import { createSummaryStore } from '../search/summary-store.ts'
import type { OpenStore } from '../statements/operation.ts'
import { postgresOnly, query } from '../statements/statement.ts'
import { assetSteps, createAssetStore as createStore } from '../stores/asset-store.ts'
import type { OfferedBlob } from '../stores/blob-references.ts'
import { createSentJournal } from '../stores/calls/call-stores.ts'
import { SERVER_TIME } from '../stores/node-store.ts'
import { createRunRecordStore } from '../stores/run-record-store.ts'
import { createOperatorStores, createSharedStores } from '../stores/shared-stores.ts'
import { moment, shape } from '../tables/table.ts'
import { openConnections } from './database/connections.ts'
import { createGather } from './database/gather.ts'
import { mustBeMigrated, mustBeSupported } from './database/migrate-database.ts'
import { applyMigrations, MIGRATIONS_DIRECTORY } from './database/migrations.ts'
import { toOpenError } from './database/open-error.ts'
import { openPartitions } from './database/partitions.ts'
import type { ConnectionOptions } from './database/pool.ts'
import { openSession } from './database/session.ts'
import type { Queryable } from './database/statement.ts'
import { createUpkeep } from './database/upkeep.ts'
import { createSubmitSteps } from './operations/jobs/submits.ts'
import { createBlobIndex } from './own/blob-index.ts'
import { limitStore } from './own/limit-store.ts'
import { poolDemands } from './own/pool-demands.ts'
import { recordReads } from './own/run-records.ts'
import { summarySteps } from './own/search-walks.ts'
import { openShared } from './shared-stores.ts'
import { createJobCancels, createJobStore } from './stores/postgres-job-store.ts'
import { type StoreParts, toAuditedParts } from './stores/store-parts.ts'

const ANNOUNCED_AT_ONCE = 64

interface Announced extends OfferedBlob {
  readonly now: Date
}

/** Announcements of one moment share a statement. */
function createAssetStore(parts: StoreParts): AssetStore {
  const steps = openShared(assetSteps, parts)
  const announce = createGather({
    run: async (blobs: readonly Announced[]) => {
      await steps.announce(blobs, new Date(Math.max(...blobs.map(({ now }) => now.getTime()))))
      return blobs
    },
    onBatch: parts.durable.noteBatch,
    maxItems: ANNOUNCED_AT_ONCE,
    maxRunning: 2,
  })
  return {
    ...createStore(steps),
    announceBlob: async (hash, sizeBytes, now) => void (await announce({ hash, sizeBytes, now })),
  }
}

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
  const openStore: OpenStore = (store) => openShared(store, parts)
  const open = opening.move()
  return {
    ...createSharedStores(openStore, { clock, submits: createSubmitSteps(parts) }),
    jobs: createJobStore(parts),
    assets: createAssetStore(parts),
    blobIndex: createBlobIndex(parts),
    sentJournal: createSentJournal(openStore, parts.log),
    ...openOperatorStores(parts),
    limits: openStore(limitStore),
    audited: (entry) => openOperatorStores(toAuditedParts(parts, entry)),
    records: createRunRecordStore(openStore, openStore(recordReads)),
    summaries: createSummaryStore(openStore(summarySteps)),
    isExclusive: false,
    readTime: () => readServerTime(connections.read),
    schemaNumber,
    stats: () => connections.stats(),
    upkeep: createUpkeep({ ...connections, partitions }),
    // The server may come back, so nothing here is for good.
    failed: new Promise(() => {}),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

const READ_TIME = query('server_time.read', shape({ time: moment() }), postgresOnly(`SELECT ${SERVER_TIME} AS time`))

async function readServerTime(db: Queryable): Promise<Date> {
  const row = await db.get(READ_TIME)
  if (row === undefined) throw new Error('The server did not tell the time.')
  return row.time
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

function openOperatorStores(parts: StoreParts): OperatorStores {
  const open: OpenStore = (store) => openShared(store, parts)
  return createOperatorStores(open, { cancels: createJobCancels(parts), demands: open(poolDemands) })
}
