/** What attempts took of servers: one row for each, whoever ends it, and sums of them that agree. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Lease } from '../../../src/domain/jobs/job-store.ts'
import type { GpuGroup } from '../../../src/domain/jobs/read/gpu-report.ts'
import type { GpuUse } from '../../../src/domain/jobs/run/gpu-use.ts'
import {
  at,
  DAY_MS,
  LOST,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
  type WholeStoreUnderTest,
} from '../store-under-test.ts'

const LANE = { lane: 'lane', rank: 0, foreseenMs: 1000 }
const on = (engineId: string) => [{ engineId, lanes: [LANE] }]
const USE: GpuUse = {
  ms: 4000,
  classes: { KSampler: 3000, VAEDecode: 500 },
  weights: ['a.safetensors', 'b.safetensors'],
}
const LATER = at(10_000)

export function testGpuUse(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('what attempts took of servers', () => {
    const store = shareStore(opener)

    async function begin(tenant: Tenant, engineId = 'gpu1', now = START): Promise<Lease> {
      await tenant.submit({ needs: 'lane' })
      return claim(tenant, engineId, now)
    }
    async function claim(tenant: Tenant, engineId = 'gpu1', now = START): Promise<Lease> {
      const taken = await tenant.claim({ now, engines: on(engineId) })
      if (taken === null) throw new Error('the job could not be claimed')
      return { jobId: taken.job.id, leaseId: taken.leaseId }
    }
    const end = (lease: Lease, gpu: GpuUse | null, when = LATER) =>
      store().jobs.commit(lease, {
        finish: { status: 'succeeded', from: ['running', 'canceling'], at: when, error: null, gpu },
      })
    const read = (accountId: string | null, by: GpuGroup = 'day', limit = 100) =>
      store().gpuUse.read({ accountId, edges: [START, at(DAY_MS), at(2 * DAY_MS)], by, limit })
    const ofJob = (tenant: Tenant, { jobId }: Lease) => store().gpuUse.ofJob(tenant.accountId, jobId)
    const reap = (now: Date) => store().jobs.reap({ now, maxAttempts: 3, error: LOST })

    test('an end brings it, once however often it is written, and by every group', async () => {
      const tenant = await Tenant.create(store())
      const lease = await begin(tenant)
      for (let time = 0; time < 2; time++) assert.equal((await end(lease, USE)).outcome, 'committed')
      const groupsBy = async (by: GpuGroup) => (await read(tenant.accountId, by)).groups
      assert.deepEqual((await read(tenant.accountId)).days, [{ place: 0, ms: 4000, runs: 1 }])
      assert.deepEqual(await groupsBy('day'), [])
      assert.deepEqual(await groupsBy('pool'), [{ name: tenant.pool, ms: 4000, runs: 1 }])
      assert.deepEqual(await groupsBy('server'), [{ name: 'gpu1', ms: 4000, runs: 1 }])
      assert.deepEqual(await groupsBy('job'), [{ name: lease.jobId, ms: 4000, runs: 1 }])
      assert.deepEqual(await groupsBy('account'), [{ name: tenant.accountId, ms: 4000, runs: 1 }])
      assert.deepEqual(await groupsBy('class'), [
        { name: 'KSampler', ms: 3000, runs: 1 },
        { name: 'VAEDecode', ms: 500, runs: 1 },
      ])
      assert.deepEqual(await groupsBy('weights'), [
        { name: 'a.safetensors', ms: 4000, runs: 1 },
        { name: 'b.safetensors', ms: 4000, runs: 1 },
      ])
      assert.deepEqual(await ofJob(tenant, lease), { ms: 4000, runs: 1 })
    })

    test('each attempt of a job counts, and what is given back before its end too', async () => {
      const tenant = await Tenant.create(store())
      const first = await begin(tenant)
      await store().jobs.release([{ ...first, isSpent: true, gpu: { ...USE, ms: 700 } }], at(1000))
      const second = await claim(tenant, 'gpu2', at(2000))
      await store().jobs.release([{ ...second, gpu: { ...USE, ms: 300 } }], at(3000))
      const third = await claim(tenant, 'gpu2', at(4000))
      await store().jobs.cancel(tenant.accountId, third.jobId, at(5000))
      await store().jobs.release([{ ...third, gpu: { ...USE, ms: 1000 } }], at(6000))
      assert.deepEqual(await ofJob(tenant, first), { ms: 2000, runs: 3 })
      assert.deepEqual((await read(tenant.accountId, 'server')).groups, [
        { name: 'gpu2', ms: 1300, runs: 2 },
        { name: 'gpu1', ms: 700, runs: 1 },
      ])
    })

    test('a run whose process is gone counts until its lease ended, but none of the built-in engine', async () => {
      const tenant = await Tenant.create(store())
      const lease = await begin(tenant)
      await reap(at(DAY_MS))
      assert.deepEqual(await ofJob(tenant, lease), { ms: 30_000, runs: 1 })
      for (const engineId of ['embedded', 'embedded-0123abcd', 'embedded@key']) {
        const other = await Tenant.create(store())
        const own = await begin(other, engineId)
        await reap(at(DAY_MS))
        assert.deepEqual(await ofJob(other, own), { ms: 0, runs: 0 }, engineId)
      }
    })

    test('a run that outlives the retention of its job counts until then', async () => {
      const tenant = await Tenant.create(store())
      await tenant.submit({ needs: 'lane', expiresAt: at(5000) })
      const lease = await claim(tenant)
      await store().jobs.expire(at(5000), 100)
      assert.deepEqual(await ofJob(tenant, lease), { ms: 5000, runs: 1 })
    })

    test('nothing counts of what no server computed, or of a job that was never submitted', async () => {
      const tenant = await Tenant.create(store())
      const idle = await begin(tenant)
      await end(idle, null)
      await store().jobs.withdraw(await begin(tenant), LATER)
      const waiting = await tenant.submit({ needs: 'lane' })
      await store().jobs.cancel(tenant.accountId, waiting.id, LATER)
      assert.deepEqual(await read(tenant.accountId, 'server'), { days: [], groups: [] })
    })

    test('nobody computes for longer than the attempt lasted, nor nodes for longer than that', async () => {
      const tenant = await Tenant.create(store())
      const lease = await begin(tenant)
      await end(lease, { ms: 1e12, classes: { A: 30_000, B: 10_000 }, weights: [] })
      assert.deepEqual(await ofJob(tenant, lease), { ms: 10_000, runs: 1 })
      assert.deepEqual((await read(tenant.accountId, 'class')).groups, [
        { name: 'A', ms: 7500, runs: 1 },
        { name: 'B', ms: 2500, runs: 1 },
      ])
    })

    test('names of every kind are kept', async () => {
      const tenant = await Tenant.create(store())
      const classes = { __proto__x: 3, 'a"b\\': 2, 'nul\0\ud800': 1 }
      await end(await begin(tenant), { ms: 100, classes, weights: ['ü', 'ü', ''] })
      assert.deepEqual(
        (await read(tenant.accountId, 'class')).groups.map(({ name }) => name),
        ['__proto__x', 'a"b\\', 'nul\ufffd'],
      )
      assert.equal((await read(tenant.accountId, 'weights')).groups.length, 2)
    })

    test('it counts on the day on which it ended, those that took most are told, and others are not counted in', async () => {
      const [tenant, other] = [await Tenant.create(store()), await Tenant.create(store())]
      await end(await begin(tenant), { ...USE, ms: 10 }, at(DAY_MS - 1))
      await end(await begin(tenant, 'gpu2', at(DAY_MS - 30)), { ...USE, ms: 30 }, at(DAY_MS))
      await end(await begin(tenant, 'gpu3'), { ...USE, ms: 50 }, at(2 * DAY_MS))
      await end(await begin(other, 'gpu4'), USE)
      const sums = await read(tenant.accountId, 'server', 1)
      assert.deepEqual(sums.days, [
        { place: 0, ms: 10, runs: 1 },
        { place: 1, ms: 30, runs: 1 },
      ])
      assert.deepEqual(sums.groups, [{ name: 'gpu2', ms: 30, runs: 1 }])
      const all = (await read(null, 'account')).groups
      assert.ok([tenant, other].every(({ accountId }) => all.some(({ name }) => name === accountId)))
      assert.deepEqual(await store().gpuUse.ofJob(randomUUID(), (await begin(other)).jobId), { ms: 0, runs: 0 })
    })

    test('what no report asks for is forgotten, the oldest first', async () => {
      const tenant = await Tenant.create(store())
      const early = -1000 * DAY_MS
      for (const offset of [0, 1, 2]) {
        const lease = await begin(tenant, 'gpu1', at(early))
        await end(lease, { ...USE, ms: 1 + offset }, at(early + DAY_MS * (1 + offset)))
      }
      assert.equal(await store().gpuUse.sweep(at(early + 2.5 * DAY_MS), 1), 1)
      assert.equal(await store().gpuUse.sweep(at(early + 2.5 * DAY_MS), 10), 1)
      assert.equal(await store().gpuUse.sweep(at(early + 2.5 * DAY_MS), 10), 0)
      const edges = [at(early), at(early + 10 * DAY_MS)]
      const { days } = await store().gpuUse.read({ accountId: tenant.accountId, edges, by: 'day', limit: 1 })
      assert.deepEqual(days, [{ place: 0, ms: 3, runs: 1 }])
    })
  })
}
