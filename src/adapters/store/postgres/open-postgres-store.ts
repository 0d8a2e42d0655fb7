/**
 * Opens the store on a Postgres database, which any number of processes may share. The schema is brought up to date first,
 * unless that is left to an operator. Disposing the store waits for what was asked and closes the connections.
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
import type { IdempotencyStore } from '../../../domain/idempotency/idempotency-key.ts'
import type { JobStore } from '../../../domain/jobs/job-store.ts'
import type { RunRecordStore } from '../../../domain/jobs/read/recorded-jobs.ts'
import type { CallStore } from '../../../domain/models/calls/call-store.ts'
import type { RequestStore } from '../../../domain/models/queue/request-store.ts'
import { loadMigrations } from '../migration-files.ts'
import { type ConnectionOptions, openConnections } from './database/connections.ts'
import { applyMigrations, MIGRATIONS_DIRECTORY } from './database/migrations.ts'
import { openPartitions } from './database/partitions.ts'
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
import { createCallStore, createRequestStore } from './stores/postgres-call-stores.ts'
import { createJobCancels, createJobStore } from './stores/postgres-job-store.ts'
import { createAccountStore, createIdempotencyStore } from './stores/postgres-queue-stores.ts'
import { createRunRecordStore } from './stores/postgres-run-record-store.ts'
import { type StoreParts, toAuditedParts } from './stores/store-parts.ts'

export interface PostgresStoreOptions extends Omit<ConnectionOptions, 'log'> {
  readonly clock?: Clock
  readonly log?: Log
  /** Run pending migrations; default true. */
  readonly migrates?: boolean
  readonly migrationsDirectory?: string
  /** The width of a partition of ended jobs. */
  readonly partitionMs?: number
}

/** What operators change. Each of these stores is also available with an audit line bound to its writes. */
interface OperatorStores {
  readonly directory: AccountDirectory
  readonly apiKeys: KeyStore
  readonly ledger: LedgerStore
  readonly deployments: DeploymentStore
  readonly cancels: Pick<JobStore, 'cancel'>
}

export interface PostgresStore extends OperatorStores, AsyncDisposable {
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
}

export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { clock = systemClock, log = silentLog, migrates = true } = options
  await using opening = new AsyncDisposableStack()
  const connections = opening.use(openConnections({ ...options, log }))
  if (migrates) {
    await applyMigrations(connections.chore, loadMigrations(options.migrationsDirectory ?? MIGRATIONS_DIRECTORY), clock)
  }
  const partitions = openPartitions(connections.chore, options.partitionMs)
  const parts: StoreParts = { ...connections, partitions, clock, log }
  const open = opening.move()
  return {
    jobs: createJobStore(parts),
    assets: createAssetStore(parts),
    accounts: createAccountStore(parts),
    keys: createIdempotencyStore(parts),
    calls: createCallStore(parts),
    requests: createRequestStore(parts),
    ...createOperatorStores(parts),
    limits: createLimitStore(parts),
    audit: createAuditStore(parts),
    audited: (entry) => createOperatorStores(toAuditedParts(parts, entry)),
    records: createRunRecordStore(parts),
    userFiles: createUserFileStore(parts),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
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
