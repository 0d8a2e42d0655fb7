/**
 * Random interleavings of everything that can happen to jobs that cost something, several at a time: accepted, claimed, ended
 * in every way, canceled, given back, lost with their worker, expired, removed; grants and refunds in between. After each
 * sequence the books must add up, and every job must have been charged what its end says, once or not at all.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { LedgerEntry } from '../../../src/domain/credits/ledger.ts'
import type { Job, JobError } from '../../../src/domain/jobs/job.ts'
import type { Lease } from '../../../src/domain/jobs/job-store.ts'
import { isTerminal } from '../../../src/domain/jobs/transitions.ts'
import { LOST, START, type StoreOpener, type StoreUnderTest, shareStore, Tenant } from '../store-under-test.ts'

const PRICE = { perSecondMicros: 1000, minimumMicros: 30, holdMicros: 200 }
const RETENTION_MS = 2000
const LEASE_MS = 150
const MAX_ATTEMPTS = 2
const GIFT = 700
const FAILURES = ['node_execution_error', 'worker_lost', 'engine_error', 'internal_error'] as const

type Step =
  | { readonly kind: 'submit' | 'claim' | 'reap' | 'crash' | 'expire' | 'remove' | 'grant' | 'revoke' }
  | { readonly kind: 'succeed' | 'cancel' | 'release' | 'refund' | 'end again'; readonly pick: number }
  | { readonly kind: 'fail'; readonly pick: number; readonly code: (typeof FAILURES)[number] }

const pick = fc.nat({ max: 12 })
const kindOf = <const Kind extends Step['kind']>(...kinds: Kind[]) => fc.record({ kind: fc.constantFrom(...kinds) })
const step = fc.oneof(
  { weight: 5, arbitrary: kindOf('submit') },
  { weight: 5, arbitrary: kindOf('claim') },
  { weight: 2, arbitrary: kindOf('reap', 'crash', 'expire', 'remove') },
  { weight: 1, arbitrary: kindOf('grant', 'revoke') },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constantFrom('succeed', 'cancel', 'release', 'refund', 'end again'), pick }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('fail'), pick, code: fc.constantFrom(...FAILURES) }) },
) as fc.Arbitrary<Step>
/** Steps of one round are sent together; time passes between turns. */
const round = fc.record({ steps: fc.array(step, { minLength: 1, maxLength: 4 }), ms: fc.nat({ max: 300 }) })

class Run {
  readonly tenant: Tenant
  readonly store: StoreUnderTest
  readonly floor: number
  readonly jobIds: string[] = []
  readonly leases: Lease[] = []
  now = START.getTime()

  constructor(tenant: Tenant, floor: number) {
    this.tenant = tenant
    this.store = tenant.store
    this.floor = floor
  }

  async take(next: Step): Promise<void> {
    if (!('pick' in next)) return this.takePlain(next.kind)
    const { accountId } = this.tenant
    const jobId = this.jobIds.at(next.pick % Math.max(1, this.jobIds.length))
    const lease = this.leases.at(next.pick % Math.max(1, this.leases.length))
    if (next.kind === 'cancel' && jobId !== undefined) await this.store.jobs.cancel(accountId, jobId, this.date())
    else if (next.kind === 'refund' && jobId !== undefined) await this.refund(`job:${jobId}`)
    else if (lease === undefined) return
    else if (next.kind === 'succeed' || next.kind === 'end again') await this.finish(lease, 'succeeded', null)
    else if (next.kind === 'fail') await this.finish(lease, 'failed', { ...LOST, code: next.code })
    else if (next.kind === 'release') await this.store.jobs.release([lease], this.date())
  }

  async takePlain(kind: Step['kind']): Promise<void> {
    const now = this.date()
    if (kind === 'submit') return this.submit()
    if (kind === 'claim') return this.claim()
    if (kind === 'grant' || kind === 'crash') await this.grant(100)
    if (kind === 'revoke') await this.grant(-150)
    const reaping = { now, maxAttempts: MAX_ATTEMPTS, error: LOST }
    if (kind === 'reap') await this.store.jobs.reap(reaping)
    if (kind === 'expire') await this.store.jobs.expire(now, 1000)
    if (kind === 'remove') await this.store.jobs.remove({ now, expiredBefore: now, limit: 1000 })
  }

  date(): Date {
    return new Date(this.now)
  }

  async submit(): Promise<void> {
    const expiresAt = new Date(this.now + RETENTION_MS)
    const job = this.tenant.newJob({ createdAt: this.date(), expiresAt, price: PRICE })
    const { outcome } = await this.store.jobs.submit(job, null)
    if (outcome === 'queued') this.jobIds.push(job.id)
  }

  async claim(): Promise<void> {
    const claim = await this.tenant.claim({ now: this.date(), leaseMs: LEASE_MS })
    if (claim !== null) this.leases.push({ jobId: claim.job.id, leaseId: claim.leaseId })
  }

  async finish(lease: Lease, status: 'succeeded' | 'failed', error: JobError | null): Promise<void> {
    const finish = { status, from: ['running', 'canceling'], at: this.date(), error } as const
    await this.store.jobs.commit(lease, { finish })
  }

  async grant(micros: number): Promise<void> {
    const { accountId } = this.tenant
    await this.store.ledger.grant({ id: randomUUID(), accountId, micros, at: this.date(), memo: '' })
  }

