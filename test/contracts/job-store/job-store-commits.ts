/** What a worker writes under its lease: progress, outputs, the log and the end. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { at, hashOf, LOST, newOutput, START, type StoreOpener, shareStore, Tenant } from '../store-under-test.ts'
import { PROGRESS, REAP } from './run-samples.ts'

export function testJobStoreCommits(opener: StoreOpener): void {
  describe('commits', () => {
    const store = shareStore(opener)

    test('every commit shows to readers at once and raises the version', async () => {
      const tenant = await Tenant.create(store())
      const { job, lease } = await tenant.run()
      const output = newOutput()
      const outcomes = [
        await store().jobs.commit(lease, { progress: PROGRESS }),
        await store().jobs.commit(lease, { outputs: [output], outputsReused: true }),
        await store().jobs.commit(lease, { progress: { ...PROGRESS, value: 0.5 } }),
      ]
      assert.deepEqual(
        outcomes,
        [1, 2, 3].map((step) => ({ outcome: 'committed', version: job.version + step, status: 'running' })),
      )
      const found = await tenant.find(job.id)
      assert.deepEqual(found?.progress, { ...PROGRESS, value: 0.5 })
      assert.deepEqual(found?.outputs, [output])
      assert.equal(found?.outputsReused, true)
    })

    test('an end whose answer was lost counts when it is asked again; another end of the same run does not', async () => {
      const tenant = await Tenant.create(store())
      const { job, lease } = await tenant.run()
      const finish = { status: 'succeeded', from: ['running'], at: at(5), error: null } as const
      const change = { outputs: [newOutput()], finish }
      const outcome = await store().jobs.commit(lease, change)
      assert.equal(outcome.outcome, 'committed')
      const found = await tenant.find(job.id)
      assert.deepEqual(await store().jobs.commit(lease, change), outcome)
      // Whoever asks again may have looked at the clock again.
      assert.deepEqual(await store().jobs.commit(lease, { ...change, finish: { ...finish, at: at(6) } }), outcome)
      for (const other of [
        { ...lease, leaseId: randomUUID() },
        { ...lease, jobId: randomUUID() },
      ])
        assert.deepEqual(await store().jobs.commit(other, change), { outcome: 'lost' })
      const failed = { status: 'failed', from: ['running'], at: at(5), error: LOST } as const
      assert.deepEqual(await store().jobs.commit(lease, { finish: failed }), { outcome: 'lost' })
      assert.deepEqual(await store().jobs.commit(lease, { progress: PROGRESS }), { outcome: 'lost' })
      assert.deepEqual(await tenant.find(job.id), found)
      assert.deepEqual(await tenant.use(), { running: 0, queued: 0 })
    })

    test('outputs become assets of the account that live as long as the job, in order and only once', async () => {
      const tenant = await Tenant.create(store())
      const { job, lease } = await tenant.run()
      const outputs = [newOutput({ name: 'b.png' }), newOutput({ name: 'a.txt', type: 'text', nodeId: '' })]
      await store().jobs.commit(lease, { outputs: outputs.slice(0, 1) })
      await store().jobs.commit(lease, { outputs })
      assert.deepEqual((await tenant.find(job.id))?.outputs, outputs)
      const asset = await store().assets.find(tenant.accountId, outputs[1].assetId, START)
      assert.equal(asset?.jobId, job.id)
      assert.equal(asset.hash, outputs[1].hash)
      assert.equal(asset.filePath, 'a.txt')
      assert.deepEqual(asset.expiresAt, job.expiresAt)
      assert.equal(await store().assets.remove(tenant.accountId, outputs[1].assetId, START), 'in_use')
    })

    test('a finish ends the lease, dates the end, frees the room, keeps progress, outputs and log, and tells the job', async () => {
      const tenant = await Tenant.create(store())
      const { job, lease } = await tenant.run()
      const error = { ...LOST, code: 'node_execution_error', nodeId: '3', traceback: 'line 1\nline 2' }
      const log = { text: 'tail', truncated: true, capturedAt: at(900), complete: true }
      const outcome = await store().jobs.commit(lease, {
        progress: PROGRESS,
        outputs: [newOutput()],
        log,
        finish: { status: 'failed', from: ['running'], at: at(1000), error },
      })
      const found = await tenant.find(job.id)
      assert.deepEqual(outcome, { outcome: 'committed', version: job.version + 1, status: 'failed', job: found })
      assert.equal(found?.status, 'failed')
      assert.deepEqual(found.completedAt, at(1000))
      assert.deepEqual(found.error, error)
      assert.deepEqual(found.progress, PROGRESS)
      assert.equal(found.outputs.length, 1)
      assert.deepEqual(await store().jobs.findLog(tenant.accountId, job.id, START), log)
      assert.deepEqual(await tenant.use(), { running: 0, queued: 0 })
      assert.deepEqual(await tenant.succeed(lease), { outcome: 'lost' })
    })

    test('a job that printed nothing has no log', async () => {
      const tenant = await Tenant.create(store())
      const { job } = await tenant.run()
      assert.equal(await store().jobs.findLog(tenant.accountId, job.id, START), null)
    })

    test('a write under a wrong or former lease changes nothing', async () => {
      const tenant = await Tenant.create(store())
      const { job, lease } = await tenant.run()
      const wrong = { jobId: job.id, leaseId: randomUUID() }
      const output = newOutput()
      assert.deepEqual(await store().jobs.commit(wrong, { progress: PROGRESS, outputs: [output] }), { outcome: 'lost' })
      await store().jobs.reap(REAP)
      const again = await tenant.claim({ now: at(40_000) })
      assert.equal(again?.job.attempt, 2)
      assert.deepEqual(await store().jobs.commit(lease, { outputs: [output] }), { outcome: 'lost' })
      assert.deepEqual(await tenant.succeed(lease), { outcome: 'lost' })
      assert.deepEqual(await tenant.find(job.id), again.job)
      assert.equal(await store().assets.find(tenant.accountId, output.assetId, START), null)
    })

    test('a finish from a state that was not named changes nothing', async () => {
      const tenant = await Tenant.create(store())
      const { job, lease } = await tenant.run()
      const finish = { status: 'canceled', from: ['canceling'], at: START, error: null } as const
      const before = await tenant.find(job.id)
      assert.deepEqual(await store().jobs.commit(lease, { finish, outputs: [newOutput()] }), { outcome: 'lost' })
      assert.deepEqual(await tenant.find(job.id), before)
    })

    test('output numbers are consecutive, start at 1 and are never given twice', async () => {
      const tenant = await Tenant.create(store())
      const other = await Tenant.create(store())
      const reserve = (accountId: string, prefix: string, count: number) =>
        store().jobs.reserveOutputNumbers(accountId, 'output', prefix, count)
      assert.equal(await reserve(tenant.accountId, 'a', 3), 1)
      assert.equal(await reserve(tenant.accountId, 'a', 1), 4)
      assert.equal(await reserve(tenant.accountId, 'b', 1), 1)
      assert.equal(await reserve(other.accountId, 'a', 1), 1)
      const many = await Promise.all(Array.from({ length: 40 }, () => reserve(tenant.accountId, 'c', 2)))
      assert.deepEqual(
        many.sort((a, b) => a - b),
        Array.from({ length: 40 }, (_, index) => 1 + 2 * index),
      )
    })

    test('the inputs of a job that has not ended keep their blobs; its end lets them go', async () => {
      const tenant = await Tenant.create(store())
      const hash = hashOf(`input-${tenant.accountId}`)
      await store().assets.announceBlob(hash, 5, START)
      const { lease } = await tenant.run({ inputs: [{ name: 'x.png', hash, sizeBytes: 5, contentType: 'image/png' }] })
      assert.ok(!(await store().assets.retireBlobs(at(10), 1000)).includes(hash))
      assert.deepEqual(await store().assets.knownBlobs([hash]), [hash])
      await tenant.succeed(lease, at(20))
      assert.ok(!(await store().assets.retireBlobs(at(20), 1000)).includes(hash))
      assert.ok((await store().assets.retireBlobs(at(21), 1000)).includes(hash))
      assert.deepEqual(await store().assets.knownBlobs([hash]), [])
    })
  })
}
