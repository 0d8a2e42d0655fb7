/** Results that answer further jobs: whole or not at all, within their account, and over the same bytes. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Output } from '../../../src/domain/jobs/job.ts'
import {
  at,
  DAY_MS,
  hashOf,
  keyClaim,
  newOutput,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
} from '../store-under-test.ts'

const WEEK_MS = 7 * DAY_MS
const LATER = at(DAY_MS)

/** Has a job that made these outputs in half a second. */
async function make(tenant: Tenant, key: string | null, outputs: readonly Output[]): Promise<string> {
  const { lease } = await tenant.run({ keepsResult: key !== null })
  await tenant.store.jobs.commit(lease, {
    outputs,
    finish: { status: 'succeeded', from: ['running'], at: at(500), error: null, resultKey: key },
  })
  return lease.jobId
}

export function testJobStoreReuse(opener: StoreOpener): void {
  describe('results that answer further jobs', () => {
    const store = shareStore(opener)
    const answer = (tenant: Tenant, key: string, assetIds: readonly string[], claim = keyClaim(randomUUID(), LATER)) =>
      store().jobs.answerAgain(tenant.newJob({ createdAt: LATER }), { key, assetIds }, claim)

    test('a claim says whether the result is wanted', async () => {
      const tenant = await Tenant.create(store())
      await tenant.submit({ keepsResult: true, notes: '{}' })
      await tenant.submit()
      const claims = [await tenant.claim(), await tenant.claim()]
      assert.deepEqual(
        claims.map((claim) => [claim?.keepsResult, claim?.notes]),
        [
          [true, '{}'],
          [undefined, null],
        ],
      )
      const again = await store().jobs.findClaim(claims[0]?.leaseId ?? '')
      assert.equal(again?.keepsResult, true)
    })

    test('it has succeeded without a run, with records of its own, and outlives the job that made the bytes', async () => {
      const tenant = await Tenant.create(store(), { maxQueued: 0 })
      await store().accounts.put({ id: tenant.accountId, maxRunning: 1, maxQueued: 1 })
      const outputs = [newOutput({ name: 'a.png' }), newOutput({ name: 'b.txt', type: 'text', hash: hashOf('b') })]
      const firstId = await make(tenant, 'k', outputs)
      await tenant.submit()
      const found = await store().jobs.findResult(tenant.accountId, 'k', LATER)
      assert.deepEqual([found?.jobId, found?.runMs], [firstId, 500])
      assert.deepEqual(found?.outputs, outputs)
      const ids = outputs.map(() => randomUUID())
      const claim = keyClaim('once', LATER)
      const answered = await answer(tenant, 'k', ids, claim)
      assert.ok(answered.outcome === 'answered', answered.outcome)
      const { job } = answered
      assert.deepEqual(
        [job.status, job.startedAt, job.completedAt, job.reusedFrom],
        ['succeeded', null, LATER, firstId],
      )
      assert.deepEqual(
        job.outputs,
        outputs.map((output, index) => ({ ...output, assetId: ids[index] })),
      )
      assert.deepEqual(await tenant.find(job.id, LATER), job)
      assert.deepEqual(await tenant.use(), { running: 0, queued: 1 })
      assert.equal(await store().accounts.repairCounters(), 0)
      assert.deepEqual((await store().keys.findKey(tenant.accountId, 'once', LATER))?.jobId, job.id)
      const repeated = await answer(tenant, 'k', ids, claim)
      assert.equal(repeated.outcome, 'key_reused')
      const afterwards = at(WEEK_MS + 1)
      await store().jobs.cancel(tenant.accountId, (await tenant.claim())?.job.id ?? '', LATER)
      await store().jobs.remove({ now: afterwards, expiredBefore: afterwards, limit: 100 })
      assert.equal(await tenant.find(firstId, LATER), null)
      assert.equal((await store().assets.find(tenant.accountId, ids[0] ?? '', afterwards))?.hash, outputs[0]?.hash)
      assert.equal((await store().jobs.findResult(tenant.accountId, 'k', afterwards))?.jobId, job.id)
    })

    test('nothing answers for another account, under another key, past the retention, or for a job that kept none', async () => {
      const tenant = await Tenant.create(store())
      const other = await tenant.neighbour()
      await make(tenant, 'k', [newOutput()])
      await make(tenant, null, [newOutput()])
      const ids = [randomUUID()]
      assert.equal(await store().jobs.findResult(other.accountId, 'k', LATER), null)
      assert.equal(await store().jobs.findResult(tenant.accountId, 'other', LATER), null)
      assert.equal(await store().jobs.findResult(tenant.accountId, 'k', at(WEEK_MS)), null)
      assert.equal((await answer(other, 'k', ids)).outcome, 'gone')
      assert.equal((await answer(tenant, 'other', ids)).outcome, 'gone')
      const late = tenant.newJob({ createdAt: at(WEEK_MS) })
      assert.equal((await store().jobs.answerAgain(late, { key: 'k', assetIds: ids }, null)).outcome, 'gone')
      assert.deepEqual(await tenant.use(), { running: 0, queued: 0 })
    })

    test('a job that failed keeps no result, whatever its end brings', async () => {
      const tenant = await Tenant.create(store())
      const { lease } = await tenant.run({ keepsResult: true })
      const finish = { status: 'failed', from: ['running'], at: START, error: null, resultKey: 'k' } as const
      await store().jobs.commit(lease, { outputs: [newOutput()], finish })
      assert.equal(await store().jobs.findResult(tenant.accountId, 'k', START), null)
    })

    test('a result that goes while it is being used answers whole or not at all', async () => {
      const tenant = await Tenant.create(store())
      const outputs = Array.from({ length: 5 }, (_, index) => newOutput({ hash: hashOf(`o${index}`) }))
      await make(tenant, 'k', outputs)
      const gone = at(WEEK_MS + 1)
      // Asked for a moment before its retention ends, while the sweep believes that it is over.
      const job = tenant.newJob({ createdAt: at(WEEK_MS - 1) })
      const ids = outputs.map(() => randomUUID())
      const [answered] = await Promise.all([
        store().jobs.answerAgain(job, { key: 'k', assetIds: ids }, null),
        store().jobs.remove({ now: gone, expiredBefore: gone, limit: 100 }),
      ])
      const read = await tenant.find(job.id, job.createdAt)
      if (answered.outcome === 'gone') assert.equal(read, null)
      else assert.equal(read?.outputs.length, 5)
      for (const { assetId } of read?.outputs ?? [])
        assert.notEqual(await store().assets.find(tenant.accountId, assetId, job.createdAt), null)
      assert.equal(await store().accounts.repairCounters(), 0)
    })

    test('keys of jobs past their retention are forgotten', async () => {
      const tenant = await Tenant.create(store())
      await make(tenant, 'swept', [newOutput()])
      await store().jobs.sweepResults(at(WEEK_MS - 1))
      assert.notEqual(await store().jobs.findResult(tenant.accountId, 'swept', START), null)
      assert.ok((await store().jobs.sweepResults(at(WEEK_MS))) >= 1)
      assert.equal(await store().jobs.findResult(tenant.accountId, 'swept', START), null)
    })
  })
}
