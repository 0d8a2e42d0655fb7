/**
 * The store of a service: every port that keeps records, opened together over one database, and what the composition needs of the
 * database itself. An embedded store serves one process; a database server serves any number of them.
 */
import type { AccountDirectory, AccountStore } from './accounts/account-store.ts'
import type { AuditEntry, AuditStore } from './accounts/audit.ts'
import type { KeyStore } from './accounts/keys/key-store.ts'
import type { UserFileStore } from './accounts/user-files.ts'
import type { AssetStore } from './assets/asset-store.ts'
import type { BlobIndex } from './assets/blob-index.ts'
import type { ImportStore } from './assets/library/import-store.ts'
import type { LibraryStore } from './assets/library/library-store.ts'
import type { UploadStore } from './assets/resumable/upload-store.ts'
import type { BudgetStore } from './credits/budgets/budget-store.ts'
import type { LedgerStore } from './credits/ledger.ts'
import type { LimitStore } from './credits/rate-limit.ts'
import type { DeploymentStore } from './deployments/deployment-store.ts'
import type { ReleasedStore } from './deployments/released/released-store.ts'
import type { EndpointStore } from './endpoints/endpoint-store.ts'
import type { ShareStore } from './endpoints/shares/share.ts'
import type { EngineRegistry } from './engine/directory/engine-registry.ts'
import type { ArtifactQueue } from './environments/artifact-queue.ts'
import type { BuildBlobStore } from './environments/build-blob-store.ts'
import type { BuildStore } from './environments/build-store.ts'
import type { DirectoryVersions } from './events/follow-directories.ts'
import type { IdempotencyStore } from './idempotency/idempotency-key.ts'
import type { BatchStore } from './jobs/batches/batch-store.ts'
import type { BulkStore } from './jobs/bulk/bulk-store.ts'
import type { JobStore } from './jobs/job-store.ts'
import type { RunLimitStore } from './jobs/limits/run-limits.ts'
import type { QueueStore } from './jobs/queue/queue-store.ts'
import type { GpuUseStore } from './jobs/read/gpu-report.ts'
import type { RunRecordStore } from './jobs/read/recorded-jobs.ts'
import type { SummaryStore } from './jobs/summaries/summary-store.ts'
import type { ProviderKeyStore } from './models/access/provider-keys.ts'
import type { CallStore } from './models/calls/call-store.ts'
import type { SentJournal } from './models/calls/live-calls.ts'
import type { RequestStore } from './models/queue/request-store.ts'
import type { ScheduleStore } from './schedules/schedule-store.ts'
import type { NodeStore } from './service-nodes/node-store.ts'
import type { WebhookStore } from './webhooks/webhook-store.ts'

/** What operators change, and accounts in ways that an operator must be able to follow. Each of these stores is also available with an audit line bound to its writes. */
export interface OperatorStores {
  readonly directory: AccountDirectory
  readonly apiKeys: KeyStore
  readonly ledger: LedgerStore
  readonly budgets: BudgetStore
  readonly deployments: DeploymentStore
  readonly shares: ShareStore
  readonly builds: BuildStore
  readonly buildBlobs: BuildBlobStore
  readonly providerKeys: ProviderKeyStore
  readonly released: ReleasedStore
  readonly queue: QueueStore
  readonly bulkActions: BulkStore
  readonly cancels: Pick<JobStore, 'cancel'>
  readonly endpointPrices: Pick<EndpointStore, 'setPrice'>
}

/** Small values of the service itself, such as the id that ties the database to the stored bytes. */
export interface MetaStore {
  readMeta(key: string): Promise<string | null>
  /**
   * Writes what `change` makes of the stored value (null: there is none) and returns it. When another process changed the value
   * meanwhile, `change` is asked again with the new one: no change is lost, and `change` must not have side effects.
   */
  changeMeta(key: string, change: (value: string | null) => string): Promise<string>
  /** The stored value; without one, what `make` returns is stored first. Of processes that race, all get the same value. */
  ensureMeta(key: string, make: () => string): Promise<string>
}

/** Concurrent operations travel in batches: group commit in an embedded store, shared round trips to a server. */
export interface BatchStats {
  readonly batches: number
  readonly operations: number
  readonly largestBatch: number
  readonly failedOperations: number
  /** Asked and not yet answered. */
  readonly pending: number
}

