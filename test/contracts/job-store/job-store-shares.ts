/** Shares: who has used more of the servers' time waits for those who used less, as far as loaded weights do not let it go first. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { EngineOffer } from '../../../src/domain/engine/fleet/lane-offers.ts'
import { drawnCases } from '../../support/drawn-cases.ts'
import { type Arrival, type Replayed, replayLoad } from '../../support/jobs/replay-load.ts'
import { at, type StoreOpener, type StoreUnderTest, shareStore, Tenant } from '../store-under-test.ts'

/** An engine with the weights of some lanes: what a lane's runs are foreseen to take, by lane. */
function engine(
  loaded: Readonly<Record<string, number>>,
  unloaded: Readonly<Record<string, number>> = {},
): EngineOffer[] {
  const toLanes = (lanes: Readonly<Record<string, number>>, rank: number) =>
    Object.entries(lanes).map(([lane, foreseenMs]) => ({ lane, rank, foreseenMs }))
  return [{ engineId: 'one', lanes: [...toLanes(loaded, 0), ...toLanes(unloaded, 2)] }]
}

interface Load {
  readonly servers: number
  readonly creditMs: number
  readonly maxRunMs: number
  readonly arrivals: readonly Arrival[]
}

const ACCOUNTS = 4
/** Accounts with much and with little to do, of lanes that are few and many, at once and over time. */
const load: fc.Arbitrary<Load> = fc
  .record({
    servers: fc.integer({ min: 1, max: 3 }),
    creditMs: fc.constantFrom(0, 5_000, 40_000),
    maxRunMs: fc.constantFrom(1_000, 20_000),
    spreadMs: fc.constantFrom(0, 60_000, 400_000),
    jobs: fc.array(fc.tuple(fc.nat(99), fc.nat(2), fc.nat(999), fc.nat(999)), { minLength: 20, maxLength: 60 }),
  })
  .map(({ servers, creditMs, maxRunMs, spreadMs, jobs }) => ({
    servers,
    creditMs,
    maxRunMs,
    arrivals: jobs
      .map(([who, lane, when, long]) => ({
        // Half of the jobs are those of one account.
        accountId: String(who < 50 ? 0 : who % ACCOUNTS),
        lane: `lane-${lane}`,
        atMs: Math.floor((when / 1000) * spreadMs),
        runMs: 1 + Math.floor((long / 1000) * maxRunMs),
      }))
      .sort((one, other) => one.atMs - other.atMs),
  }))

const COSTS = { switchMs: 3_000, additionMs: 0 }

/** Renames the accounts of the load to ones that are in the store. */
async function replay(store: StoreUnderTest, { servers, creditMs, arrivals }: Load): Promise<Replayed> {
  const ids = Array.from({ length: ACCOUNTS }, () => randomUUID())
  for (const id of ids) await store.accounts.put({ id, maxRunning: 100, maxQueued: 1000 })
  const own = arrivals.map((arrival) => ({ ...arrival, accountId: ids[Number(arrival.accountId)] ?? '' }))
  return replayLoad(store.jobs, { arrivals: own, servers, costs: COSTS, rule: { creditMs, maxOvertakes: 1_000 } })
}

/** The times at which an account had a job waiting, as [from, to] in milliseconds. */
function backlogs({ runs }: Replayed, accountId: string): (readonly [number, number])[] {
  const spans = runs
    .filter(({ arrival }) => arrival.accountId === accountId)
    .map(({ arrival, startedAtMs }) => [arrival.atMs, startedAtMs] as const)
    .sort(([one], [other]) => one - other)
  const joined: [number, number][] = []
  for (const [from, to] of spans) {
    const last = joined.at(-1)
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to)
    else joined.push([from, to])
  }
  return joined
}

/** What runs that began in the span took. */
function served({ runs }: Replayed, accountId: string, [from, to]: readonly [number, number]): number {
  return runs
    .filter(({ arrival, startedAtMs }) => arrival.accountId === accountId && startedAtMs >= from && startedAtMs < to)
    .reduce((sum, { startedAtMs, endedAtMs }) => sum + endedAtMs - startedAtMs, 0)
}

