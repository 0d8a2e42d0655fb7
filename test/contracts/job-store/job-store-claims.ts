/** Claims: order, fairness, limits that hold under competition, secrets that are handed over once. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { LaneRank } from '../../../src/domain/engine/fleet/lane-offers.ts'
import type { Claim, ClaimRequest } from '../../../src/domain/jobs/job-store.ts'
import { NO_ORIGIN } from '../../../src/domain/jobs/submit/job-origin.ts'
import { at, START, type StoreOpener, type StoreUnderTest, shareStore, Tenant } from '../store-under-test.ts'

const LANES = ['a', 'b', 'c'] as const

interface WaitingJob {
  readonly priority: number
  readonly lane: (typeof LANES)[number]
}

/** How many it may run, how many of its jobs run already, and those that wait. */
interface WaitingAccount {
  readonly maxRunning: number
  readonly running: number
  readonly waiting: readonly WaitingJob[]
}

/** What one claim is made with. */
type Asked = Pick<ClaimRequest, 'engines' | 'maxOvertakes'>

const waitingAccount: fc.Arbitrary<WaitingAccount> = fc.record({
  maxRunning: fc.integer({ min: 0, max: 5 }),
  running: fc.integer({ min: 0, max: 2 }),
  waiting: fc.array(fc.record({ priority: fc.integer({ min: 0, max: 2 }), lane: fc.constantFrom(...LANES) }), {
    maxLength: 5,
  }),
})

const laneOffer = fc.record({
  lane: fc.constantFrom(...LANES),
  rank: fc.constantFrom<LaneRank>(0, 1, 2, 3),
})
const askedWithLanes: fc.Arbitrary<Asked> = fc.record({
  engines: fc
    .array(fc.uniqueArray(laneOffer, { selector: ({ lane }) => lane }), { minLength: 1, maxLength: 3 })
    .map((engines) => engines.map((lanes, index) => ({ engineId: `engine-${index}`, lanes }))),
  maxOvertakes: fc.constantFrom(0, 1, 3, 10),
})
const ANYTHING: Asked = { engines: [{ engineId: 'engine', lanes: null }], maxOvertakes: 0 }

/** Has the accounts, with their jobs, in a pool of their own. Returns what a claimed job is known by in every such pool. */
async function prepareQueue(store: StoreUnderTest, accounts: readonly WaitingAccount[]) {
  const first = await Tenant.create(store)
  const names = new Map<string, string>()
  const tenants: Tenant[] = []
  for (const { maxRunning, running } of accounts) {
    const tenant = await first.neighbour({ maxRunning })
    for (let count = 0; count < Math.min(running, maxRunning); count += 1) await tenant.run()
    tenants.push(tenant)
  }
  const longest = Math.max(...accounts.map(({ waiting }) => waiting.length))
  // Account by account in turn, so that their jobs are mixed in submit order.
  for (let place = 0; place < longest; place += 1) {
    for (const [index, tenant] of tenants.entries()) {
      const job = accounts[index]?.waiting[place]
      if (job === undefined) continue
      const { id } = await tenant.submit({ priority: job.priority, needs: job.lane })
      names.set(id, `${index}/${place}`)
    }
  }
  const nameOf = (claim: Claim | null) =>
    claim === null ? 'none' : `${names.get(claim.job.id)} on ${claim.engineId} for ${claim.needs}`
  return { tenant: first, nameOf }
}

async function haveSameClaims(
  store: StoreUnderTest,
  accounts: readonly WaitingAccount[],
  asked: readonly Asked[],
): Promise<void> {
  const one = await prepareQueue(store, accounts)
  const singly: string[] = []
  for (const each of [...asked, ...asked]) singly.push(one.nameOf(await one.tenant.claim(each)))
  const other = await prepareQueue(store, accounts)
  const together: string[] = []
  for (let round = 0; round < 2; round += 1) {
    const claims = await Promise.all(asked.map((each) => other.tenant.claim(each)))
    together.push(...claims.map(other.nameOf))
  }
  assert.deepEqual(together, singly)
}

