/** How every store keeps deployments and the load of their pools. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Deployment } from '../../../src/domain/deployments/deployment.ts'
import {
  at,
  keyClaim,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
  type WholeStoreUnderTest,
  withStore,
} from '../store-under-test.ts'

export function newDeployment(fields: Partial<Deployment> = {}): Deployment {
  const settings = { accountId: null, workers: 2, idleAfterMs: null }
  return { id: randomUUID(), ...settings, state: 'provisioning', createdAt: START, changedAt: START, ...fields }
}

export function testDeploymentStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('deployments in the store', () => {
    const store = shareStore(opener)

    test('are given back as they were put in, by id, and an id is there once', async () => {
      await withStore(opener, async ({ deployments }) => {
        const [b, a] = [newDeployment({ id: 'b', accountId: 'x', idleAfterMs: 5 }), newDeployment({ id: 'a' })]
        assert.deepEqual([await deployments.create(b), await deployments.create(a)], [true, true])
        assert.equal(await deployments.create({ ...a, workers: 9 }), false)
        assert.deepEqual(await deployments.list(), [a, b])
      })
    })

    test('move from the states that are named and from no other', async () => {
      const { deployments } = store()
      const made = newDeployment()
      await deployments.create(made)
      const move = { id: made.id, from: ['provisioning'], to: 'ready', at: at(5) } as const
      assert.deepEqual(await deployments.move(move), { ...made, state: 'ready', changedAt: at(5) })
      assert.equal(await deployments.move(move), null)
      assert.equal(await deployments.move({ ...move, id: randomUUID() }), null)
      const settings = { id: made.id, workers: 7, idleAfterMs: 9, at: at(6) }
      const changed = { ...made, state: 'ready', workers: 7, idleAfterMs: 9, changedAt: at(6) }
      assert.deepEqual(await deployments.configure(settings), changed)
      assert.equal(await deployments.configure({ ...settings, id: randomUUID() }), null)
    })

    test('stop only once no job of their pool waits or runs, where that is asked for', async () => {
      const { deployments } = store()
      const tenant = await Tenant.create(store())
      await deployments.create(newDeployment({ id: tenant.pool, state: 'ready' }))
      const { lease } = await tenant.run()
      await tenant.submit()
      await deployments.move({ id: tenant.pool, from: ['ready'], to: 'draining', at: at(1) })
      const stop = { id: tenant.pool, from: ['draining'], to: 'stopped', at: at(1), onlyWhenEmpty: true } as const
      assert.equal(await deployments.move(stop), null)
      await tenant.succeed(lease)
      assert.equal(await deployments.move(stop), null)
      const claim = await tenant.claim()
      await tenant.succeed({ jobId: claim?.job.id ?? '', leaseId: claim?.leaseId ?? '' })
      assert.equal((await deployments.move(stop))?.state, 'stopped')
    })

    test("take jobs only while they are ready; a pool that is nobody's takes them always", async () => {
      const { deployments, jobs } = store()
      const tenant = await Tenant.metered(store())
      await tenant.submit()
      const made = newDeployment({ id: tenant.pool, state: 'ready' })
      await deployments.create(made)
      const kept = keyClaim('kept')
      const accepted = await tenant.submit({}, kept)
      for (const to of ['draining', 'stopped', 'provisioning'] as const) {
        await deployments.move({ id: made.id, from: ['ready', 'draining', 'stopped'], to, at: at(5) })
        const before = await tenant.use()
        const priced = { price: { perSecondMicros: 1, minimumMicros: 1, holdMicros: 10 } }
        assert.deepEqual(await jobs.submit(tenant.newJob(priced), keyClaim(to)), { outcome: 'pool_closed' })
        assert.deepEqual(await tenant.use(), before)
      }
      // Whoever repeats a request that was accepted is told so, whatever became of the deployment.
      const repeated = await jobs.submit(tenant.newJob(), kept)
      assert.equal(repeated.outcome === 'key_reused' && repeated.holder.jobId, accepted.id)
      await deployments.move({ id: made.id, from: ['provisioning'], to: 'ready', at: at(6) })
      await tenant.submit({}, keyClaim('stopped'))
      assert.equal((await store().ledger.balance(tenant.accountId))?.held, 0)
    })

    test('are told by version when they change, each at its last change', () =>
      withStore(opener, async ({ deployments, glance }) => {
        const [first, second] = [newDeployment(), newDeployment()]
        await deployments.create(first)
        await deployments.create(second)
        const [, { version }] = await deployments.changedAfter(0, 10)
        assert.equal((await glance()).versions.deployments, version)
        assert.deepEqual(await deployments.changedAfter(version, 10), [])
        await deployments.create(first)
        assert.deepEqual(await deployments.changedAfter(version, 10), [], 'an id that is taken changes nothing')
        const moved = await deployments.move({ id: first.id, from: ['provisioning'], to: 'ready', at: at(5) })
        const page = await deployments.changedAfter(version, 10)
        assert.deepEqual(
          page.map(({ deployment }) => deployment),
          [moved],
        )
        await deployments.configure({ id: second.id, workers: 3, idleAfterMs: null, at: at(6) })
        const all = await deployments.changedAfter(0, 10)
        assert.deepEqual(
          all.map(({ deployment }) => deployment.id),
          [first.id, second.id],
        )
        assert.equal((await deployments.changedAfter(0, 1)).length, 1)
        assert.equal((await glance()).versions.deployments, all[1].version)
      }))

    test('know what their pools have to do, each by itself', async () => {
      const [one, two] = [await Tenant.create(store()), await Tenant.create(store())]
      await one.run()
      await one.submit()
      await one.submit()
      assert.deepEqual(await store().deployments.loads([one.pool, two.pool]), [
        { pool: one.pool, queued: 2, running: 1 },
        { pool: two.pool, queued: 0, running: 0 },
      ])
      await withStore(opener, async (own) => {
        const tenant = await Tenant.create(own)
        await tenant.submit({ pool: 'default' })
        assert.deepEqual(await own.deployments.loads(['default']), [{ pool: 'default', queued: 1, running: 0 }])
      })
    })

    test('count every job that waits or runs, however long the backlog and whoever owns it, as the sum over all does', async () => {
      await withStore(opener, async (own) => {
        const tenant = await Tenant.create(own, { maxQueued: 3000 })
        const other = await tenant.neighbour({ maxQueued: 3000 })
        await tenant.run()
        const submits = (count: number, one: Tenant, pool: string) =>
          Array.from({ length: count }, () => one.submit({ pool }))
        await Promise.all([...submits(1003, tenant, 'default'), ...submits(1, other, 'default')])
        await Promise.all(submits(1001, other, other.pool))
        const counted = await own.deployments.count(['default', other.pool])
        assert.deepEqual(counted, [
          { pool: 'default', queued: 1004, running: 0 },
          { pool: other.pool, queued: 1001, running: 1 },
        ])
        const demands = await own.deployments.demands(['default', other.pool])
        assert.deepEqual(
          demands.map(({ pool, queued, running }) => ({ pool, queued, running })),
          counted,
        )
        const { queued, running } = await own.jobs.countByStatus()
        assert.deepEqual([queued, running], [2005, 1])
      })
    })

    test('know how much of the work of their pools could run now, and for how long it has waited', async () => {
      const busy = await Tenant.create(store(), { maxRunning: 2 })
      const free = await busy.neighbour({ maxRunning: 3 })
      const full = await busy.neighbour({ maxRunning: 0 })
      await busy.run()
      for (const createdAt of [at(40), at(50), at(60)]) await busy.submit({ createdAt })
      for (const priority of [9, 0, 5])
        await free.submit({ priority, createdAt: at(30 - priority), needs: `lane-${priority}` })
      await full.submit({ createdAt: at(25) })
      const elsewhere = await Tenant.create(store())
      assert.deepEqual(await store().deployments.demands([busy.pool, elsewhere.pool]), [
        { pool: busy.pool, queued: 7, running: 1, runnable: 4, oldestQueuedAt: at(21) },
        { pool: elsewhere.pool, queued: 0, running: 0, runnable: 0, oldestQueuedAt: null },
      ])
      const patient = await Tenant.create(store())
      await patient.submit({ priority: -3, createdAt: at(5) })
      for (const priority of [7, 7, 2]) await patient.submit({ priority, createdAt: at(100) })
      const [{ oldestQueuedAt }] = await store().deployments.demands([patient.pool])
      assert.deepEqual(oldestQueuedAt, at(5), 'whatever goes before it')
    })

    test('the processes that hold jobs are known, with how many', async () => {
      await withStore(opener, async (own) => {
        const tenant = await Tenant.create(own)
        await tenant.run()
        await tenant.run()
        await tenant.submit()
        const beat = (id: string, names: readonly string[], untilMs: number) =>
          own.nodes.beat({
            ...{ id, now: START, aliveUntil: at(30_000), about: { version: '1', host: 'here', workers: {} } },
            wanted: names.map((name) => ({ name, until: at(untilMs) })),
          })
        await beat('worker', ['b', 'a'], 15_000)
        await beat('another', ['c'], 5000)
        assert.deepEqual(await own.nodes.holdings(at(5000)), [
          { nodeId: 'worker', jobs: 2, calls: 0, names: ['a', 'b'] },
        ])
      })
    })

    test('a list of one pool holds its jobs only, with every filter', async () => {
      const tenant = await Tenant.create(store())
      const mine = await tenant.submit({ metadata: { a: '1' } })
      await tenant.submit({ pool: 'default', metadata: { a: '1' } })
      await tenant.submit({ pool: randomUUID(), metadata: { a: '1' } })
      for (const metadata of [{}, { a: '1' }] as Record<string, string>[]) {
        const query = { statuses: null, metadata, limit: 10, after: null, now: START }
        const listed = await store().jobs.list(tenant.accountId, { ...query, pool: tenant.pool })
        assert.deepEqual(
          listed.map(({ id, pool }) => [id, pool]),
          [[mine.id, tenant.pool]],
        )
        assert.equal((await store().jobs.list(tenant.accountId, { ...query, pool: null })).length, 3)
      }
    })
  })
}
