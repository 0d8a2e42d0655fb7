/**
 * Random sequences of operations against a model small enough to be right: states, attempts and counters must agree after
 * every sequence, and the account's counters must equal its rows.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Lease } from '../../../src/domain/jobs/job-store.ts'
import { isHeld, isTerminal, type JobStatus } from '../../../src/domain/jobs/transitions.ts'
import { LOST, START, type StoreOpener, type StoreUnderTest, shareStore, Tenant } from '../store-under-test.ts'

const RETENTION_MS = 1_000
const GRACE_MS = 300
const LEASE_MS = 100
const MAX_ATTEMPTS = 2
const LIMITS = { maxRunning: 2, maxQueued: 4 }

interface ModelJob {
  readonly id: string
  readonly order: number
  readonly priority: number
  readonly expiresAt: number
  status: JobStatus
  attempt: number
  lease: Lease | null
  leaseUntil: number
  completedAt: number
}

type Step =
  | { readonly kind: 'submit'; readonly priority: number }
  | { readonly kind: 'claim' | 'expire' | 'remove' | 'reap' }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'finish' | 'cancel' | 'release' | 'renew' | 'stale'; readonly pick: number }

const pick = fc.nat({ max: 20 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('submit' as const), priority: fc.integer({ min: 0, max: 2 }) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('claim' as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('finish', 'cancel', 'release', 'renew', 'stale'),
      pick,
    }) as fc.Arbitrary<Step>,
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('expire', 'remove', 'reap') }) as fc.Arbitrary<Step> },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 400 }) }) },
)

/** Runs the same steps on the store and on a list of plain objects. */
class Run {
  readonly jobs: ModelJob[] = []
  readonly tenant: Tenant
  readonly store: StoreUnderTest
  now = START.getTime()

  constructor(tenant: Tenant) {
    this.tenant = tenant
    this.store = tenant.store
  }

  date(plusMs = 0): Date {
    return new Date(this.now + plusMs)
  }

  in(...statuses: JobStatus[]): ModelJob[] {
    return this.jobs.filter(({ status }) => statuses.includes(status))
  }

  end(job: ModelJob, status: JobStatus): void {
    Object.assign(job, { status, lease: null, completedAt: this.now })
  }

  isVisible({ status, expiresAt }: ModelJob): boolean {
    return !isTerminal(status) || status === 'expired' || expiresAt > this.now
  }

  async submit(priority: number): Promise<void> {
    const createdAt = this.date()
    const expiresAt = this.date(RETENTION_MS)
    const newJob = this.tenant.newJob({ priority, createdAt, expiresAt })
    const { outcome } = await this.store.jobs.submit(newJob, null)
    assert.equal(outcome, this.in('queued').length < LIMITS.maxQueued ? 'queued' : 'queue_full')
    if (outcome !== 'queued') return
    const { id } = newJob
    const order = this.jobs.length
    const fresh = { attempt: 0, lease: null, leaseUntil: 0, completedAt: 0 }
    this.jobs.push({ id, order, priority, expiresAt: expiresAt.getTime(), status: 'queued', ...fresh })
  }

  async claim(): Promise<void> {
    const claim = await this.tenant.claim({ now: this.date(), leaseMs: LEASE_MS })
    const hasRoom = this.in('running', 'canceling').length < LIMITS.maxRunning
    const queued = this.in('queued')
      .filter(({ expiresAt }) => expiresAt > this.now)
      .sort((a, b) => b.priority - a.priority || a.order - b.order)
    const expected = hasRoom ? queued.at(0) : undefined
    assert.equal(claim?.job.id, expected?.id)
    if (claim === null || expected === undefined) return
    const lease = { jobId: claim.job.id, leaseId: claim.leaseId }
    Object.assign(expected, {
      status: 'running',
      attempt: expected.attempt + 1,
      lease,
      leaseUntil: this.now + LEASE_MS,
    })
    assert.equal(claim.job.attempt, expected.attempt)
  }