/** How a shared store stands, for operators. */
export interface StoreHealth {
  /** Removed rows that are not reclaimed yet, by table. */
  readonly deadRows: Readonly<Record<string, number>>
  /** How many transactions ago the oldest one began that keeps removed rows from being reclaimed. */
  readonly oldestTransactionAge: number
  /** How far ahead of now there are partitions for jobs to expire in. */
  readonly partitionLeadMs: number
}

/** What a shared store needs now and then. All of it is bounded, may run twice, and ends early at the signal. */
export interface StoreUpkeep {
  /** Reclaims removed rows of the tables that change with every job, where there are many; returns these tables. */
  reclaim(signal?: AbortSignal): Promise<readonly string[]>
  /** Renews what the server knows of tables that it does not look at by itself. */
  renewStatistics(signal?: AbortSignal): Promise<void>
  /** Makes room for what will expire in this time, before the first of it is written. */
  prepareExpiries(time: { readonly from: Date; readonly to: Date }): Promise<void>
  health(): Promise<StoreHealth>
}

interface StoreStats {
  readonly write: BatchStats
  readonly read: BatchStats
}

export interface Store extends OperatorStores, MetaStore, AsyncDisposable {
  readonly jobs: JobStore
  readonly batches: BatchStore
  readonly assets: AssetStore
  /** null: the store keeps none, so bytes lie in files. */
  readonly blobIndex: BlobIndex | null
  readonly accounts: AccountStore
  readonly keys: IdempotencyStore
  readonly calls: CallStore
  readonly requests: RequestStore
  /** null: the store keeps none, and one beside it is used. */
  readonly sentJournal: SentJournal | null
  readonly limits: LimitStore
  readonly audit: AuditStore
  /** The same stores; whatever is written through them is written together with this line, or not at all. */
  audited(entry: AuditEntry): OperatorStores
  readonly records: RunRecordStore
  readonly summaries: SummaryStore
  readonly userFiles: UserFileStore
  readonly nodes: NodeStore
  readonly engines: EngineRegistry
  readonly webhooks: WebhookStore
  readonly endpoints: EndpointStore
  readonly runLimits: RunLimitStore
  readonly schedules: ScheduleStore
  readonly gpuUse: GpuUseStore
  readonly artifacts: ArtifactQueue
  readonly uploads: UploadStore
  readonly library: LibraryStore
  readonly imports: ImportStore
  /** No other process has this store open, and none can open it before it is closed: whatever another process held is free. */
  readonly isExclusive: boolean
  /** The time by which leases and windows are measured: the same for every process. */
  readTime(): Promise<Date>
  /** How many migrations this program knows: what a newer one may only take away once no older one runs. */
  readonly schemaNumber: number
  /** What a process looks at every other second, in one small read, to know what it need not look at. */
  glance(): Promise<StoreGlance>
  stats(): StoreStats
  /** null: the store looks after itself. */
  readonly upkeep: StoreUpkeep | null
  /**
   * Resolves with the reason when nothing can be stored from now on, and the process should end. Never for an outage that may
   * pass: its operations are refused with `store_unavailable` meanwhile.
   */
  readonly failed: Promise<Error>
}

export interface StoreGlance {
  /** A process that keeps a copy of a list reads its changes when the version here is above the copy's. */
  readonly versions: DirectoryVersions
  /** Another text than before: something that is said of an engine has changed, beside that its process still holds it. */
  readonly engines: string
  /** Calls of models wait to be taken. */
  readonly hasWaitingCalls: boolean
  /** Calls of models run under leases that have lapsed, or under none. */
  readonly hasLapsedCalls: boolean
  /** Whether there are messages to webhooks that are still to be sent, now or at a later try. */
  readonly hasPendingMessages: boolean
}

/**
 * `contracted_schema`: a newer version has removed what this one needs. `pending_migrations`: this start may not run them.
 * `misconfigured`: it stays so until somebody changes the settings, so that trying again is pointless.
 */
export type StoreOpenReason =
  | 'locked'
  | 'newer_schema'
  | 'changed_migration'
  | 'failed_migration'
  | 'pending_migrations'
  | 'contracted_schema'
  | 'misconfigured'
  | 'unusable'

/** Why a store cannot be opened. The message is for the operator: it names the store and what to do. */
export class StoreOpenError extends Error {
  readonly reason: StoreOpenReason

  constructor(reason: StoreOpenReason, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options)
    this.name = 'StoreOpenError'
    this.reason = reason
  }
}
