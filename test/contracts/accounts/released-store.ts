/** How every store keeps deployments on releases. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import * as changes from '../../../src/domain/deployments/released/released-changes.ts'
import {
  pendingPool,
  type ReleasedDeployment,
  servingPool,
} from '../../../src/domain/deployments/released/released-deployment.ts'
import type { DeploymentChange } from '../../../src/domain/deployments/released/released-store.ts'
import { at, START, type StoreOpener, shareStore, Tenant, type WholeStoreUnderTest } from '../store-under-test.ts'

const MOVE = { releaseId: 'rel-2', releaseVersion: 2, kind: 'update', fromRevision: null, by: 'key a' } as const

function newReleased(fields: Partial<ReleasedDeployment> = {}): ReleasedDeployment {
  const id = `dep-${randomUUID().replaceAll('-', '').slice(0, 12)}`
  return {
    ...{ id, accountId: randomUUID(), buildId: 'build-1', name: '', gpuClass: 'cpu', region: 'local', min: 0, max: 2 },
    ...{ status: 'queued', stopReason: null, error: null, revision: 1, releaseId: 'rel-1', releaseVersion: 1 },
    ...{ pending: null, progress: null, createdBy: 'key a', createdAt: START, updatedAt: START },
    ...{ deletedAt: null, deletedBy: null, version: 1, ...fields },
  }
}

export function testReleasedStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('deployments on releases in the store', () => {
    const store = shareStore(opener)

    async function create(
      made: ReleasedDeployment,
      { key = null, maxLive = 100 }: { key?: string | null; maxLive?: number } = {},
    ) {
      const { id, accountId, releaseId, releaseVersion, createdBy, createdAt } = made
      const kind = { kind: 'create', fromRevision: null } as const
      return store().released.create({
        ...{ made, key, maxLive },
        events: [{ at: START, status: 'queued', message: null, releaseId }],
        revision: { deploymentId: id, revision: 1, releaseId, releaseVersion, ...kind, createdBy, createdAt },
        pool: { id: servingPool(made), accountId, state: 'provisioning', workers: 2 },
      })
    }

    async function created(fields: Partial<ReleasedDeployment> = {}): Promise<ReleasedDeployment> {
      const outcome = await create(newReleased(fields))
      assert.equal(outcome.outcome, 'created')
      return 'deployment' in outcome ? outcome.deployment : assert.fail()
    }

    async function change(made: DeploymentChange): Promise<ReleasedDeployment> {
      const outcome = await store().released.change(made)
      assert.equal(outcome.outcome, 'changed')
      return 'deployment' in outcome ? outcome.deployment : assert.fail()
    }

    async function serving(fields: Partial<ReleasedDeployment> = {}): Promise<ReleasedDeployment> {
      let now = await created(fields)
      for (const status of ['provisioning', 'starting', 'ready'] as const)
        now = await change(changes.step(now, { status, progress: null }, at(1)))
      return now
    }

    const stateOf = async (pool: string) => (await store().deployments.list()).find(({ id }) => id === pool)?.state

    test('get the default names in their order, and a name is there once among the living of a build', async () => {
      const accountId = randomUUID()
      const names = []
      for (let count = 0; count < 3; count++) names.push((await created({ accountId })).name)
      assert.deepEqual(names, ['production', 'deployment-2', 'deployment-3'])
      assert.deepEqual(await create(newReleased({ accountId, name: 'production' })), { outcome: 'name_taken' })
      assert.equal((await created({ accountId, name: 'production', buildId: 'build-2' })).name, 'production')
      assert.deepEqual(await create(newReleased({ accountId }), { maxLive: 4 }), { outcome: 'too_many' })
      const racing = await Promise.all([1, 2, 3, 4].map(() => created({ accountId, buildId: 'build-3' })))
      assert.equal(new Set(racing.map(({ name }) => name)).size, 4)
    })

    test('a key makes one deployment for ever, also when that was deleted, and each account has keys of its own', async () => {
      const made = newReleased()
      const first = await create(made, { key: 'key' })
      const { accountId } = made
      assert.equal(first.outcome, 'created')
      await change(changes.remove('deployment' in first ? first.deployment : assert.fail(), at(1), 'key a'))
      const again = await create(newReleased({ accountId }), { key: 'key' })
      assert.equal(again.outcome, 'repeated')
      assert.equal('deployment' in again ? again.deployment.id : null, made.id)
      assert.ok('deployment' in again && again.deployment.deletedAt !== null)
      assert.equal((await create(newReleased(), { key: 'key' })).outcome, 'created')
    })

    test('are found by their own account only, and listed newest first in pages, deleted ones included', async () => {
      const accountId = randomUUID()
      const all = []
      for (let n = 0; n < 5; n++)
        all.push(await created({ accountId, createdAt: at(Math.floor(n / 2)), name: `n${n}` }))
      const [one] = all
      assert.deepEqual(await store().released.find(accountId, one!.id), one)
      assert.equal(await store().released.find(randomUUID(), one!.id), null)
      await change(changes.remove(one!, at(9), 'me'))
      const seen: string[] = []
      let after: { createdAt: Date; id: string } | null = null
      while (true) {
        const page: readonly ReleasedDeployment[] = await store().released.list({
          accountId,
          status: null,
          after,
          limit: 2,
        })
        seen.push(...page.map(({ id }) => id))
        after = page.at(-1) ?? null
        if (page.length < 2) break
      }
      const order = all.toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? 1 : -1))
      assert.deepEqual(
        seen,
        order.map(({ id }) => id),
      )
      const stopping = await store().released.list({ accountId, status: 'stopping', after: null, limit: 9 })
      assert.deepEqual(
        stopping.map(({ id }) => id),
        [one!.id],
      )
    })

    test('an update switches new jobs with the revision, in one step, and whoever read an older state changes nothing', async () => {
      const before = await serving()
      const pool = servingPool(before)
      assert.equal(await stateOf(pool), 'ready')
      const moving = await change(changes.beginMove(before, MOVE, at(2)))
      const next = pendingPool(moving) ?? assert.fail()
      assert.equal(await stateOf(next), 'provisioning')
      assert.deepEqual(await store().released.change(changes.beginMove(before, MOVE, at(2))), { outcome: 'stale' })
      const landed = await change(changes.land(moving, at(3)))
      assert.deepEqual([landed.revision, landed.releaseId, landed.pending], [2, 'rel-2', null])
      assert.deepEqual([await stateOf(pool), await stateOf(next)], ['ready', 'ready'])
      assert.deepEqual(await store().released.change(changes.land(moving, at(3))), { outcome: 'stale' })
      const revisions = await store().released.revisions(landed.id)
      assert.deepEqual(
        revisions.map(({ revision, kind, releaseId }) => [revision, kind, releaseId]),
        [
          [1, 'create', 'rel-1'],
          [2, 'update', 'rel-2'],
        ],
      )
      const events = await store().released.events(landed.id)
      assert.deepEqual(
        events.map(({ status }) => status),
        ['queued', 'provisioning', 'starting', 'ready', 'queued', 'ready'],
      )
    })

    test('an older copy ends only once no job waits or runs there', async () => {
      const { accountId } = await Tenant.create(store())
      const before = await serving({ accountId })
      const pool = servingPool(before)
      const tenant = new Tenant(store(), accountId, pool)
      const landed = await change(changes.land(await change(changes.beginMove(before, MOVE, at(2))), at(3)))
      await tenant.submit()
      assert.deepEqual(await store().released.change(changes.retire(landed, pool, at(4))), { outcome: 'busy' })
      const claim = await tenant.claim()
      await tenant.succeed({ jobId: claim?.job.id ?? '', leaseId: claim?.leaseId ?? '' })
      await change(changes.retire(landed, pool, at(5)))
      assert.equal(await stateOf(pool), 'stopped')
      assert.deepEqual(await store().jobs.submit(tenant.newJob(), null), { outcome: 'pool_closed' })
    })

    test('tell which releases serve, wait to serve or may come back, until they are deleted', async () => {
      const [one, two, three] = ['rel-a', 'rel-b', 'rel-c'].map((name) => name + randomUUID())
      const before = await serving({ releaseId: one! })
      const landed = await change(
        changes.land(await change(changes.beginMove(before, { ...MOVE, releaseId: two! }, at(2))), at(3)),
      )
      const moving = await change(changes.beginMove(landed, { ...MOVE, releaseId: three! }, at(4)))
      const asked = [one!, two!, three!, 'rel-none']
      const uses = await store().released.usesOf(asked)
      assert.deepEqual(uses.map(({ releaseId }) => releaseId).sort(), [one, two, three].sort())
      assert.ok(uses.every(({ deploymentId, name }) => deploymentId === before.id && name === before.name))
      assert.ok((await store().released.usedReleases()).includes(three!))
      await change(changes.remove(moving, at(5), 'me'))
      assert.deepEqual(await store().released.usesOf(asked), [])
    })

    test('are active until they are stopped or have failed, and keep the newest of their events', async () => {
      const isActive = async (id: string) => (await store().released.active()).some((each) => each.id === id)
      const before = await serving()
      assert.ok(await isActive(before.id))
      const stopping = await change(changes.stop(before, at(2), 'user'))
      assert.equal(await stateOf(servingPool(before)), 'stopped')
      assert.ok(await isActive(before.id))
      const stopped = await change(changes.stopped(stopping, at(3)))
      assert.ok(!(await isActive(before.id)))
      let now = await change(changes.start(stopped, at(4)))
      assert.ok(await isActive(before.id))
      const many = Array.from(
        { length: 1200 },
        (_, n) => ({ at: at(n), status: 'queued', message: `${n}`, releaseId: null }) as const,
      )
      now = await change({ after: now, events: many, revision: null, pools: [] })
      const events = await store().released.events(now.id)
      assert.equal(events.length, 1000)
      assert.equal(events.at(-1)?.message, '1199')
    })
  })
}
