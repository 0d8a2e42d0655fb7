/** Runs that outlive who followed them: their leases end, and somebody else takes them on, once. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { at, newOutput, type StoreOpener, shareStore, Tenant } from '../store-under-test.ts'
import { REAP } from './run-samples.ts'

export function testJobStoreAdoptions(opener: StoreOpener): void {
  describe('adopted runs', () => {
    const store = shareStore(opener)
    const SERVER = [{ engineId: 'server', lanes: null }]

    async function runOnServer(tenant: Tenant) {
      await tenant.submit()
      const claim = await tenant.claim({ engines: SERVER })
      assert.ok(claim !== null)
      return { claim, lease: { jobId: claim.job.id, leaseId: claim.leaseId } }
    }

    const adopt = (tenant: Tenant, now = at(30_001), engineIds = ['server', 'another']) =>
      store().jobs.adopt({
        ...{ pool: tenant.pool, workerId: 'adopter', leaseId: randomUUID(), now, engineIds },
        leaseUntil: new Date(now.getTime() + 30_000),
      })

    test('a run whose lease ran out is taken on as it stands, under another lease and the id that it began with', async () => {
      const tenant = await Tenant.create(store())
      const { claim, lease } = await runOnServer(tenant)
      const output = newOutput()
      await store().jobs.commit(lease, { outputs: [output] })
      assert.equal(await adopt(tenant, at(1)), null, 'its lease still stands')
      const before = await tenant.find(claim.job.id)
      const adopted = await adopt(tenant)
      assert.deepEqual(
        [adopted?.job.id, adopted?.runId, adopted?.job.attempt, adopted?.engineId, adopted?.workflow],
        [claim.job.id, lease.leaseId, 1, 'server', claim.workflow],
      )
      assert.deepEqual(adopted?.earlierOutputs, [output])
      assert.deepEqual(await tenant.find(claim.job.id), before, 'nobody sees a difference')
      assert.deepEqual(await tenant.use(), { running: 1, queued: 0 })
      assert.equal((await tenant.succeed(lease)).outcome, 'lost')
      const mine = { jobId: claim.job.id, leaseId: adopted?.leaseId ?? '' }
      assert.equal((await store().jobs.commit(mine, { outputs: [output] })).outcome, 'committed')
      assert.deepEqual((await tenant.find(claim.job.id))?.outputs, [output])
      const again = await adopt(tenant, at(90_000))
      assert.equal(again?.runId, lease.leaseId, 'the id stays however often it changes hands')
      assert.equal((await tenant.succeed({ ...mine, leaseId: again?.leaseId ?? '' })).outcome, 'committed')
      assert.equal(await adopt(tenant, at(900_000)), null)
    })

    test('of many who ask at once one gets the run, and nobody gets one of another pool or engine', async () => {
      const tenant = await Tenant.create(store())
      const { claim } = await runOnServer(tenant)
      assert.equal(await adopt(await Tenant.create(store())), null)
      assert.equal(await adopt(tenant, at(30_001), ['another']), null)
      assert.equal(await adopt(tenant, at(30_001), []), null)
      const taken = await Promise.all(Array.from({ length: 8 }, () => adopt(tenant)))
      assert.deepEqual(
        taken.flatMap((each) => (each === null ? [] : [each.job.id])),
        [claim.job.id],
      )
    })

    test('a run that was left can be adopted at once, and its holder can still bring it until then', async () => {
      const tenant = await Tenant.create(store())
      const { claim, lease } = await runOnServer(tenant)
      assert.equal(await store().jobs.leave([lease], at(5)), 1)
      assert.equal(await store().jobs.leave([{ ...lease, leaseId: randomUUID() }], at(5)), 0)
      assert.equal((await store().jobs.renew([lease], at(40_000))).length, 1)
      assert.equal(await adopt(tenant, at(6)), null)
      await store().jobs.leave([lease], at(7))
      await store().jobs.cancel(tenant.accountId, claim.job.id, at(8))
      const adopted = await adopt(tenant, at(8))
      assert.equal(adopted?.job.status, 'canceling')
      assert.deepEqual(await store().jobs.renew([lease], at(40_000)), [])
    })

    test('the sweep spares runs on engines that may still be asked, until they were adopted too often in a row', async () => {
      const tenant = await Tenant.create(store())
      const { claim, lease } = await runOnServer(tenant)
      const { job: other } = await tenant.run()
      const touched = async (options = {}) =>
        (await store().jobs.reap({ ...REAP, spared: ['server'], ...options }))
          .filter(({ accountId }) => accountId === tenant.accountId)
          .map(({ jobId, status }) => [jobId, status])
      const runs = await store().jobs.findRuns({ lapsedBefore: at(30_001) })
      assert.deepEqual(
        runs.filter(({ jobId }) => jobId === claim.job.id),
        [{ ...lease, attempt: 1, runId: lease.leaseId, engineId: 'server', leaseUntil: at(30_000) }],
      )
      assert.deepEqual(await touched(), [[other.id, 'queued']])
      let now = 30_001
      let count = 0
      for (; (await adopt(tenant, at(now))) !== null; now += 30_002) count += 1
      assert.ok(count > 10 && count < 60, `${count} adoptions, each half a minute after the one before`)
      assert.deepEqual(await touched({ now: at(now) }), [[claim.job.id, 'queued']])
      const next = await tenant.claim({ now: at(now), engines: SERVER })
      assert.deepEqual([next?.runId, next?.job.attempt], [undefined, 2])
      const after = await adopt(tenant, at(now + 3_600_000))
      assert.equal(after?.runId, next?.leaseId, 'what lies long ago does not count')
    })
  })
}
