/**
 * What every store suite starts from. One store serves a whole suite: each test takes accounts and a pool of its own, so that
 * tests do not see each other. A test about something that spans all accounts opens a store for itself.
 */
import { randomUUID } from 'node:crypto'
import { after, before } from 'node:test'
import { createUuidV7 } from '../../lib/ids.ts'
import type { AccountDirectory, AccountStore } from '../../src/domain/accounts/account-store.ts'
import type { AuditEntry, AuditStore } from '../../src/domain/accounts/audit.ts'
import type { KeyStore } from '../../src/domain/accounts/keys/key-store.ts'
import type { UserFileStore } from '../../src/domain/accounts/user-files.ts'
import type { AssetStore } from '../../src/domain/assets/asset-store.ts'
import type { LedgerStore } from '../../src/domain/credits/ledger.ts'
import type { LimitStore } from '../../src/domain/credits/rate-limit.ts'
import type { DeploymentStore } from '../../src/domain/deployments/deployment-store.ts'
import type { EngineOffer } from '../../src/domain/engine/fleet/lane-offers.ts'
import type { IdempotencyStore, KeyClaim } from '../../src/domain/idempotency/idempotency-key.ts'
import type { Job, JobError, Output } from '../../src/domain/jobs/job.ts'
import type { JobStore, Lease, NewJob } from '../../src/domain/jobs/job-store.ts'
import type { RunRecordStore } from '../../src/domain/jobs/read/recorded-jobs.ts'
import type { SummaryStore } from '../../src/domain/jobs/summaries/summary-store.ts'
import type { CallStore } from '../../src/domain/models/calls/call-store.ts'
import type { RequestStore } from '../../src/domain/models/queue/request-store.ts'
import type { NodeStore } from '../../src/domain/service-nodes/node-store.ts'
import type { Store } from '../../src/domain/store.ts'

export interface StoreUnderTest {
  readonly jobs: JobStore
  readonly assets: AssetStore
  readonly accounts: AccountStore
  readonly keys: IdempotencyStore
  readonly directory: AccountDirectory
  readonly apiKeys: KeyStore
  readonly ledger: LedgerStore
  readonly limits: LimitStore
  /** Where a test can do that: the next writes end in a crash before their commit. */
  readonly loseNextWrites?: () => void
}

/** The stores that are also available with an audit line bound to each of their writes. */
export interface AuditedStores extends Pick<StoreUnderTest, 'directory' | 'apiKeys' | 'ledger'> {
  readonly budgets: Store['budgets']
  readonly deployments: DeploymentStore
  readonly cancels: Pick<JobStore, 'cancel'>
  readonly shares: Store['shares']
  readonly queue: Store['queue']
  readonly bulkActions: Store['bulkActions']
  readonly builds: Store['builds']
  readonly released: Store['released']
  readonly buildBlobs: Store['buildBlobs']
  readonly providerKeys: Store['providerKeys']
}

/** With the ports that only a whole store offers. */
export interface WholeStoreUnderTest extends StoreUnderTest {
  readonly deployments: DeploymentStore
  readonly nodes: NodeStore
  readonly engines: Store['engines']
  readonly audit: AuditStore
  audited(entry: AuditEntry): AuditedStores
  readonly records: RunRecordStore
  readonly summaries: SummaryStore
  readonly calls: CallStore
  readonly requests: RequestStore
  readonly userFiles: UserFileStore
  readonly webhooks: Store['webhooks']
  readonly batches: Store['batches']
  readonly uploads: Store['uploads']
  readonly library: Store['library']
  readonly imports: Store['imports']
  readonly endpoints: Store['endpoints']
  readonly runLimits: Store['runLimits']
  readonly budgets: Store['budgets']
  readonly shares: Store['shares']
  readonly queue: Store['queue']
  readonly bulkActions: Store['bulkActions']
  readonly builds: Store['builds']
  readonly released: Store['released']
  readonly buildBlobs: Store['buildBlobs']
  readonly schedules: Store['schedules']
  readonly gpuUse: Store['gpuUse']
  readonly artifacts: Store['artifacts']
  readonly providerKeys: Store['providerKeys']
  glance: Store['glance']
}

export interface StoreOpener<Store extends StoreUnderTest = StoreUnderTest> {
  /** A fresh, empty store. */
  open(): Promise<{ readonly store: Store; close(): Promise<void> }>
}

export const START = new Date('2026-01-01T00:00:00.000Z')
export const DAY_MS = 86_400_000
export const LOST: JobError = {
  code: 'worker_lost',
  message: 'the worker went away',
  nodeId: null,
  classType: null,
  traceback: null,
}

export function at(afterMs: number): Date {
  return new Date(START.getTime() + afterMs)
}

export const newJobId = createUuidV7(() => START.getTime())

export function hashOf(text: string): string {
  return Buffer.from(text).toString('hex').padEnd(64, '0').slice(0, 64)
}

/** One store for all tests of a suite, there once the first of them runs. */
export function shareStore<Store extends StoreUnderTest>({ open }: StoreOpener<Store>): () => Store {
  let opened: Awaited<ReturnType<StoreOpener<Store>['open']>> | null = null
  before(async () => {
    opened = await open()
  })
  after(() => opened?.close())
  return () => {
    if (opened === null) throw new Error('the store is opened before the first test')
    return opened.store
  }
}