  async onHeld(kind: 'finish' | 'release' | 'renew', job: ModelJob, lease: Lease): Promise<void> {
    if (kind === 'finish') {
      const to = job.status === 'canceling' ? 'canceled' : 'succeeded'
      const finish = { status: to, from: ['running', 'canceling'], at: this.date(), error: null } as const
      assert.equal((await this.store.jobs.commit(lease, { finish })).outcome, 'committed')
      this.end(job, to)
    } else if (kind === 'renew') {
      const renewed = await this.store.jobs.renew([lease], this.date(LEASE_MS))
      assert.deepEqual(renewed, [{ jobId: job.id, status: job.status }])
      job.leaseUntil = this.now + LEASE_MS
    } else {
      await this.store.jobs.release([lease], this.date())
      if (job.status === 'canceling') this.end(job, 'canceled')
      else Object.assign(job, { status: 'queued', lease: null, attempt: job.attempt - 1 })
    }
  }

  async cancel(job: ModelJob): Promise<void> {
    const { outcome } = await this.store.jobs.cancel(this.tenant.accountId, job.id, this.date())
    if (!this.isVisible(job)) assert.equal(outcome, 'not_found')
    else if (isTerminal(job.status)) assert.equal(outcome, 'already_terminal')
    else assert.equal(outcome, job.status === 'queued' ? 'canceled' : 'canceling')
    if (job.status === 'queued') this.end(job, 'canceled')
    else if (job.status === 'running') job.status = 'canceling'
  }

  async reap(): Promise<void> {
    await this.store.jobs.reap({ now: this.date(), maxAttempts: MAX_ATTEMPTS, error: LOST })
    for (const job of this.in('running', 'canceling').filter(({ leaseUntil }) => leaseUntil < this.now)) {
      if (job.status === 'canceling') this.end(job, 'canceled')
      else if (job.attempt >= MAX_ATTEMPTS) this.end(job, 'failed')
      else Object.assign(job, { status: 'queued', lease: null })
    }
  }

  async expire(): Promise<void> {
    await this.store.jobs.expire(this.date(), 1000)
    for (const job of this.in('queued', 'running', 'canceling')) {
      if (job.expiresAt <= this.now) this.end(job, 'expired')
    }
  }

  async remove(): Promise<void> {
    await this.store.jobs.remove({ now: this.date(), expiredBefore: this.date(-GRACE_MS), limit: 1000 })
    const isGone = ({ status, expiresAt, completedAt }: ModelJob) =>
      status === 'expired' ? completedAt <= this.now - GRACE_MS : isTerminal(status) && expiresAt <= this.now
    const kept = this.jobs.filter((job) => !isGone(job))
    this.jobs.splice(0, this.jobs.length, ...kept)
  }

  async take(next: Step): Promise<void> {
    if (next.kind === 'submit') return this.submit(next.priority)
    if (next.kind === 'wait') this.now += next.ms
    if (!('pick' in next)) {
      if (next.kind === 'claim') await this.claim()
      else if (next.kind === 'reap') await this.reap()
      else if (next.kind === 'expire') await this.expire()
      else if (next.kind === 'remove') await this.remove()
      return
    }
    const job = this.jobs.at(next.pick % Math.max(1, this.jobs.length))
    if (job === undefined) return
    if (next.kind === 'cancel') return this.cancel(job)
    if (next.kind === 'stale') {
      const stale = { jobId: job.id, leaseId: 'no-such-lease' }
      assert.deepEqual(await this.store.jobs.commit(stale, { outputsReused: true }), { outcome: 'lost' })
    } else if (isHeld(job.status) && job.lease !== null) await this.onHeld(next.kind, job, job.lease)
  }

  async check(): Promise<void> {
    for (const job of this.jobs) {
      const found = await this.tenant.find(job.id, this.date())
      if (!this.isVisible(job)) assert.equal(found, null)
      else assert.deepEqual([found?.status, found?.attempt], [job.status, job.attempt])
    }
    const running = this.in('running', 'canceling').length
    assert.deepEqual(await this.tenant.use(), { running, queued: this.in('queued').length })
    assert.equal(await this.store.accounts.repairCounters(), 0)
  }
}

export function testJobStoreModel(opener: StoreOpener, { runs = 60 } = {}): void {
  describe('random operations', () => {
    const store = shareStore(opener)
    test('states, attempts and counters agree with a model after random operations', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
          const run = new Run(await Tenant.create(store(), LIMITS))
          for (const next of steps) await run.take(next)
          await run.check()
        }),
        { numRuns: runs },
      )
    })
  })
}