export function testJobStoreShares(opener: StoreOpener): void {
  describe('shares', () => {
    const store = shareStore(opener)

    test('within the credit loaded weights go first, beyond it the account that used least', async () => {
      const many = await Tenant.create(store(), { maxRunning: 100 })
      const few = await many.neighbour()
      for (let count = 0; count < 10; count += 1) await many.submit({ needs: 'loaded' })
      const first = await few.submit({ needs: 'cold' })
      const order: string[] = []
      for (let count = 0; count < 11; count += 1) {
        const claim = await many.claim({ engines: engine({ loaded: 10_000 }, { cold: 10_000 }), creditMs: 40_000 })
        order.push(claim?.job.id === first.id ? 'few' : 'many')
      }
      // After five runs the one has used 50 s, and the other nothing.
      assert.deepEqual([order.indexOf('few'), order.filter((who) => who === 'many').length], [5, 10])
    })

    test('of many accounts that wait for the same, each has its turn before one has its second', async () => {
      const first = await Tenant.create(store())
      const others = await Promise.all(Array.from({ length: 39 }, () => first.neighbour()))
      for (const tenant of [first, ...others, first, ...others]) await tenant.submit({ needs: 'a' })
      const served = new Set<string>()
      for (let count = 0; count < 40; count += 1)
        served.add((await first.claim({ engines: engine({ a: 10_000 }), creditMs: 0 }))?.job.accountId ?? '')
      assert.equal(served.size, 40)
    })

    test('what a run took counts in the end, not what was foreseen', async () => {
      const long = await Tenant.create(store())
      const short = await long.neighbour()
      for (let count = 0; count < 2; count += 1) {
        await long.submit({ needs: 'a' })
        await short.submit({ needs: 'a' })
      }
      const engines = engine({ a: 10_000 })
      for (const tookMs of [90_000, 1_000]) {
        const claim = await long.claim({ engines, now: at(0) })
        assert.ok(claim !== null)
        await long.succeed({ jobId: claim.job.id, leaseId: claim.leaseId }, at(tookMs))
      }
      const next = [await long.claim({ engines }), await long.claim({ engines })]
      assert.deepEqual(
        next.map((claim) => claim?.job.accountId),
        [short.accountId, long.accountId],
      )
    })

    test('an account that comes back is owed nothing for the time in which it did not wait', async () => {
      const busy = await Tenant.create(store(), { maxRunning: 100 })
      const absent = await busy.neighbour({ maxRunning: 100 })
      const engines = engine({ a: 10_000 })
      for (let count = 0; count < 40; count += 1) await busy.submit({ needs: 'a' })
      for (let count = 0; count < 20; count += 1) await busy.claim({ engines })
      for (let count = 0; count < 20; count += 1) await absent.submit({ needs: 'a' })
      const owners: string[] = []
      for (let count = 0; count < 8; count += 1) owners.push((await busy.claim({ engines }))?.job.accountId ?? '')
      const own = owners.filter((id) => id === absent.accountId).length
      assert.ok(own === 4 || own === 5, `${own} of 8`)
    })

    test('an account with twice the share has twice the time', async () => {
      const plain = await Tenant.create(store(), { maxRunning: 100 })
      const double = await plain.neighbour()
      await store().accounts.put({ id: double.accountId, maxRunning: 100, maxQueued: 1000, sharePercent: 200 })
      for (let count = 0; count < 30; count += 1) {
        await plain.submit({ needs: 'a' })
        await double.submit({ needs: 'a' })
      }
      let own = 0
      for (let count = 0; count < 30; count += 1) {
        const claim = await plain.claim({ engines: engine({ a: 10_000 }) })
        if (claim?.job.accountId === double.accountId) own += 1
      }
      assert.ok(own >= 19 && own <= 21, `${own} of 30`)
    })

    test('where weights must be loaded, they are those for which the most accounts wait', async () => {
      const first = await Tenant.create(store())
      await first.submit({ needs: 'rare' })
      for (let count = 0; count < 3; count += 1) await (await first.neighbour()).submit({ needs: 'popular' })
      const engines = engine({}, { rare: 1000, popular: 1000 })
      assert.equal((await first.claim({ engines, creditMs: 5_000 }))?.needs, 'popular')
    })

    test('what was used in one pool counts in no other', async () => {
      const here = await Tenant.create(store(), { maxRunning: 100 })
      const other = await here.neighbour()
      const elsewhere = new Tenant(store(), here.accountId, randomUUID())
      const engines = engine({ a: 500_000 })
      for (let count = 0; count < 3; count += 1) await elsewhere.submit({ needs: 'a' })
      for (let count = 0; count < 3; count += 1) await elsewhere.claim({ engines })
      const first = await here.submit({ needs: 'a' })
      await other.submit({ needs: 'a' })
      assert.equal((await here.claim({ engines }))?.job.id, first.id)
    })

    test('what was used long ago is forgiven', async () => {
      const tenant = await Tenant.create(store(), { maxRunning: 100 })
      const other = await tenant.neighbour()
      const engines = engine({ a: 500_000 })
      await tenant.submit({ needs: 'a' })
      await tenant.claim({ engines, now: at(0) })
      await store().jobs.sweepShares(at(1))
      const first = await tenant.submit({ needs: 'a' })
      await other.submit({ needs: 'a' })
      assert.equal((await tenant.claim({ engines, now: at(2) }))?.job.id, first.id)
    })

    // Each may be ahead by the credit, by a run on each server whose length was guessed, and by the run that passes the mark: so one that
    // was behind may gain that twice. And the floor is raised in steps.
    test('of two accounts that wait all the time none gains more than twice the credit and what runs', async () => {
      await fc.assert(
        fc.asyncProperty(load, async (drawn) => {
          const replayed = await replay(store(), drawn)
          assert.equal(replayed.runs.length, drawn.arrivals.length)
          const longestMs = drawn.maxRunMs + COSTS.switchMs
          const boundMs = 2 * (drawn.creditMs + (drawn.servers + 1) * longestMs) + 1_000
          const ids = [...new Set(replayed.runs.map(({ arrival }) => arrival.accountId))]
          for (const one of ids) {
            for (const other of ids) {
              for (const span of overlaps(backlogs(replayed, one), backlogs(replayed, other))) {
                const ahead = served(replayed, one, span) - served(replayed, other, span)
                assert.ok(ahead <= boundMs, `${ahead} ms ahead, and the bound is ${boundMs} ms`)
              }
            }
          }
        }),
        { numRuns: drawnCases(12) },
      )
    })
  })
}

function overlaps(
  some: readonly (readonly [number, number])[],
  others: readonly (readonly [number, number])[],
): (readonly [number, number])[] {
  return some.flatMap(([from, to]) =>
    others
      .map(([otherFrom, otherTo]) => [Math.max(from, otherFrom), Math.min(to, otherTo)] as const)
      .filter(([begin, end]) => begin < end),
  )
}
