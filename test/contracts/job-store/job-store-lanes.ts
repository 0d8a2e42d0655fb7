/** Lanes: a job goes only to an engine that serves its lane, first to one that has its weights, and is never overtaken for long. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { EngineOffer, LaneRank } from '../../../src/domain/engine/fleet/lane-offers.ts'
import type { Claim } from '../../../src/domain/jobs/job-store.ts'
import { at, START, type StoreOpener, shareStore, Tenant, withStore } from '../store-under-test.ts'

/** An engine that serves these lanes, each with its rank. */
function engine(engineId: string, ranks: Readonly<Record<string, LaneRank>>): EngineOffer {
  return { engineId, lanes: Object.entries(ranks).map(([lane, rank]) => ({ lane, rank })) }
}

async function claimAll(tenant: Tenant, engines: readonly EngineOffer[], maxOvertakes = 10): Promise<Claim[]> {
  const claims: Claim[] = []
  for (;;) {
    const claim = await tenant.claim({ engines, maxOvertakes })
    if (claim === null) return claims
    claims.push(claim)
  }
}

export function testJobStoreLanes(opener: StoreOpener): void {
  describe('lanes', () => {
    const store = shareStore(opener)

    test('a job goes only to an engine that serves its lane, and the claim names both', async () => {
      const tenant = await Tenant.create(store())
      const job = await tenant.submit({ needs: 'flux' })
      assert.equal(await tenant.claim({ engines: [engine('small', { sdxl: 0 })] }), null)
      assert.equal(await tenant.claim({ engines: [] }), null)
      const claim = await tenant.claim({
        engines: [engine('small', { sdxl: 0 }), engine('large', { sdxl: 0, flux: 2 })],
      })
      assert.deepEqual([claim?.job.id, claim?.engineId, claim?.needs], [job.id, 'large', 'flux'])
      assert.deepEqual(await tenant.use(), { running: 1, queued: 0 })
    })

    test('lanes of the same rank are served in submit order', async () => {
      const tenant = await Tenant.create(store())
      const jobs = [
        await tenant.submit({ needs: 'c' }),
        await tenant.submit({ needs: 'a' }),
        await tenant.submit({ needs: 'b' }),
        await tenant.submit({ needs: 'a' }),
      ]
      const claims = await claimAll(tenant, [engine('one', { a: 2, b: 2, c: 2 })])
      assert.deepEqual(
        claims.map(({ job }) => job.id),
        jobs.map(({ id }) => id),
      )
    })

    test('a lane of better rank goes first, but no job is overtaken by more than the bound', async () => {
      const tenant = await Tenant.create(store(), { maxRunning: 100 })
      const cold = await tenant.submit({ needs: 'cold' })
      for (let count = 0; count < 10; count += 1) await tenant.submit({ needs: 'loaded' })
      const claims = await claimAll(tenant, [engine('one', { loaded: 0, cold: 2 })], 4)
      assert.equal(claims.length, 11)
      assert.equal(
        claims.findIndex(({ job }) => job.id === cold.id),
        4,
      )
    })

    test('without a bound to spend, plain order holds whatever is loaded', async () => {
      const tenant = await Tenant.create(store())
      const cold = await tenant.submit({ needs: 'cold' })
      await tenant.submit({ needs: 'loaded' })
      const claim = await tenant.claim({ engines: [engine('one', { loaded: 0, cold: 2 })], maxOvertakes: 0 })
      assert.equal(claim?.job.id, cold.id)
    })

    test('of two engines with room the one with the weights gets the job, else the one that stands first', async () => {
      const tenant = await Tenant.create(store())
      await tenant.submit({ needs: 'a' })
      await tenant.submit({ needs: 'b' })
      const engines = [engine('first', { a: 3, b: 2 }), engine('second', { a: 0, b: 2 })]
      assert.deepEqual(
        (await claimAll(tenant, engines)).map(({ needs, engineId }) => [needs, engineId]),
        [
          ['a', 'second'],
          ['b', 'first'],
        ],
      )
    })

    test('priority inside an account is stronger than what is loaded', async () => {
      const tenant = await Tenant.create(store())
      await tenant.submit({ needs: 'loaded' })
      const urgent = await tenant.submit({ needs: 'cold', priority: 1 })
      const claim = await tenant.claim({ engines: [engine('one', { loaded: 0, cold: 3 })] })
      assert.equal(claim?.job.id, urgent.id)
    })

    test('fairness between accounts is stronger than what is loaded', async () => {
      const busy = await Tenant.create(store())
      const other = await busy.neighbour()
      for (let count = 0; count < 4; count += 1) await busy.submit({ needs: 'loaded' })
      await other.submit({ needs: 'cold' })
      const owners = (await claimAll(busy, [engine('one', { loaded: 0, cold: 3 })])).map(({ job }) =>
        job.accountId === other.accountId ? 'other' : 'busy',
      )
      assert.deepEqual(owners, ['busy', 'other', 'busy', 'busy', 'busy'])
    })

    test('an account at its limit does not stand in the way of another', async () => {
      const busy = await Tenant.create(store(), { maxRunning: 1 })
      const other = await busy.neighbour()
      for (let count = 0; count < 20; count += 1) await busy.submit({ needs: 'a', priority: 1000 })
      const job = await other.submit({ needs: 'b' })
      const engines = [engine('one', { a: 0, b: 3 })]
      await busy.claim({ engines })
      assert.equal((await busy.claim({ engines }))?.job.id, job.id)
      assert.equal(await busy.claim({ engines }), null)
    })

    test('competing claimers for several engines never share a job nor exceed a limit', async () => {
      const tenants = [await Tenant.create(store(), { maxRunning: 5 })]
      tenants.push(await tenants[0].neighbour({ maxRunning: 7 }))
      for (const tenant of tenants) {
        for (let count = 0; count < 20; count += 1) await tenant.submit({ needs: 'abc'[count % 3] })
      }
      const engines = [engine('one', { a: 0, b: 1 }), engine('two', { b: 0, c: 2 })]
      const claims = await Promise.all(Array.from({ length: 40 }, () => tenants[0].claim({ engines })))
      const claimed = claims.filter((claim) => claim !== null)
      assert.equal(new Set(claimed.map(({ job }) => job.id)).size, 12)
      assert.equal(claimed.length, 12)
    })

    test('a job whose time is over, and a job that was canceled, do not hold up their lane', async () => {
      const tenant = await Tenant.create(store())
      await tenant.submit({ needs: 'a', expiresAt: at(1000) })
      const canceled = await tenant.submit({ needs: 'a' })
      const next = await tenant.submit({ needs: 'a' })
      await store().jobs.cancel(tenant.accountId, canceled.id, START)
      const claim = await tenant.claim({ now: at(1000), engines: [engine('one', { a: 0 })] })
      assert.equal(claim?.job.id, next.id)
    })

    test('a released job waits in its lane again, at its former position', async () => {
      const tenant = await Tenant.create(store())
      const job = await tenant.submit({ needs: 'a' })
      await tenant.submit({ needs: 'a' })
      const engines = [engine('one', { a: 0 })]
      const claim = await tenant.claim({ engines })
      await store().jobs.release([{ jobId: job.id, leaseId: claim?.leaseId ?? '' }], START)
      assert.equal((await tenant.claim({ engines }))?.job.id, job.id)
    })

    test('lanes that wait and are not known are found with a workflow of theirs', async () => {
      const { pool, lane } = { pool: randomUUID(), lane: randomUUID() }
      const tenant = new Tenant(store(), (await Tenant.create(store())).accountId, pool)
      const other = await tenant.neighbour()
      await tenant.submit({ needs: `${lane}-a`, workflow: '{"1":{}}' })
      await other.submit({ needs: `${lane}-a`, workflow: '{"1":{}}' })
      await other.submit({ needs: `${lane}-b`, workflow: '{"2":{}}' })
      await other.submit({ needs: `${lane}-c` })
      await other.submit({ needs: `${lane}-d`, pool: `${pool}-2`, workflow: '{"4":{}}' })
      await other.submit({})
      const found = await store().jobs.findLanes([`${lane}-c`])
      assert.deepEqual(
        found.filter((each) => each.lane.startsWith(lane)),
        [
          { pool, lane: `${lane}-a`, workflow: '{"1":{}}' },
          { pool, lane: `${lane}-b`, workflow: '{"2":{}}' },
          { pool: `${pool}-2`, lane: `${lane}-d`, workflow: '{"4":{}}' },
        ],
      )
      const behind = await store().jobs.findLanes([], { pool, lane: `${lane}-b` })
      assert.deepEqual(
        behind.filter((each) => each.lane.startsWith(lane)).map((each) => each.lane),
        [`${lane}-c`, `${lane}-d`],
      )
    })

    test('jobs that stand in no lane can be put into one; an engine that takes everything takes them all', () =>
      withStore(opener, async (fresh) => {
        const tenant = await Tenant.create(fresh)
        const job = await tenant.submit({})
        const engines = [engine('one', { '*': 0 })]
        assert.equal(await tenant.claim({ engines }), null)
        assert.equal(await fresh.jobs.joinLane('*'), 1)
        assert.equal(await fresh.jobs.joinLane('*'), 0)
        await tenant.submit({ needs: 'a' })
        assert.equal((await tenant.claim({ engines }))?.job.id, job.id)
        assert.equal((await tenant.claim())?.needs, 'a')
      }))
  })
}
