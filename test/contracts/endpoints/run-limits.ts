/** How every store keeps the bounds of scopes: exactly, in the transaction that records a job, and only for jobs that name some. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { NewBatch } from '../../../src/domain/jobs/batches/batch-store.ts'
import type { NewJob } from '../../../src/domain/jobs/job-store.ts'
import { NO_LIMITS, type RunBound, type RunLimits } from '../../../src/domain/jobs/limits/run-limits.ts'
import {
  at,
  keyClaim,
  newJobId,
  newOutput,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
  type WholeStoreUnderTest,
} from '../store-under-test.ts'

const HOUR_MS = 3_600_000
const PRICE = { perSecondMicros: 10, minimumMicros: 40, holdMicros: 100 }

function boundOf(limits: Partial<RunLimits>, scope = 'endpoint:poster'): RunBound {
  return { scope, name: 'the endpoint poster', limits: { ...NO_LIMITS, ...limits } }
}

export function testRunLimits(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('bounds of runs', () => {
    const store = shareStore(opener)
    const submit = (tenant: Tenant, within: readonly RunBound[], fields: Partial<NewJob> = {}, key?: string) =>
      store().jobs.submit(tenant.newJob({ within, ...fields }), key === undefined ? null : keyClaim(key))
    const outcomeOf = async (...args: Parameters<typeof submit>) => (await submit(...args)).outcome
    const batchOf = (tenant: Tenant, jobs: readonly Partial<NewJob>[], fields: Partial<NewBatch> = {}) => ({
      ...{ id: newJobId(), isWhole: false, digest: 'd', total: jobs.length, refused: [] },
      jobs: jobs.map((job, index) => ({ index, job: tenant.newJob(job) })),
      ...fields,
    })
    async function useOf({ accountId }: Tenant, scope = 'endpoint:poster') {
      const use = (await store().runLimits.findUse(accountId, [scope])).get(scope)
      if (use === undefined) return null
      const { hour, month, ever } = use.tallies
      return {
        inFlight: use.inFlight,
        hour: [hour.runs, hour.micros],
        month: month.runs,
        ever: [ever.runs, ever.micros],
      }
    }

    test('of 50 simultaneous submits exactly as many are in flight as allowed, and an end makes room for one', async () => {
      const tenant = await Tenant.create(store())
      const within = [boundOf({ inFlight: 5 })]
      const outcomes = await Promise.all(Array.from({ length: 50 }, () => outcomeOf(tenant, within)))
      assert.equal(outcomes.filter((outcome) => outcome === 'queued').length, 5)
      assert.equal(outcomes.filter((outcome) => outcome === 'out_of_bounds').length, 45)
      assert.deepEqual(await tenant.use(), { running: 0, queued: 5 })
      const claim = await tenant.claim()
      assert.equal(await outcomeOf(tenant, within), 'out_of_bounds')
      await tenant.succeed({ jobId: claim!.job.id, leaseId: claim!.leaseId })
      assert.deepEqual([await outcomeOf(tenant, within), await outcomeOf(tenant, within)], ['queued', 'out_of_bounds'])
      assert.deepEqual(await useOf(tenant), { inFlight: 5, hour: [6, 0], month: 6, ever: [6, 0] })
    })

    test('a refusal says which bound is in the way and until when; canceled, failed and expired jobs give their place back', async () => {
      const tenant = await Tenant.create(store())
      const within = [boundOf({ inFlight: 1 })]
      const first = await tenant.submit({ within })
      assert.deepEqual(await submit(tenant, within), {
        outcome: 'out_of_bounds',
        excess: { name: 'the endpoint poster', limit: 'in_flight', period: null, most: 1, until: null },
      })
      await store().jobs.cancel(tenant.accountId, first.id, START)
      const { lease } = await tenant.run({ within })
      await store().jobs.commit(lease, { finish: { status: 'failed', from: ['running'], at: START, error: null } })
      await tenant.submit({ within, expiresAt: at(10) })
      await store().jobs.expire(at(20), 100)
      await tenant.submit({ within })
    })

    test('a period takes so many runs, whatever becomes of them, and the next one as many again', async () => {
      const tenant = await Tenant.create(store())
      const within = [boundOf({ runs: { hour: 2, month: 3 } })]
      const first = await tenant.submit({ within, createdAt: at(HOUR_MS - 1) })
      await store().jobs.cancel(tenant.accountId, first.id, START)
      await tenant.submit({ within, createdAt: at(HOUR_MS - 1) })
      const refused = await submit(tenant, within, { createdAt: at(HOUR_MS - 1) })
      const excess = { name: 'the endpoint poster', limit: 'runs', period: 'hour', most: 2, until: at(HOUR_MS) }
      assert.deepEqual(refused, { outcome: 'out_of_bounds', excess })
      await tenant.submit({ within, createdAt: at(HOUR_MS) })
      // By a clock that is behind: it counts in the hour that has begun.
      const behind = await submit(tenant, within, { createdAt: at(HOUR_MS - 1) })
      const month = { name: 'the endpoint poster', limit: 'runs', period: 'month', most: 3 }
      assert.deepEqual(behind, {
        outcome: 'out_of_bounds',
        excess: { ...month, until: new Date('2026-02-01T00:00:00.000Z') },
      })
      assert.deepEqual(await useOf(tenant), { inFlight: 2, hour: [1, 0], month: 3, ever: [3, 0] })
    })

    test('money counts by the hold while the job lives and by the charge afterwards; a refused job counts for nothing', async () => {
      const tenant = await Tenant.metered(store())
      const within = [boundOf({ spend: { day: 250 } })]
      const running = await tenant.run({ within, price: PRICE })
      await tenant.submit({ within, price: PRICE })
      const excess = { name: 'the endpoint poster', limit: 'spend', period: 'day', most: 250, until: at(24 * HOUR_MS) }
      assert.deepEqual(await submit(tenant, within, { price: PRICE }), { outcome: 'out_of_bounds', excess })
      assert.deepEqual(await useOf(tenant), { inFlight: 2, hour: [2, 200], month: 2, ever: [2, 200] })
      await tenant.succeed(running.lease, at(5000))
      assert.deepEqual(await useOf(tenant), { inFlight: 1, hour: [2, 150], month: 2, ever: [2, 150] })
      await tenant.submit({ within, price: PRICE })
      assert.equal(await outcomeOf(tenant, within, { price: PRICE }), 'out_of_bounds')
      // What costs nothing fits into every budget.
      await tenant.submit({ within })
      assert.equal((await tenant.store.ledger.balance(tenant.accountId))?.held, 200)
      assert.deepEqual((await store().ledger.check()).faults, [])
    })

    test('of 50 simultaneous submits exactly as many are taken as the budget covers', async () => {
      const tenant = await Tenant.metered(store())
      const within = [boundOf({ spend: { month: 470 } })]
      const outcomes = await Promise.all(Array.from({ length: 50 }, () => outcomeOf(tenant, within, { price: PRICE })))
      assert.equal(outcomes.filter((outcome) => outcome === 'queued').length, 4)
      assert.equal((await tenant.store.ledger.balance(tenant.accountId))?.held, 400)
    })

    test('what has ended is noticed in time, however many jobs came before', async () => {
      const tenant = await Tenant.create(store())
      const within = [boundOf({ inFlight: 150 })]
      const jobs = await Promise.all(Array.from({ length: 150 }, () => tenant.submit({ within })))
      for (const { id } of jobs.slice(10)) await store().jobs.cancel(tenant.accountId, id, START)
      const outcomes = await Promise.all(Array.from({ length: 150 }, () => outcomeOf(tenant, within)))
      assert.equal(outcomes.filter((outcome) => outcome === 'queued').length, 140)
      assert.equal((await useOf(tenant))?.inFlight, 150)
    })

    test('the same key counts once, and so does a batch that is sent again', async () => {
      const tenant = await Tenant.create(store())
      const within = [boundOf({ runs: { day: 3 } })]
      const outcomes = await Promise.all(Array.from({ length: 10 }, () => outcomeOf(tenant, within, {}, 'same')))
      assert.equal(outcomes.filter((outcome) => outcome === 'queued').length, 1)
      assert.equal(outcomes.filter((outcome) => outcome === 'key_reused').length, 9)
      const batch = batchOf(tenant, [{ within }, { within }])
      assert.equal((await store().batches.submit(batch, keyClaim('batch'))).outcome, 'queued')
      const again = batchOf(tenant, [{ within }, { within }])
      assert.equal((await store().batches.submit(again, keyClaim('batch'))).outcome, 'key_reused')
      assert.deepEqual((await useOf(tenant))?.ever, [3, 0])
    })

    test('every item of a batch counts: one that must be whole is refused with the room there is, another one is cut', async () => {
      const tenant = await Tenant.create(store())
      const within = [boundOf({ inFlight: 3 })]
      const jobs = Array.from({ length: 5 }, () => ({ within }))
      const whole = await store().batches.submit(batchOf(tenant, jobs, { isWhole: true }), null)
      const excess = { name: 'the endpoint poster', limit: 'in_flight', period: null, most: 3, until: null }
      assert.deepEqual(whole, { outcome: 'run_limit', room: 3, excess })
      assert.equal(await useOf(tenant), null)
      const part = await store().batches.submit(batchOf(tenant, jobs), null)
      assert.deepEqual(part, { outcome: 'queued', accepted: 3, limitedBy: 'run_limit' })
      assert.equal((await useOf(tenant))?.inFlight, 3)
      const costly = [boundOf({ spend: { ever: 150 } }, 'link:a')]
      const paid = batchOf(tenant, [
        { within: costly, price: PRICE },
        { within: costly, price: PRICE },
      ])
      assert.deepEqual(await store().batches.submit(paid, null), {
        outcome: 'queued',
        accepted: 1,
        limitedBy: 'spend_limit',
      })
    })

    test('a job has to fit into all of its bounds, and counts in all or none; scopes of accounts are their own', async () => {
      const tenant = await Tenant.create(store())
      const [wide, narrow] = [boundOf({ inFlight: 9 }), boundOf({ runs: { ever: 1 } }, 'link:a')]
      assert.deepEqual(
        [
          await outcomeOf(tenant, [wide, narrow]),
          await outcomeOf(tenant, [wide, narrow]),
          await outcomeOf(tenant, [wide]),
        ],
        ['queued', 'out_of_bounds', 'queued'],
      )
      assert.deepEqual([(await useOf(tenant))?.inFlight, (await useOf(tenant, 'link:a'))?.inFlight], [2, 1])
      const other = await Tenant.create(store())
      assert.equal(await outcomeOf(other, [narrow]), 'queued')
      await store().runLimits.forget(tenant.accountId, 'link:a')
      assert.equal(await useOf(tenant, 'link:a'), null)
      assert.equal(await outcomeOf(tenant, [narrow]), 'queued')
      assert.equal((await useOf(other, 'link:a'))?.ever[0], 1)
    })

    test('a job that is refused for another reason, or taken back, leaves no trace', async () => {
      const tenant = await Tenant.metered(store(), { micros: 50, maxQueued: 1 })
      const within = [boundOf({ inFlight: 5 })]
      assert.equal(await outcomeOf(tenant, within, { price: PRICE }), 'insufficient_credits')
      const { lease } = await tenant.run({ within })
      await tenant.submit({ within })
      assert.equal(await outcomeOf(tenant, within), 'queue_full')
      assert.equal(await store().jobs.withdraw(lease, START), true)
      assert.deepEqual(await useOf(tenant), { inFlight: 1, hour: [1, 0], month: 1, ever: [1, 0] })
    })

    test('a job that an earlier result answers counts as a run, and needs no place', async () => {
      const tenant = await Tenant.create(store())
      const { lease } = await tenant.run({ keepsResult: true })
      const finish = { status: 'succeeded', from: ['running'], at: START, error: null, resultKey: 'k' } as const
      await store().jobs.commit(lease, { outputs: [newOutput()], finish })
      const within = [boundOf({ inFlight: 1, runs: { day: 2 } })]
      await tenant.submit({ within })
      const answer = () =>
        store().jobs.answerAgain(
          tenant.newJob({ within, createdAt: at(5) }),
          { key: 'k', assetIds: [randomUUID()] },
          null,
        )
      assert.deepEqual([(await answer()).outcome, (await answer()).outcome], ['answered', 'out_of_bounds'])
      assert.deepEqual(await useOf(tenant), { inFlight: 1, hour: [2, 0], month: 2, ever: [2, 0] })
    })

    test('jobs without bounds are not counted', async () => {
      const tenant = await Tenant.create(store())
      await tenant.submit()
      assert.equal(await useOf(tenant), null)
    })
  })
}