/** A store for one test. */
export async function withStore<Store extends StoreUnderTest>(
  opener: StoreOpener<Store>,
  body: (store: Store) => Promise<void>,
): Promise<void> {
  const { store, close } = await opener.open()
  try {
    await body(store)
  } finally {
    await close()
  }
}

export interface Limits {
  readonly maxRunning?: number
  readonly maxQueued?: number
}

export interface Purse extends Limits {
  readonly micros?: number
  readonly floor?: number
}

export interface ClaimOptions {
  readonly now?: Date
  readonly leaseMs?: number
  readonly engines?: readonly EngineOffer[]
  readonly maxOvertakes?: number
  readonly creditMs?: number
}

const ANYTHING: readonly EngineOffer[] = [{ engineId: 'engine', lanes: null }]

/** A job, and the offer of an engine that may take it, as the service has them where several processes share a store. */
export const ONE_LANE = {
  job: { needs: 'lane' },
  engines: [{ engineId: 'engine', lanes: [{ lane: 'lane', rank: 0 }] }],
} as const

/** An account with a pool of its own, and the few steps that most tests take. */
export class Tenant {
  readonly store: StoreUnderTest
  readonly accountId: string
  readonly pool: string

  constructor(store: StoreUnderTest, accountId: string, pool: string) {
    this.store = store
    this.accountId = accountId
    this.pool = pool
  }

  static async create(store: StoreUnderTest, { maxRunning = 10, maxQueued = 1000 }: Limits = {}): Promise<Tenant> {
    const tenant = new Tenant(store, randomUUID(), randomUUID())
    await store.accounts.put({ id: tenant.accountId, maxRunning, maxQueued })
    return tenant
  }

  /** An account that pays. */
  static async metered(store: StoreUnderTest, purse: Purse = {}): Promise<Tenant> {
    const { maxRunning = 10, maxQueued = 1000, micros = 1_000_000, floor = 0 } = purse
    const tenant = new Tenant(store, randomUUID(), randomUUID())
    const account = { id: tenant.accountId, name: 'Metered', tier: 'free', overrides: {}, status: 'active' as const }
    await store.directory.create({ ...account, createdAt: START }, { maxRunning, maxQueued, creditFloor: floor })
    if (micros > 0) {
      await store.ledger.grant({ id: randomUUID(), accountId: tenant.accountId, micros, at: START, memo: 'a gift' })
    }
    return tenant
  }

  /** Another account whose jobs wait in the same pool. */
  async neighbour({ maxRunning = 10, maxQueued = 1000 }: Limits = {}): Promise<Tenant> {
    const tenant = new Tenant(this.store, randomUUID(), this.pool)
    await this.store.accounts.put({ id: tenant.accountId, maxRunning, maxQueued })
    return tenant
  }

  newJob(fields: Partial<NewJob> = {}): NewJob {
    const createdAt = fields.createdAt ?? START
    return {
      id: newJobId(),
      accountId: this.accountId,
      pool: this.pool,
      priority: 0,
      metadata: {},
      createdAt,
      expiresAt: new Date(createdAt.getTime() + 7 * DAY_MS),
      workflow: '{"1":{"class_type":"Nothing","inputs":{}}}',
      inputs: [],
      needsExtraData: false,
      sealedExtraData: null,
      needs: '',
      ...fields,
    }
  }

  async submit(fields: Partial<NewJob> = {}, key: KeyClaim | null = null): Promise<Job> {
    const outcome = await this.store.jobs.submit(this.newJob(fields), key)
    if (outcome.outcome !== 'queued') throw new Error(`the submit was answered with ${outcome.outcome}`)
    return outcome.job
  }

  /** `engines`: by default one that takes whatever waits. */
  claim({ now = START, leaseMs = 30_000, engines = ANYTHING, maxOvertakes = 10, creditMs = 0 }: ClaimOptions = {}) {
    return this.store.jobs.claim({
      pool: this.pool,
      workerId: 'worker',
      leaseId: randomUUID(),
      leaseUntil: new Date(now.getTime() + leaseMs),
      now,
      engines,
      maxOvertakes,
      creditMs,
    })
  }

  /** Submits a job and has it running. */
  async run(fields: Partial<NewJob> = {}, now = START): Promise<{ readonly job: Job; readonly lease: Lease }> {
    await this.submit(fields)
    const claim = await this.claim({ now })
    if (claim === null) throw new Error('the job could not be claimed')
    return { job: claim.job, lease: { jobId: claim.job.id, leaseId: claim.leaseId } }
  }

  succeed(lease: Lease, when = START) {
    return this.store.jobs.commit(lease, {
      finish: { status: 'succeeded', from: ['running', 'canceling'], at: when, error: null },
    })
  }

  find(jobId: string, now = START): Promise<Job | null> {
    return this.store.jobs.find(this.accountId, jobId, now)
  }

  use() {
    return this.store.accounts.findUse(this.accountId)
  }
}

export function newOutput(fields: Partial<Output> = {}): Output {
  return {
    assetId: randomUUID(),
    nodeId: '9',
    name: 'a_00001_.png',
    type: 'image',
    contentType: 'image/png',
    sizeBytes: 3,
    hash: hashOf('output'),
    ...fields,
  }
}

export function keyClaim(key: string, claimedAt = START): KeyClaim {
  return { key, claimedAt, expiresAt: new Date(claimedAt.getTime() + DAY_MS) }
}
