/** How every ledger behaves, and what jobs do to it: held when accepted, charged or given back when they end. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { MAX_MICROS } from '../../../lib/text/usd.ts'
import type { PoolPrice } from '../../../src/domain/credits/prices.ts'
import type { JobError } from '../../../src/domain/jobs/job.ts'
import { at, LOST, START, type StoreOpener, type StoreUnderTest, shareStore, Tenant } from '../store-under-test.ts'

const PRICE: PoolPrice = { perSecondMicros: 100, minimumMicros: 50, holdMicros: 1000 }

export function testLedgerStore(opener: StoreOpener): void {
  describe('the ledger', () => {
    const store = shareStore(opener)
    testGrants(store)
    testJobs(store)
    testSettling(store)
    testRefunds(store)
  })
}

async function balanceOf({ store, accountId }: Tenant): Promise<[available: number, held: number]> {
  const balance = await store.ledger.balance(accountId)
  assert.ok(balance !== null)
  return [balance.available, balance.held]
}

async function kindsOf({ store, accountId }: Tenant): Promise<string[]> {
  const entries = await store.ledger.entries(accountId, { limit: 100, before: null })
  return entries.map(({ kind }) => kind).reverse()
}

function failed(code: string): JobError {
  return { ...LOST, code }
}

function testGrants(store: () => StoreUnderTest): void {
  test('a grant counts once, whatever is repeated', async () => {
    const tenant = await Tenant.metered(store(), { micros: 0 })
    const grant = { id: randomUUID(), accountId: tenant.accountId, micros: 700, at: START, memo: 'hello' }
    const balance = { available: 700, held: 0, floor: 0 }
    assert.deepEqual(await store().ledger.grant(grant), { outcome: 'granted', balance })
    assert.deepEqual(await store().ledger.grant(grant), { outcome: 'repeated', balance })
    const [entry] = await store().ledger.entries(tenant.accountId, { limit: 5, before: null })
    const { seq, accountId, ...rest } = entry
    assert.ok(seq > 0 && accountId === tenant.accountId)
    const moves = { granted: -700, available: 700, held: 0, charged: 0 }
    assert.deepEqual(rest, { kind: 'grant', reference: grant.id, ...moves, at: START, memo: 'hello' })
  })

  test('credit is taken back down to the floor, and given up to the bound', async () => {
    const tenant = await Tenant.metered(store(), { micros: 100, floor: -20 })
    const change = { accountId: tenant.accountId, at: START, memo: '' }
    const take = (micros: number) => store().ledger.grant({ ...change, id: randomUUID(), micros })
    assert.equal((await take(-121)).outcome, 'out_of_bounds')
    assert.equal((await take(-120)).outcome, 'granted')
    assert.deepEqual(await balanceOf(tenant), [-20, 0])
    assert.equal((await take(MAX_MICROS)).outcome, 'granted')
    assert.equal((await take(21)).outcome, 'out_of_bounds')
    assert.deepEqual(await kindsOf(tenant), ['grant', 'revoke', 'grant'])
  })

  test('an account that is not metered, or not there, has no balance and takes no grant', async () => {
    const tenant = await Tenant.create(store())
    const grant = { id: randomUUID(), accountId: tenant.accountId, micros: 1, at: START, memo: '' }
    assert.deepEqual(await store().ledger.grant(grant), { outcome: 'unmetered' })
    const { lease } = await tenant.run({ price: PRICE })
    await tenant.succeed(lease, at(1000))
    assert.deepEqual(await kindsOf(tenant), [])
  })

  test('entries come newest first, by page and by kind', async () => {
    const tenant = await Tenant.metered(store())
    for (let count = 0; count < 3; count++) await tenant.submit({ price: PRICE })
    const all = await store().ledger.entries(tenant.accountId, { limit: 10, before: null })
    assert.deepEqual(
      all.map(({ kind }) => kind),
      ['hold', 'hold', 'hold', 'grant'],
    )
    const rest = await store().ledger.entries(tenant.accountId, { limit: 2, before: all[1].seq })
    assert.deepEqual(rest, all.slice(2))
    const grants = await store().ledger.entries(tenant.accountId, { limit: 9, before: null, kinds: ['grant'] })
    assert.deepEqual(grants, all.slice(3))
  })
}

function testJobs(store: () => StoreUnderTest): void {
  test('a job that is accepted holds its price; one that cannot is refused and leaves nothing behind', async () => {
    const tenant = await Tenant.metered(store(), { micros: 1999 })
    const job = await tenant.submit({ price: PRICE })
    assert.deepEqual(await balanceOf(tenant), [999, 1000])
    const holds = await store().ledger.holds(tenant.accountId, 10)
    const { accountId } = tenant
    assert.deepEqual(holds, [{ id: `job:${job.id}`, accountId, micros: 1000, heldAt: START }])
    const refused = tenant.newJob({ price: PRICE })
    const claim = { key: 'once', claimedAt: START, expiresAt: at(1000) }
    assert.deepEqual(await store().jobs.submit(refused, claim), { outcome: 'insufficient_credits' })
    assert.equal(await tenant.find(refused.id), null)
    assert.equal(await store().keys.findKey(accountId, 'once', START), null)
    assert.deepEqual(await balanceOf(tenant), [999, 1000])
    assert.deepEqual(await tenant.use(), { running: 0, queued: 1 })
  })

  test('a floor below zero lets an account owe that much', async () => {
    const tenant = await Tenant.metered(store(), { micros: 0, floor: -1000 })
    await tenant.submit({ price: PRICE })
    assert.deepEqual(await balanceOf(tenant), [-1000, 1000])
    assert.deepEqual(await store().jobs.submit(tenant.newJob({ price: PRICE }), null), {
      outcome: 'insufficient_credits',
    })
  })

  test('a full queue holds nothing; lacking credit is told before a full queue', async () => {
    const tenant = await Tenant.metered(store(), { maxQueued: 1, micros: 2500 })
    await tenant.submit({ price: PRICE })
    assert.deepEqual(await store().jobs.submit(tenant.newJob({ price: PRICE }), null), { outcome: 'queue_full' })
    assert.deepEqual(await kindsOf(tenant), ['grant', 'hold'])
    const dear = { ...PRICE, holdMicros: 5000 }
    assert.deepEqual(await store().jobs.submit(tenant.newJob({ price: dear }), null), {
      outcome: 'insufficient_credits',
    })
  })
}

function testSettling(store: () => StoreUnderTest): void {
  const finish = (
    tenant: Tenant,
    lease: { jobId: string; leaseId: string },
    status: 'succeeded' | 'failed' | 'canceled',
    code: string | null,
  ) =>
    tenant.store.jobs.commit(lease, {
      finish: { status, from: ['running', 'canceling'], at: at(20_000), error: code === null ? null : failed(code) },
    })

  const cases = [
    ['succeeded', null, 2000],
    ['failed', 'node_execution_error', 2000],
    ['failed', 'timeout', 2000],
    ['failed', 'worker_lost', 0],
    ['failed', 'engine_error', 0],
    ['failed', 'internal_error', 0],
    ['failed', 'storage_full', 0],
    ['failed', 'a_code_of_tomorrow', 0],
    ['canceled', null, 2000],
  ] as const
  for (const [status, code, charged] of cases) {
    test(`twenty seconds that end as ${status} ${code ?? ''} cost ${charged}`, async () => {
      const tenant = await Tenant.metered(store(), { micros: 5000 })
      const { lease } = await tenant.run({ price: PRICE })
      if (status === 'canceled') await tenant.store.jobs.cancel(tenant.accountId, lease.jobId, at(10_000))
      await finish(tenant, lease, status, code)
      assert.deepEqual(await balanceOf(tenant), [5000 - charged, 0])
      assert.deepEqual(await kindsOf(tenant), ['grant', 'hold', charged === 0 ? 'release' : 'settle'])
      // The same end again, because its answer was lost: it counts once, whatever a store calls that.
      const again = await finish(tenant, lease, status, code)
      assert.ok(again.outcome === 'lost' || (again.outcome === 'committed' && again.status === status))
      assert.deepEqual(await balanceOf(tenant), [5000 - charged, 0])
    })
  }

  test('a short success costs the minimum; a short failure its time', async () => {
    const tenant = await Tenant.metered(store(), { micros: 5000 })
    const first = await tenant.run({ price: PRICE })
    await tenant.succeed(first.lease, at(1))
    assert.deepEqual(await balanceOf(tenant), [4950, 0])
    const second = await tenant.run({ price: PRICE })
    await store().jobs.commit(second.lease, {
      finish: { status: 'failed', from: ['running'], at: at(1), error: failed('node_execution_error') },
    })
    assert.deepEqual(await balanceOf(tenant), [4949, 0], 'begun micro-dollars are rounded up')
  })

  test('what an account cannot pay is not charged: never below the floor', async () => {
    const tenant = await Tenant.metered(store(), { micros: 1100, floor: -10 })
    const { lease } = await tenant.run({ price: PRICE })
    await finish(tenant, lease, 'succeeded', null)
    assert.deepEqual(await balanceOf(tenant), [-10, 0])
  })

  test('a job that never ran costs nothing, and one that runs again is charged for its last attempt', async () => {
    const tenant = await Tenant.metered(store(), { micros: 5000 })
    const waiting = await tenant.submit({ price: PRICE })
    await store().jobs.cancel(tenant.accountId, waiting.id, at(9000))
    assert.deepEqual(await balanceOf(tenant), [5000, 0])
    await tenant.run({ price: PRICE })
    await store().jobs.reap({ now: at(60_000), maxAttempts: 3, error: LOST })
    assert.deepEqual(await balanceOf(tenant), [4000, 1000], 'the hold stays while the job lives')
    const again = await tenant.claim({ now: at(61_000) })
    assert.ok(again !== null)
    await tenant.succeed({ jobId: again.job.id, leaseId: again.leaseId }, at(62_000))
    assert.deepEqual(await balanceOf(tenant), [4900, 0])
  })

  test('a worker that is lost, a cancel that it took along, and retention cost nothing', async () => {
    const tenant = await Tenant.metered(store(), { micros: 5000 })
    await tenant.run({ price: PRICE })
    const { job } = await tenant.run({ price: PRICE })
    await store().jobs.cancel(tenant.accountId, job.id, at(10))
    await store().jobs.reap({ now: at(60_000), maxAttempts: 1, error: LOST })
    assert.deepEqual(await balanceOf(tenant), [5000, 0])
    await tenant.submit({ price: PRICE, expiresAt: at(90_000) })
    await store().jobs.expire(at(100_000), 1000)
    assert.deepEqual(await balanceOf(tenant), [5000, 0])
    assert.deepEqual(await store().ledger.holds(tenant.accountId, 10), [])
    assert.deepEqual((await store().ledger.check()).faults, [])
  })
}

function testRefunds(store: () => StoreUnderTest): void {
  test('what was charged can be given back once, and never more', async () => {
    const tenant = await Tenant.metered(store(), { micros: 5000 })
    const { job, lease } = await tenant.run({ price: PRICE })
    const refund = { holdId: `job:${job.id}`, micros: null, at: at(1), memo: 'sorry' }
    assert.deepEqual(await store().ledger.refund(refund), { outcome: 'not_charged' })
    await tenant.succeed(lease, at(20_000))
    const tooMuch = await store().ledger.refund({ ...refund, micros: 2001 })
    assert.deepEqual(tooMuch, { outcome: 'more_than_charged', charged: 2000 })
    const { accountId } = tenant
    assert.deepEqual(await store().ledger.refund(refund), { outcome: 'refunded', accountId, micros: 2000 })
    assert.deepEqual(await store().ledger.refund(refund), { outcome: 'repeated', accountId, micros: 2000 })
    assert.deepEqual(await balanceOf(tenant), [5000, 0])
    const usage = await store().ledger.usage(accountId, { from: START, to: at(30_000) })
    assert.deepEqual(usage, { charged: 0, refunded: 2000, granted: 5000, settled: 1, released: 0 })
    const later = await store().ledger.usage(accountId, { from: at(1), to: at(2) })
    assert.deepEqual(later, { charged: -2000, refunded: 2000, granted: 0, settled: 0, released: 0 })
  })
}
