/** The queue by hand: pauses, holds, deadlines of those that wait, and places inside the queue of an account. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Job } from '../../../src/domain/jobs/job.ts'
import type { PauseKey, WaitingChange } from '../../../src/domain/jobs/queue/queue-store.ts'
import { at, ONE_LANE, type StoreOpener, shareStore, Tenant, type WholeStoreUnderTest } from '../store-under-test.ts'

const MINUTE = 60_000
const ANY = {}

export function testJobStoreQueue(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('the queue by hand', () => {
    const store = shareStore(opener)
    const change = (tenant: Tenant, job: Pick<Job, 'id'>, wish: WaitingChange, now = at(0)) =>
      store().queue.change(tenant.accountId, job.id, wish, now)
    const pause = (key: PauseKey) => store().queue.pause({ ...key, reason: 'a test', pausedAt: at(5) })

    async function drain(tenant: Tenant, options: { now?: Date } = {}): Promise<string[]> {
      const ids: string[] = []
      for (let claim = await tenant.claim(options); claim !== null; claim = await tenant.claim(options))
        ids.push(claim.job.id)
      return ids
    }

    for (const [name, lane] of [
      ['any engine', ANY],
      ['lanes', { needs: 'lane' }],
    ] as const) {
      const claim = (tenant: Tenant, now = at(0)) =>
        tenant.claim({ now, ...(name === 'lanes' && { engines: ONE_LANE.engines }) })

      test(`a paused pool or account claims nothing, takes submits, and goes on when it is resumed (${name})`, async () => {
        const tenant = await Tenant.create(store())
        const other = await tenant.neighbour()
        const job = await tenant.submit(lane)
        for (const key of [
          { scope: 'pool', name: tenant.pool },
          { scope: 'account', name: tenant.accountId },
          { scope: 'own', name: tenant.accountId },
        ] as const) {
          await pause(key)
          assert.equal(await claim(tenant), null, key.scope)
          const found = await store().queue.findPauses(tenant.accountId, tenant.pool)
          assert.deepEqual(found, [{ ...key, reason: 'a test', pausedAt: at(5) }])
          if (key.scope !== 'pool') {
            const theirs = await other.submit(lane)
            assert.equal((await claim(other))?.job.id, theirs.id, 'others go on')
          }
          assert.deepEqual(await store().queue.resume(key), found[0])
          assert.equal(await store().queue.resume(key), null)
        }
        assert.equal((await claim(tenant))?.job.id, job.id)
      })

      test(`a held job is behind all others until its time, and then where it was submitted (${name})`, async () => {
        const tenant = await Tenant.create(store())
        const held = await tenant.submit({ ...lane, notBefore: at(MINUTE), priority: 7 })
        assert.equal(held.queuePosition, 1)
        assert.equal(await claim(tenant), null)
        const later = await tenant.submit({ ...lane, priority: -3 })
        assert.equal(later.queuePosition, 1, 'it is ahead of the held one')
        const found = await tenant.find(held.id)
        assert.deepEqual([found?.priority, found?.queuePosition, found?.notBefore], [7, 2, at(MINUTE)])
        assert.equal(await store().queue.hasDue(at(MINUTE - 1)), false)
        assert.deepEqual(await store().queue.releaseDue(at(MINUTE - 1), 10), [])
        assert.equal(await store().queue.hasDue(at(MINUTE)), true)
        const [released, ...more] = await store().queue.releaseDue(at(MINUTE), 10)
        assert.deepEqual(more, [])
        assert.deepEqual([released?.jobId, released?.status], [held.id, 'queued'])
        assert.equal(await store().queue.hasDue(at(MINUTE)), false)
        assert.equal((await tenant.find(held.id))?.queuePosition, 1)
        assert.equal((await claim(tenant))?.job.priority, 7)
      })

      test(`a job that waited too long is not claimed, ends expired, and is kept as long as others (${name})`, async () => {
        const tenant = await Tenant.create(store())
        const late = await tenant.submit({ ...lane, queueUntil: at(MINUTE) })
        const running = await tenant.submit({ ...lane, queueUntil: at(MINUTE), priority: 1 })
        assert.equal((await claim(tenant))?.job.id, running.id)
        assert.equal(await claim(tenant, at(MINUTE)), null)
        const ended = await store().jobs.expire(at(MINUTE), 100)
        assert.deepEqual(
          ended.filter(({ accountId }) => accountId === tenant.accountId).map(({ jobId, status }) => [jobId, status]),
          [[late.id, 'expired']],
        )
        await store().jobs.remove({ now: at(2 * MINUTE), expiredBefore: at(2 * MINUTE), limit: 100 })
        assert.equal((await tenant.find(late.id, at(2 * MINUTE)))?.status, 'expired')
        assert.deepEqual(await tenant.use(), { running: 1, queued: 0 })
      })
    }

    test('the whole service can be paused', async () => {
      const tenant = await Tenant.create(store())
      const job = await tenant.submit()
      await pause({ scope: 'service', name: '' })
      try {
        assert.equal(await tenant.claim(), null)
        assert.deepEqual(
          (await store().queue.listPauses()).map(({ scope }) => scope),
          ['service'],
        )
      } finally {
        await store().queue.resume({ scope: 'service', name: '' })
      }
      assert.equal((await tenant.claim())?.job.id, job.id)
    })

    test('a job that waits goes to the front, to the back, or where its priority puts it, in its own account alone', async () => {
      const tenant = await Tenant.create(store())
      const jobs: Job[] = []
      for (let count = 0; count < 4; count += 1) jobs.push(await tenant.submit({ priority: count === 3 ? 5 : 0 }))
      const [first, second, third, best] = jobs as [Job, Job, Job, Job]
      const front = await change(tenant, third, { place: 'front' })
      assert.ok(front?.outcome === 'changed')
      assert.deepEqual([front.job.priority, front.job.queuePosition], [6, 1])
      assert.ok(front.job.version > third.version)
      const same = await change(tenant, third, { place: 'front' })
      assert.ok(same?.outcome === 'changed')
      assert.equal(same.job.priority, 6, 'it is there already')
      const back = await change(tenant, first, { place: 'back' })
      assert.ok(back?.outcome === 'changed')
      assert.deepEqual([back.job.priority, back.job.queuePosition], [-1, 4])
      await change(tenant, best, { place: { priority: -9 } })
      assert.deepEqual(await drain(tenant), [third.id, second.id, first.id, best.id])
      const ran = await change(tenant, best, { place: 'front' })
      assert.equal(ran?.outcome, 'not_waiting')
      assert.equal(await change(await Tenant.create(store()), best, { place: 'front' }), null)
    })

    test('a hold can be set, changed and taken back while a job waits, and ends with the job', async () => {
      const tenant = await Tenant.create(store())
      const job = await tenant.submit({ priority: 2 })
      const held = await change(tenant, job, { notBefore: at(MINUTE) })
      assert.ok(held?.outcome === 'changed')
      assert.deepEqual([held.job.priority, held.job.notBefore], [2, at(MINUTE)])
      assert.equal(await tenant.claim(), null)
      await change(tenant, job, { notBefore: at(2 * MINUTE), place: { priority: 3 } })
      assert.deepEqual(await store().queue.releaseDue(at(MINUTE), 10), [])
      const free = await change(tenant, job, { notBefore: null })
      assert.ok(free?.outcome === 'changed')
      assert.deepEqual([free.job.priority, free.job.notBefore], [3, undefined])
      assert.equal((await tenant.claim())?.job.id, job.id)
      const other = await tenant.submit({ notBefore: at(MINUTE), priority: 4 })
      await store().jobs.cancel(tenant.accountId, other.id, at(1))
      const ended = await tenant.find(other.id)
      assert.deepEqual([ended?.status, ended?.priority], ['canceled', 4])
      assert.deepEqual(await store().queue.releaseDue(at(MINUTE), 10), [])
    })

    test('nobody is held beyond the end of its life, and no priority leaves its bounds', async () => {
      const tenant = await Tenant.create(store())
      const job = await tenant.submit({ queueUntil: at(MINUTE), priority: 1_000_000 })
      const second = await tenant.submit({})
      assert.deepEqual(await change(tenant, job, { notBefore: at(MINUTE) }), {
        outcome: 'held_too_long',
        until: at(MINUTE),
      })
      assert.deepEqual(await change(tenant, second, { place: 'front' }), { outcome: 'no_priority_left' })
    })

    test('an account whose jobs may not run is nobody to give way to', async () => {
      const tenant = await Tenant.create(store())
      await tenant.run()
      const paused = await tenant.neighbour()
      await paused.submit()
      const asked = { pool: tenant.pool, now: at(0), lanes: null, accountIds: [tenant.accountId] }
      assert.deepEqual(await store().jobs.findOutwaited(asked), [tenant.accountId])
      await pause({ scope: 'own', name: paused.accountId })
      assert.deepEqual(await store().jobs.findOutwaited(asked), [])
      await store().queue.resume({ scope: 'own', name: paused.accountId })
      const waiting = await tenant.neighbour()
      await store().jobs.cancel(paused.accountId, (await paused.claim())?.job.id ?? '', at(1))
      await waiting.submit({ notBefore: at(MINUTE) })
      assert.deepEqual(await store().jobs.findOutwaited(asked), [])
    })

    test('the head of a queue is found at once behind any number of held jobs', async () => {
      const tenant = await Tenant.create(store(), { maxQueued: 5000 })
      await Promise.all(Array.from({ length: 300 }, () => tenant.submit({ notBefore: at(MINUTE) })))
      const job = await tenant.submit()
      assert.deepEqual(await drain(tenant), [job.id])
    })
  })
}