export function testJobStoreClaims(opener: StoreOpener): void {
  describe('claim', () => {
    const store = shareStore(opener)

    test('a claim starts the job under a lease and hands over everything it needs', async () => {
      const tenant = await Tenant.create(store())
      const workflow = '{"7":{"class_type":"X","inputs":{"seed":18446744073709551615}}}'
      const queued = await tenant.submit({ workflow, metadata: { a: 'b' } })
      const claim = await tenant.claim({ now: at(1500) })
      assert.equal(claim?.workflow, workflow)
      assert.equal(claim.needsExtraData, false)
      assert.equal(claim.sealedExtraData, null)
      assert.deepEqual(claim.job, {
        ...queued,
        status: 'running',
        startedAt: at(1500),
        queuePosition: null,
        attempt: 1,
        version: queued.version + 1,
      })
      assert.deepEqual(await tenant.find(queued.id), claim.job)
      assert.deepEqual(await tenant.use(), { running: 1, queued: 0 })
    })

    test('there is nothing to claim in an empty pool, nor in a pool whose jobs wait elsewhere', async () => {
      const tenant = await Tenant.create(store())
      assert.equal(await tenant.claim(), null)
      await tenant.submit({ pool: 'elsewhere' })
      assert.equal(await tenant.claim(), null)
    })

    test('a job whose time is over is not started any more, and does not hold up those behind it', async () => {
      const tenant = await Tenant.create(store())
      const over = await tenant.submit({ expiresAt: at(1000), priority: 9 })
      const next = await tenant.submit({ expiresAt: at(9000) })
      assert.equal((await tenant.claim({ now: at(1000) }))?.job.id, next.id)
      assert.equal(await tenant.claim({ now: at(1000) }), null)
      assert.equal((await tenant.find(over.id))?.status, 'queued')
    })

    test('higher priority goes first, and submit order decides inside a level', async () => {
      const tenant = await Tenant.create(store())
      const jobs = [
        await tenant.submit({ priority: 0 }),
        await tenant.submit({ priority: 5 }),
        await tenant.submit({ priority: -1 }),
        await tenant.submit({ priority: 5 }),
        await tenant.submit({ priority: 0 }),
      ]
      const order: string[] = []
      for (let claim = await tenant.claim(); claim !== null; claim = await tenant.claim()) order.push(claim.job.id)
      assert.deepEqual(
        order,
        [1, 3, 0, 4, 2].map((index) => jobs[index].id),
      )
    })

    test('the account with the fewest running jobs goes first, then the one that has waited longest', async () => {
      const first = await Tenant.create(store())
      const second = await first.neighbour()
      const jobs = [await first.submit(), await first.submit(), await second.submit(), await first.submit()]
      await second.submit({ priority: 100 })
      const owners: string[] = []
      for (let claim = await first.claim(); claim !== null; claim = await first.claim()) {
        owners.push(claim.job.accountId === first.accountId ? 'first' : 'second')
      }
      assert.deepEqual(owners, ['first', 'second', 'first', 'second', 'first'])
      assert.equal((await first.find(jobs[0].id))?.status, 'running')
    })

    test('equally busy accounts are served one after the other, however much one of them has waiting', async () => {
      const first = await Tenant.create(store(), { maxRunning: 1 })
      const second = await first.neighbour({ maxRunning: 1 })
      const third = await first.neighbour({ maxRunning: 1 })
      for (let count = 0; count < 5; count += 1) await first.submit()
      for (let count = 0; count < 5; count += 1) await second.submit()
      for (let count = 0; count < 2; count += 1) await third.submit()
      const names = new Map([first, second, third].map(({ accountId }, index) => [accountId, index + 1]))
      const owners: (number | undefined)[] = []
      for (let claim = await first.claim(); claim !== null; claim = await first.claim()) {
        owners.push(names.get(claim.job.accountId))
        await first.succeed({ jobId: claim.job.id, leaseId: claim.leaseId })
      }
      assert.deepEqual(owners, [1, 2, 3, 1, 2, 3, 1, 2, 1, 2, 1, 2])
    })

    test('an account at its limit does not stand in the way of another', async () => {
      const busy = await Tenant.create(store(), { maxRunning: 1 })
      const other = await busy.neighbour()
      for (let count = 0; count < 50; count += 1) await busy.submit({ priority: 1000 })
      const job = await other.submit()
      await busy.claim()
      assert.equal((await busy.claim())?.job.id, job.id)
      assert.equal(await busy.claim(), null)
    })

    test('fifty competing claimers never exceed the limits and never share a job', async () => {
      const tenants = [await Tenant.create(store(), { maxRunning: 3 })]
      tenants.push(await tenants[0].neighbour({ maxRunning: 4 }), await tenants[0].neighbour({ maxRunning: 0 }))
      for (const tenant of tenants) for (let count = 0; count < 20; count += 1) await tenant.submit()
      const claims = await Promise.all(Array.from({ length: 50 }, () => tenants[0].claim()))
      const claimed = claims.filter((claim) => claim !== null)
      assert.equal(new Set(claimed.map(({ job }) => job.id)).size, 7)
      assert.equal(claimed.length, 7)
      assert.deepEqual(
        await Promise.all(tenants.map((tenant) => tenant.use())),
        [3, 4, 0].map((running) => ({ running, queued: 20 - running })),
      )
    })

    const accounts = fc.array(waitingAccount, { minLength: 1, maxLength: 6 })

    test('claims made at the same moment take the jobs that claims one after the other would have taken', async () => {
      const asked = fc.integer({ min: 2, max: 12 }).map((count) => Array.from({ length: count }, () => ANYTHING))
      await fc.assert(
        fc.asyncProperty(accounts, asked, (...queue) => haveSameClaims(store(), ...queue)),
        { numRuns: 15 },
      )
    })

    test('so do claims for engines that serve certain lanes, each with its own', async () => {
      const asked = fc.array(askedWithLanes, { minLength: 2, maxLength: 12 })
      await fc.assert(
        fc.asyncProperty(accounts, asked, (...queue) => haveSameClaims(store(), ...queue)),
        { numRuns: 30 },
      )
    })

    test('limits and order hold while jobs are claimed and finished all at once', async () => {
      const tenant = await Tenant.create(store(), { maxRunning: 3, maxQueued: 500 })
      await Promise.all(Array.from({ length: 200 }, () => tenant.submit()))
      let highest = 0
      let running = 0
      const ended = new Set<string>()
      const first = [await tenant.claim(), await tenant.claim(), await tenant.claim()]
      assert.equal(await tenant.claim(), null, 'three run')
      for (const claim of first) {
        const jobId = claim?.job.id ?? ''
        await tenant.succeed({ jobId, leaseId: claim?.leaseId ?? '' })
        ended.add(jobId)
      }
      const work = async () => {
        while (ended.size < 200) {
          const claim = await tenant.claim()
          if (claim === null) continue
          running += 1
          highest = Math.max(highest, running)
          await tenant.find(claim.job.id)
          // Counted as ended before the store is told: it must not hand out the room earlier than that.
          running -= 1
          await tenant.succeed({ jobId: claim.job.id, leaseId: claim.leaseId })
          assert.ok(!ended.has(claim.job.id))
          ended.add(claim.job.id)
        }
      }
      await Promise.all(Array.from({ length: 50 }, work))
      assert.ok(highest <= 3, `${highest} ran at once`)
      assert.deepEqual(await tenant.use(), { running: 0, queued: 0 })
    })

    test('credentials and notes are handed over with every claim until the job ends', async () => {
      const tenant = await Tenant.create(store())
      const notes = '{"extra_pnginfo":{"seed":18446744073709551615}}'
      await tenant.submit({ needsExtraData: true, sealedExtraData: new Uint8Array([1, 2, 255]), notes })
      for (let attempt = 1; attempt <= 3; attempt++) {
        const claim = await tenant.claim()
        assert.deepEqual([...(claim?.sealedExtraData ?? [])], [1, 2, 255])
        assert.deepEqual([claim?.needsExtraData, claim?.notes], [true, notes])
        const lease = { jobId: claim?.job.id ?? '', leaseId: claim?.leaseId ?? '' }
        if (attempt < 3) await store().jobs.release([lease], START)
        else assert.equal((await tenant.succeed(lease)).outcome, 'committed')
      }
    })

    test('a claim tells the trace of the submit, where there was one', async () => {
      const tenant = await Tenant.create(store())
      const trace = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), isSampled: true, state: 'vendor=1' }
      await tenant.submit({ origin: { ...NO_ORIGIN, trace } })
      await tenant.submit({ origin: { ...NO_ORIGIN, idempotencyKey: 'key' } })
      const claim = await tenant.claim()
      assert.deepEqual(claim?.trace, trace)
      assert.deepEqual((await store().jobs.findClaim(claim?.leaseId ?? ''))?.trace, trace)
      await tenant.succeed({ jobId: claim?.job.id ?? '', leaseId: claim?.leaseId ?? '' })
      assert.equal((await tenant.claim())?.trace, null)
    })

    test('a job may have notes and no credentials, or the other way round', async () => {
      const tenant = await Tenant.create(store())
      await tenant.submit({ notes: '{}' })
      await tenant.submit({ needsExtraData: true })
      const notes = await tenant.claim()
      assert.deepEqual([notes?.needsExtraData, notes?.sealedExtraData, notes?.notes], [false, null, '{}'])
      await tenant.succeed({ jobId: notes?.job.id ?? '', leaseId: notes?.leaseId ?? '' })
      const credentials = await tenant.claim()
      assert.deepEqual([credentials?.needsExtraData, credentials?.notes], [true, null])
    })
  })
}
