/** What happens to a job when its lease is renewed, given back, lost or canceled. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import {
  at,
  DAY_MS,
  hashOf,
  keyClaim,
  LOST,
  newOutput,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
} from '../store-under-test.ts'
import { PROGRESS, REAP } from './run-samples.ts'

export function testJobStoreLeases(opener: StoreOpener): void {
  describe('leases', () => {
    const store = shareStore(opener)

    test('who holds a job is known as long as it is held', async () => {
      const tenant = await Tenant.create(store())
      const { job, lease } = await tenant.run()
      const { id: waiting } = await tenant.submit()
      const holders = () => store().jobs.findHolders([job.id, waiting, randomUUID(), 'no id'])
      const [[heldId, workerId]] = [...(await holders())]
      assert.equal(heldId, job.id)
      assert.ok(workerId.length > 0)
      await store().jobs.release([lease], at(1))
      assert.deepEqual(await holders(), new Map())
      assert.deepEqual(await store().jobs.findHolders([]), new Map())
    })

    test('what a lease holds is found by it as it was claimed, as long as it holds it, and nothing is changed by looking', async () => {
      const tenant = await Tenant.create(store())
      const inputs = [{ name: 'a.png', hash: hashOf('input'), sizeBytes: 5, contentType: 'image/png' }]
      await tenant.submit({ inputs, notes: '{"a":1}' })
      const claim = await tenant.claim({ now: START })
      assert.ok(claim !== null)
      const { job, leaseId } = claim
      const lease = { jobId: job.id, leaseId }
      const output = newOutput()
      await store().jobs.commit(lease, { outputs: [output] })
      const found = await store().jobs.findClaim(lease.leaseId)
      assert.deepEqual(
        [
          found?.job.id,
          found?.job.accountId,
          found?.leaseId,
          found?.engineId,
          found?.workflow,
          found?.inputs,
          found?.notes,
        ],
        [job.id, tenant.accountId, lease.leaseId, claim.engineId, claim.workflow, inputs, '{"a":1}'],
      )
      assert.deepEqual((await tenant.find(job.id))?.outputs, [output])
      assert.equal(await store().jobs.findClaim(randomUUID()), null)
      await store().jobs.release([lease], START)
      assert.equal(await store().jobs.findClaim(lease.leaseId), null)
    })

    test('renewing keeps what is still held and tells of a cancel; lost leases are left out', async () => {
      const tenant = await Tenant.create(store())
      const [kept, canceled, ended] = [await tenant.run(), await tenant.run(), await tenant.run()]
      await store().jobs.cancel(tenant.accountId, canceled.job.id, START)
      await tenant.succeed(ended.lease)
      const leases = [kept.lease, canceled.lease, ended.lease, { jobId: kept.job.id, leaseId: randomUUID() }]
      const renewed = await store().jobs.renew(leases, at(60_000))
      assert.deepEqual(
        new Map(renewed.map(({ jobId, status }) => [jobId, status])),
        new Map([
          [kept.job.id, 'running'],
          [canceled.job.id, 'canceling'],
        ]),
      )
      const touched = await store().jobs.reap(REAP)
      assert.deepEqual(
        touched.filter(({ accountId }) => accountId === tenant.accountId),
        [],
      )
      assert.deepEqual(await store().jobs.renew([], at(60_000)), [])
      // Alone: beside the lease that does hold the job it would not show.
      assert.deepEqual(await store().jobs.renew([{ jobId: kept.job.id, leaseId: randomUUID() }], at(60_000)), [])
    })

    test('a lapsed lease sends the job back to its former position until its attempts are spent, then it fails', async () => {
      const tenant = await Tenant.create(store(), { maxRunning: 1 })
      const { job } = await tenant.run()
      const behind = await tenant.submit()
      for (const attempt of [1, 2]) {
        const touched = (await store().jobs.reap(REAP)).filter(({ accountId }) => accountId === tenant.accountId)
        assert.equal(touched.length, 1)
        assert.equal(touched[0].status, 'queued')
        const found = await tenant.find(job.id)
        assert.equal(found?.version, touched[0].version)
        assert.equal(found?.queuePosition, 1)
        assert.deepEqual(found?.startedAt, START)
        assert.deepEqual(await tenant.use(), { running: 0, queued: 2 })
        assert.equal((await tenant.claim())?.job.attempt, attempt + 1)
      }
      const touched = (await store().jobs.reap(REAP)).filter(({ accountId }) => accountId === tenant.accountId)
      assert.deepEqual(
        touched.map(({ jobId, status }) => [jobId, status]),
        [[job.id, 'failed']],
      )
      const found = await tenant.find(job.id)
      assert.deepEqual(found?.error, LOST)
      assert.deepEqual(found?.completedAt, REAP.now)
      assert.equal((await tenant.claim())?.job.id, behind.id)
    })

    test('a new attempt starts without the outputs of the one before, which live on as assets', async () => {
      const tenant = await Tenant.create(store())
      const { job, lease } = await tenant.run()
      const [first, second] = [newOutput(), newOutput()]
      await store().jobs.commit(lease, { outputs: [first, second], outputsReused: true })
      await store().jobs.reap(REAP)
      const between = await tenant.find(job.id)
      assert.deepEqual([between?.status, between?.outputs, between?.outputsReplaced], ['queued', [first, second], 0])
      const claim = await tenant.claim()
      assert.deepEqual(claim?.job.outputs, [])
      assert.deepEqual([claim.job.outputsReplaced, claim.job.outputsReused], [2, false])
      assert.deepEqual(claim.earlierOutputs, [first, second])
      // Made again: the same record, under its new name.
      const third = { ...second, name: 'again.png' }
      const again = { jobId: job.id, leaseId: claim.leaseId }
      await store().jobs.commit(again, { outputs: [third] })
      await store().jobs.commit(again, { outputs: [third] })
      assert.deepEqual((await tenant.find(job.id))?.outputs, [third])
      assert.equal((await store().assets.find(tenant.accountId, third.assetId, START))?.filePath, 'again.png')
      await store().jobs.release([again], START)
      const last = await tenant.claim()
      assert.deepEqual([last?.job.outputs, last?.job.outputsReplaced], [[], 3], 'also where the attempt is given back')
      const fourth = newOutput()
      const end = { jobId: job.id, leaseId: last?.leaseId ?? '' }
      assert.deepEqual(await store().jobs.commit(again, { outputs: [fourth] }), { outcome: 'lost' })
      await store().jobs.commit(end, { outputs: [fourth] })
      await tenant.succeed(end)
      assert.deepEqual((await tenant.find(job.id))?.outputs, [fourth])
      for (const { assetId } of [first, second, third, fourth]) {
        assert.ok((await store().assets.find(tenant.accountId, assetId, START)) !== null)
      }
      await store().jobs.remove({ now: at(400 * DAY_MS), expiredBefore: at(400 * DAY_MS), limit: 1000 })
      await store().assets.expire(at(400 * DAY_MS), 1000)
      for (const { assetId } of [first, second, third, fourth]) {
        assert.equal(await store().assets.find(tenant.accountId, assetId, START), null)
      }
    })

    test('a job that is canceled between two attempts keeps what the last one had made', async () => {
      const tenant = await Tenant.create(store())
      const { job, lease } = await tenant.run()
      const output = newOutput()
      await store().jobs.commit(lease, { outputs: [output] })
      await store().jobs.reap(REAP)
      await store().jobs.cancel(tenant.accountId, job.id, START)
      const found = await tenant.find(job.id)
      assert.deepEqual([found?.status, found?.outputs], ['canceled', [output]])
    })

    test('a lease that has not run out is left alone, unless a start takes all that lapse before a given time', async () => {
      const tenant = await Tenant.create(store())
      const { job } = await tenant.run()
      const own = async (options: Parameters<ReturnType<typeof store>['jobs']['reap']>[0]) =>
        (await store().jobs.reap(options)).filter(({ accountId }) => accountId === tenant.accountId)
      assert.deepEqual(await own({ ...REAP, now: at(30_000) }), [])
      const taken = await own({ ...REAP, now: at(5), lapsedBefore: at(DAY_MS), maxAttempts: 1 })
      assert.deepEqual(
        taken.map(({ status }) => status),
        ['failed'],
      )
      assert.deepEqual((await tenant.find(job.id))?.completedAt, at(5))
    })

    test('a cancel of what waits leaves a job alone that runs by then', async () => {
      const tenant = await Tenant.create(store())
      const { job } = await tenant.run()
      const cancel = (id: string) => store().jobs.cancel(tenant.accountId, id, START, true)
      assert.equal((await cancel(job.id)).outcome, 'left_running')
      assert.equal((await tenant.find(job.id))?.status, 'running')
      const waiting = await tenant.submit()
      assert.equal((await cancel(waiting.id)).outcome, 'canceled')
      assert.equal((await cancel(waiting.id)).outcome, 'already_terminal')
      await store().jobs.cancel(tenant.accountId, job.id, START)
      assert.equal((await cancel(job.id)).outcome, 'canceling')
    })

    test('a canceling job whose worker is lost ends canceled', async () => {
      const tenant = await Tenant.create(store())
      const { job } = await tenant.run()
      await store().jobs.cancel(tenant.accountId, job.id, START)
      await store().jobs.reap(REAP)
      const found = await tenant.find(job.id)
      assert.equal(found?.status, 'canceled')
      assert.equal(found.error, null)
      assert.deepEqual(await tenant.use(), { running: 0, queued: 0 })
    })

    test('a worker that comes too late with the same end as the one that its job was given has lost the job', async () => {
      const tenant = await Tenant.create(store())
      const [lost, canceled] = [await tenant.run(), await tenant.run()]
      await store().jobs.cancel(tenant.accountId, canceled.job.id, START)
      await store().jobs.reap({ ...REAP, maxAttempts: 1 })
      assert.equal((await tenant.find(lost.job.id))?.status, 'failed')
      assert.equal((await tenant.find(canceled.job.id))?.status, 'canceled')
      const failing = { status: 'failed', from: ['running'], at: at(5), error: LOST } as const
      assert.deepEqual(await store().jobs.commit(lost.lease, { finish: failing }), { outcome: 'lost' })
      const canceling = { status: 'canceled', from: ['canceling'], at: at(5), error: null } as const
      assert.deepEqual(await store().jobs.commit(canceled.lease, { finish: canceling }), { outcome: 'lost' })
    })

    test('a released job waits again at its former position with its attempt given back; a canceling one ends', async () => {
      const tenant = await Tenant.create(store())
      const [kept, canceled] = [await tenant.run(), await tenant.run()]
      await tenant.submit()
      await store().jobs.cancel(tenant.accountId, canceled.job.id, START)
      const wrong = { jobId: kept.job.id, leaseId: randomUUID() }
      const touched = await store().jobs.release([kept.lease, canceled.lease, wrong], at(50))
      assert.deepEqual(
        touched.map(({ jobId, status }) => [jobId, status]),
        [
          [kept.job.id, 'queued'],
          [canceled.job.id, 'canceled'],
        ],
      )
      const found = await tenant.find(kept.job.id)
      assert.equal(found?.attempt, 0)
      assert.equal(found.queuePosition, 1)
      assert.deepEqual((await tenant.find(canceled.job.id))?.completedAt, at(50))
      assert.deepEqual(await tenant.use(), { running: 0, queued: 2 })
      assert.deepEqual(await store().jobs.commit(kept.lease, { progress: PROGRESS }), { outcome: 'lost' })
    })

    test('a returned lease may spend its attempt and count a fault of its engine, which later attempts are told of', async () => {
      const tenant = await Tenant.create(store())
      const { job, lease } = await tenant.run()
      const [touched] = await store().jobs.release([{ ...lease, isSpent: true, isEngineLoss: true }], at(1))
      assert.deepEqual([touched.status, (await tenant.find(job.id))?.attempt], ['queued', 1])
      const second = await tenant.claim()
      assert.deepEqual([second?.job.attempt, second?.engineLosses], [2, 1])
      await store().jobs.release([{ jobId: job.id, leaseId: second?.leaseId ?? '' }], at(2))
      const third = await tenant.claim()
      assert.deepEqual([third?.job.attempt, third?.engineLosses], [2, 1])
      await store().jobs.reap(REAP)
      assert.equal((await tenant.claim())?.engineLosses, 1)
    })

    test('a lease that is returned for a fault of its engine may leave its attempt unspent', async () => {
      const tenant = await Tenant.create(store())
      const { job, lease } = await tenant.run()
      await store().jobs.release([{ ...lease, isSpent: false, isEngineLoss: true }], at(1))
      const second = await tenant.claim()
      assert.deepEqual([second?.job.id, second?.job.attempt, second?.engineLosses], [job.id, 1, 1])
    })

    test('a withdrawn job was never there: no record, no label, its key free, its room given back', async () => {
      const tenant = await Tenant.create(store())
      const job = await tenant.submit({ metadata: { scene: '9' } }, keyClaim('withdrawn'))
      const claim = await tenant.claim()
      const lease = { jobId: job.id, leaseId: claim?.leaseId ?? '' }
      assert.equal(await store().jobs.withdraw({ jobId: job.id, leaseId: randomUUID() }, at(1)), false)
      assert.equal(await store().jobs.withdraw(lease, at(1)), true)
      assert.equal(await tenant.find(job.id), null)
      assert.equal(await store().keys.findKey(tenant.accountId, 'withdrawn', at(1)), null)
      assert.deepEqual(await tenant.use(), { running: 0, queued: 0 })
      assert.equal(await store().jobs.withdraw(lease, at(2)), false)
      const { lease: other, job: canceled } = await tenant.run()
      await store().jobs.cancel(tenant.accountId, canceled.id, at(1))
      assert.equal(await store().jobs.withdraw(other, at(2)), false, 'a cancel was promised to somebody')
    })

    test('cancel ends a queued job at once, marks a running one, and repeats harmlessly', async () => {
      const tenant = await Tenant.create(store())
      const { job: running, lease } = await tenant.run()
      const queued = await tenant.submit({ needsExtraData: true, sealedExtraData: new Uint8Array([7]) })
      const cancel = (id: string) => store().jobs.cancel(tenant.accountId, id, at(10))
      const first = await cancel(queued.id)
      assert.equal(first.outcome, 'canceled')
      assert.deepEqual(first.outcome === 'canceled' && first.job, await tenant.find(queued.id))
      assert.deepEqual((await tenant.find(queued.id))?.completedAt, at(10))
      assert.equal((await cancel(queued.id)).outcome, 'already_terminal')
      assert.equal((await cancel(running.id)).outcome, 'canceling')
      const version = (await tenant.find(running.id))?.version
      assert.equal((await cancel(running.id)).outcome, 'canceling')
      assert.equal((await tenant.find(running.id))?.version, version)
      assert.deepEqual(await tenant.use(), { running: 1, queued: 0 })
      assert.equal((await tenant.succeed(lease)).outcome, 'committed')
      assert.equal((await cancel(running.id)).outcome, 'already_terminal')
      assert.deepEqual(await cancel(randomUUID()), { outcome: 'not_found' })
    })
  })
}
