/** Accounts that hold jobs while others wait: who has to give way, and what becomes of the job that did. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ReturnedLease } from '../../../src/domain/jobs/job-store.ts'
import { at, hashOf, newOutput, ONE_LANE, START, type StoreOpener, shareStore, Tenant } from '../store-under-test.ts'

const SPENT_TURNS = 11

export function testJobStoreTurns(opener: StoreOpener): void {
  describe('turns', () => {
    const store = shareStore(opener)

    const outwaitedBy = (tenant: Tenant, accountIds: readonly string[], lanes: readonly string[] | null = null) =>
      store().jobs.findOutwaited({ pool: tenant.pool, now: START, lanes, accountIds })

    for (const [how, fields, engines] of [
      ['whatever waits', {}, undefined],
      ['lanes', ONE_LANE.job, ONE_LANE.engines],
    ] as const) {
      test(`a job that gave way comes behind all of its account, which comes behind all others (${how})`, async () => {
        const holder = await Tenant.create(store())
        const claim = () => holder.claim({ maxOvertakes: SPENT_TURNS - 1, ...(engines && { engines }) })
        const inputs = [{ name: 'a.png', hash: hashOf('input'), sizeBytes: 5, contentType: 'image/png' }]
        const secret = { needsExtraData: true, sealedExtraData: new Uint8Array([7]), notes: '{"a":1}' }
        await holder.submit({ ...fields, inputs, ...secret, workflow: '{"kept":1}' })
        const first = await claim()
        assert.ok(first !== null)
        const { job } = first
        const output = newOutput()
        await store().jobs.commit({ jobId: job.id, leaseId: first.leaseId }, { outputs: [output] })
        const next = await holder.submit(fields)
        const other = await holder.neighbour()
        const waiting = await other.submit(fields)
        const lease: ReturnedLease = { jobId: job.id, leaseId: first.leaseId, spentTurns: SPENT_TURNS }
        const [touched] = await store().jobs.release([lease], at(1))
        assert.deepEqual([touched.jobId, touched.status], [job.id, 'queued'])
        const back = await holder.find(job.id)
        assert.deepEqual([back?.attempt, back?.queuePosition, back?.outputs], [0, 2, [output]])
        assert.equal(await store().jobs.findWorkflow(holder.accountId, job.id, START), '{"kept":1}')
        const claims = [await claim(), await claim(), await claim()]
        assert.deepEqual(
          claims.map((each) => each?.job.id),
          [waiting.id, next.id, job.id],
        )
        const again = claims[2]
        assert.deepEqual(
          [again?.inputs, again?.notes, [...(again?.sealedExtraData ?? [])], again?.earlierOutputs, again?.job.attempt],
          [inputs, '{"a":1}', [7], [output], 1],
        )
        assert.deepEqual(
          [await holder.use(), await other.use()],
          [
            { running: 2, queued: 0 },
            { running: 1, queued: 0 },
          ],
        )
      })
    }

    test('an account gives way to one that runs nothing, or at least two jobs fewer', async () => {
      const holder = await Tenant.create(store())
      const other = await holder.neighbour()
      const ids = [holder.accountId, other.accountId]
      await holder.run()
      assert.deepEqual(await outwaitedBy(holder, ids), [], 'nobody waits')
      await holder.submit()
      assert.deepEqual(await outwaitedBy(holder, ids), [], 'only the holder itself waits')
      await other.submit()
      assert.deepEqual(await outwaitedBy(holder, ids), [holder.accountId])
      assert.deepEqual(await outwaitedBy(await Tenant.create(store()), ids), [], 'it waits in another pool')
      assert.equal((await holder.claim())?.job.accountId, other.accountId)
      await other.submit()
      assert.deepEqual(await outwaitedBy(holder, ids), [], 'both run as many')
      await holder.claim({ now: START })
      assert.deepEqual(await outwaitedBy(holder, ids), [], 'one more is no reason')
    })

    test('an account at its limit, or with a job for other engines, is nobody to give way to', async () => {
      const holder = await Tenant.create(store())
      await holder.run()
      const full = await holder.neighbour({ maxRunning: 0 })
      await full.submit({ needs: 'lane' })
      assert.deepEqual(await outwaitedBy(holder, [holder.accountId]), [])
      const other = await holder.neighbour()
      await other.submit({ needs: 'lane' })
      assert.deepEqual(await outwaitedBy(holder, [holder.accountId], ['another lane']), [])
      assert.deepEqual(await outwaitedBy(holder, [holder.accountId], ['another lane', 'lane']), [holder.accountId])
      assert.deepEqual(await outwaitedBy(holder, [holder.accountId], []), [])
      assert.deepEqual(await outwaitedBy(holder, [holder.accountId]), [holder.accountId])
      assert.deepEqual(await outwaitedBy(holder, []), [])
    })

    test('whoever waits is found behind others in the same lane, and in any of the lanes', async () => {
      const holder = await Tenant.create(store())
      await holder.run()
      for (const needs of ['lane b', 'lane c']) {
        const full = await holder.neighbour({ maxRunning: 0 })
        await full.submit({ needs })
        await full.submit({ needs })
        await holder.submit({ needs })
      }
      const ids = [holder.accountId]
      const lanes = ['lane c', 'lane a', 'lane b', 'lane c']
      assert.deepEqual([await outwaitedBy(holder, ids), await outwaitedBy(holder, ids, lanes)], [[], []])
      for (const needs of ['', 'lane c']) await (await holder.neighbour()).submit({ needs })
      assert.deepEqual([await outwaitedBy(holder, ids), await outwaitedBy(holder, ids, lanes)], [ids, ids])
      assert.deepEqual(await outwaitedBy(holder, ids, ['lane a', 'lane b']), [])
    })
  })
}