  async refund(holdId: string): Promise<void> {
    await this.store.ledger.refund({ holdId, micros: 10, at: this.date(), memo: '' })
  }

  /** All steps are sent together; with a crash among them they are lost where the store can do that, and then it starts again. */
  async round(steps: readonly Step[]): Promise<void> {
    const isCrash = steps.some(({ kind }) => kind === 'crash')
    if (isCrash) this.store.loseNextWrites?.()
    const taken = await Promise.allSettled(steps.map((next) => this.take(next)))
    if (!isCrash) for (const each of taken) if (each.status === 'rejected') throw each.reason
    if (!isCrash) return
    // Every lease is over, whatever it says.
    const lapsedBefore = new Date(this.now + 1e9)
    await this.store.jobs.reap({ now: this.date(), lapsedBefore, maxAttempts: MAX_ATTEMPTS, error: LOST })
  }

  async checkFloor(): Promise<void> {
    const balance = await this.store.ledger.balance(this.tenant.accountId)
    assert.ok(balance !== null && balance.available >= this.floor, `${balance?.available} is below the floor`)
  }

  async check(): Promise<void> {
    const { accountId } = this.tenant
    const entries = await this.store.ledger.entries(accountId, { limit: 10_000, before: null })
    const sum = (book: 'granted' | 'available' | 'held' | 'charged') =>
      entries.reduce((total, entry) => total + entry[book], 0)
    assert.equal(sum('granted') + sum('available') + sum('held') + sum('charged'), 0, 'the books do not add up')
    const balance = await this.store.ledger.balance(accountId)
    assert.deepEqual([balance?.available, balance?.held], [sum('available'), sum('held')])
    const holds = await this.store.ledger.holds(accountId, 1000)
    // Looked at as of the beginning, so that retention hides none; what is not there was removed after its end.
    const jobs = await Promise.all(this.jobIds.map((id) => this.tenant.find(id, START)))
    const found = jobs.filter((job) => job !== null)
    const live = found.filter(({ status }) => !isTerminal(status))
    assert.deepEqual(new Set(holds.map(({ id }) => id)), new Set(live.map(({ id }) => `job:${id}`)))
    for (const job of found) this.checkJob(job, entries)
    const closings = entries.filter(({ kind }) => kind === 'settle' || kind === 'release')
    assert.equal(closings.length, this.jobIds.length - live.length, 'every job that ended closed its hold once')
  }

  /** Whatever still waits or runs is ended, and with it the last hold. */
  async endAll(): Promise<void> {
    const { accountId } = this.tenant
    for (const id of this.jobIds) await this.store.jobs.cancel(accountId, id, START)
    await this.round([{ kind: 'crash' }])
    assert.deepEqual(await this.store.ledger.holds(accountId, 10), [])
    assert.deepEqual(await this.tenant.use(), { running: 0, queued: 0 })
  }

  checkJob(job: Job, entries: readonly LedgerEntry[]): void {
    const own = entries.filter(({ reference, kind }) => reference === `job:${job.id}` && kind !== 'refund')
    const kinds = own.map(({ kind }) => kind)
    const closing = kinds.filter((kind) => kind !== 'hold')
    assert.equal(kinds.length - closing.length, 1, 'one hold')
    assert.equal(closing.length, isTerminal(job.status) ? 1 : 0, `${job.status} after ${kinds}`)
    const charged = own.reduce((total, entry) => total + entry.charged, 0)
    const most = mostOf(job)
    // An account that cannot pay is charged less, and one whose worker took a cancel along nothing.
    assert.ok(charged >= 0 && charged <= most, `${job.status} was charged ${charged}, not at most ${most}`)
    if (job.status === 'succeeded') assert.ok(charged >= Math.min(most, PRICE.holdMicros))
  }
}

/** What the end of a job says that it costs. */
function mostOf({ status, error, startedAt, completedAt }: Job): number {
  const isOurs = status === 'failed' && error?.code !== 'node_execution_error'
  if (startedAt === null || completedAt === null || status === 'expired' || isOurs) return 0
  const forTime = Math.ceil(((completedAt.getTime() - startedAt.getTime()) / 1000) * PRICE.perSecondMicros)
  return status === 'succeeded' ? Math.max(PRICE.minimumMicros, forTime) : forTime
}

export function testLedgerModel(opener: StoreOpener, { runs = 100 } = {}): void {
  describe('the ledger under everything at once', () => {
    const store = shareStore(opener)
    test(`the books add up after each of ${runs} random interleavings`, async () => {
      const property = fc.asyncProperty(
        fc.array(round, { minLength: 3, maxLength: 20 }),
        fc.constantFrom(0, -100),
        async (turns, floor) => {
          const run = new Run(
            await Tenant.metered(store(), { micros: GIFT, floor, maxRunning: 3, maxQueued: 4 }),
            floor,
          )
          for (const { steps, ms } of turns) {
            await run.round(steps)
            await run.checkFloor()
            run.now += ms
          }
          await run.check()
          await run.endAll()
        },
      )
      await fc.assert(property, { numRuns: runs })
      assert.deepEqual((await store().ledger.check()).faults, [])
      assert.equal(await store().accounts.repairCounters(), 0)
    })
  })
}
