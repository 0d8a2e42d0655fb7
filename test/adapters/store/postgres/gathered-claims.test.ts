/** Claims of one moment for engines that serve certain lanes, as the service makes them on Postgres: few statements, exact slots. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { ChosenLane, EngineOffer, LaneRank } from '../../../../src/domain/engine/fleet/lane-offers.ts'
import type { Claim } from '../../../../src/domain/jobs/job-store.ts'
import type { Store } from '../../../../src/domain/store.ts'
import { at, START, Tenant } from '../../../contracts/store-under-test.ts'
import { withTwoNodes } from './temporary-store.ts'

const LANES = ['a', 'b', 'c', 'd']

function engine(engineId: string, lanes: readonly string[], rank: LaneRank = 0): EngineOffer {
  return { engineId, lanes: lanes.map((lane) => ({ lane, rank })) }
}

async function submitEach(tenants: readonly Tenant[], count: number): Promise<void> {
  for (let place = 0; place < count; place += 1) {
    for (const tenant of tenants) await tenant.submit({ needs: LANES[place % LANES.length] as string })
  }
}

async function countWrites(store: Store, body: () => Promise<unknown>): Promise<number> {
  const before = store.stats().write.batches
  await body()
  return store.stats().write.batches - before
}

test('claims of one moment are two statements, whatever each of their engines serves', () =>
  withTwoNodes(async ({ stores: [store] }) => {
    const first = await Tenant.create(store, { maxRunning: 100 })
    await submitEach([first, await first.neighbour({ maxRunning: 100 })], 20)
    const offers = Array.from({ length: 24 }, (_, index) => [engine(`engine-${index}`, [LANES[index % 4] as string])])
    const claims: (Claim | null)[] = []
    const writes = await countWrites(store, async () => {
      claims.push(...(await Promise.all(offers.map((engines) => first.claim({ engines })))))
    })
    assert.equal(writes, 2)
    for (const [index, claim] of claims.entries()) {
      assert.deepEqual([claim?.engineId, claim?.needs], [`engine-${index}`, LANES[index % 4]])
    }
  }))

test('where nothing waits for any of them, claims of one moment are one statement', () =>
  withTwoNodes(async ({ stores: [store] }) => {
    const tenant = await Tenant.create(store)
    await tenant.submit({ needs: 'elsewhere' })
    const claimAll = () =>
      Promise.all(Array.from({ length: 24 }, (_, index) => tenant.claim({ engines: [engine(`${index}`, LANES)] })))
    assert.equal(await countWrites(store, claimAll), 1)
  }))

/** Two slots each, and what an engine was last given is what it has loaded. */
function offersAfter(chosen: readonly ChosenLane[]): EngineOffer[] {
  return ['one', 'two'].flatMap((engineId) => {
    const own = chosen.filter((each) => each.engineId === engineId)
    const loaded = own.at(-1)?.lane
    if (own.length >= 2) return []
    return [{ engineId, lanes: LANES.map((lane) => ({ lane, rank: lane === loaded ? (0 as const) : (2 as const) })) }]
  })
}

test('claims that one worker makes together are those that it would have made one after the other', () =>
  withTwoNodes(async ({ stores: [store] }) => {
    const nameOf = (jobs: readonly string[], claim: Claim | null) =>
      claim === null ? 'none' : `${jobs.indexOf(claim.job.id)} on ${claim.engineId}`
    const prepare = async () => {
      const tenant = await Tenant.create(store, { maxRunning: 100 })
      const other = await tenant.neighbour({ maxRunning: 1 })
      const jobs: string[] = []
      for (const lane of [...'abacbd']) jobs.push((await tenant.submit({ needs: lane })).id)
      for (const lane of [...'da']) jobs.push((await other.submit({ needs: lane })).id)
      return { tenant, jobs }
    }
    const one = await prepare()
    const chosen: ChosenLane[] = []
    const singly: string[] = []
    for (let count = 0; count < 6; count += 1) {
      const claim = await one.tenant.claim({ engines: offersAfter(chosen), maxOvertakes: 2 })
      singly.push(nameOf(one.jobs, claim))
      if (claim !== null) chosen.push({ engineId: claim.engineId, lane: claim.needs })
    }
    const other = await prepare()
    const settled = await store.jobs.claimSeveral?.({
      ...{ pool: other.tenant.pool, workerId: 'worker', now: START, leaseUntil: at(30_000), maxOvertakes: 2 },
      ...{ leaseIds: Array.from({ length: 6 }, () => randomUUID()), offersAfter },
    })
    const together = settled?.map((each) => nameOf(other.jobs, each.status === 'fulfilled' ? each.value : null))
    assert.deepEqual(together, singly)
    assert.equal(singly.filter((name) => name !== 'none').length, 4)
  }))
