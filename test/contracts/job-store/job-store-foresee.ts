/** For stores that no other process takes jobs from: what the next claims would take, and the claim of one job by its id. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { seededRandom } from '../../support/seeded-random.ts'
import { START, type StoreOpener, shareStore, Tenant } from '../store-under-test.ts'

const ENGINE = {
  engineId: 'one',
  lanes: ['a', 'b'].map((lane) => ({ lane, rank: 1 as const })),
}
const MOMENT = { workerId: 'worker', leaseUntil: new Date(START.getTime() + 30_000), now: START }

export function testJobStoreForesee(opener: StoreOpener): void {
  describe('foresee', () => {
    const store = shareStore(opener)

    const foresee = (tenant: Tenant, count: number, known: readonly string[] = []) =>
      store().jobs.foresee?.({ ...MOMENT, pool: tenant.pool, engine: ENGINE, count, known, maxOvertakes: 10 })

    const claimForeseen = (tenant: Tenant, jobId: string) =>
      store().jobs.claimForeseen?.({
        ...{ ...MOMENT, pool: tenant.pool, leaseId: randomUUID() },
        ...{ engineId: ENGINE.engineId, jobId },
      })

    test('tells exactly what the next claims take, and takes nothing', async () => {
      const random = seededRandom(5)
      for (let round = 0; round < 20; round += 1) {
        const first = await Tenant.create(store())
        const tenants = [first]
        for (let index = 0; index < 2; index += 1)
          tenants.push(await first.neighbour({ maxRunning: random.between(0, 4) }))
        // In every other round all that waits is of one account and one lane.
        const isRow = round % 2 === 1
        const submitters = isRow ? [random.pick(tenants)] : tenants
        const lanes = isRow ? [random.pick(['a', 'b', 'c'])] : ['a', 'b', 'c']
        for (let index = 0; index < 12; index += 1)
          await random.pick(submitters).submit({ priority: random.between(0, 2), needs: random.pick(lanes) })
        const before = await Promise.all(tenants.map((tenant) => tenant.use()))
        const foreseen = (await foresee(first, 8)) ?? []
        assert.deepEqual(await Promise.all(tenants.map((tenant) => tenant.use())), before)
        for (const { jobId, claim } of foreseen) {
          const taken = await first.claim({ engines: [ENGINE] })
          assert.equal(taken?.job.id, jobId)
          assert.deepEqual({ ...claim, leaseId: taken.leaseId }, taken)
        }
        if (foreseen.length < 8) assert.equal(await first.claim({ engines: [ENGINE] }), null)
      }
    })

    test('jobs that are known keep their places among the others', async () => {
      const tenant = await Tenant.create(store())
      const submit = async (priority: number) => (await tenant.submit({ needs: 'a', priority })).id
      const [last, known, first] = [await submit(0), await submit(1), await submit(2)]
      const foreseen = (await foresee(tenant, 3, [known])) ?? []
      assert.deepEqual(
        foreseen.map(({ jobId, claim }) => [jobId, claim?.job.id]),
        [first, known, last].map((id) => [id, id === known ? undefined : id]),
      )
    })

    test('of a job that is known only its place is told', async () => {
      const tenant = await Tenant.create(store())
      const { id } = await tenant.submit({ needs: 'a' })
      assert.deepEqual(await foresee(tenant, 4, [id]), [{ jobId: id, claim: null }])
    })

    test('one job is claimed by its id as long as it waits and its account has room', async () => {
      const tenant = await (await Tenant.create(store())).neighbour({ maxRunning: 1 })
      const [first, second] = [await tenant.submit({ needs: 'a' }), await tenant.submit({ needs: 'a' })]
      const claim = await claimForeseen(tenant, second.id)
      assert.deepEqual([claim?.job.id, claim?.job.status, claim?.engineId], [second.id, 'running', 'one'])
      assert.equal(await claimForeseen(tenant, second.id), null)
      assert.equal(await claimForeseen(tenant, first.id), null)
      assert.deepEqual(await tenant.use(), { running: 1, queued: 1 })
      await tenant.succeed({ jobId: second.id, leaseId: claim?.leaseId ?? '' })
      assert.equal((await claimForeseen(tenant, first.id))?.job.id, first.id)
    })
  })
}
