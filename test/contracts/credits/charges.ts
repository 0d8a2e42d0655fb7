/**
 * What every ledger tells of a period: by day in a time zone, by model, pool, key and account. However jobs, calls and refunds follow
 * each other, days and groups each add up to exactly what the entries say.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { openZone, toDayEdges } from '../../../lib/zoned-days.ts'
import { CHARGE_GROUPS, type ChargeGroup, type ChargeSum, sumUp } from '../../../src/domain/credits/charges.ts'
import type { LedgerEntry } from '../../../src/domain/credits/ledger.ts'
import { ending, leaseOf, newCall } from '../calls/call-store.ts'
import {
  at,
  DAY_MS,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
  type WholeStoreUnderTest,
} from '../store-under-test.ts'

const PRICE = { perSecondMicros: 1000, minimumMicros: 30, holdMicros: 200 }
const ZONES = ['UTC', 'Europe/Vienna', 'America/New_York', 'Asia/Kathmandu', 'Pacific/Kiritimati', 'Pacific/Marquesas']
const NO_LIMITS = { maxCalls: null, maxCostlyCalls: null, ceilingMicros: null }
const ALL = 100

export function drawStep(afterMs: fc.Arbitrary<number>) {
  return fc.record({
    kind: fc.constantFrom('job', 'call', 'failed job', 'open job', 'refund', 'part of it back'),
    afterMs,
    keyId: fc.constantFrom('key a', 'key b', null),
    model: fc.constantFrom('fake/one', 'fake/two'),
    pick: fc.nat({ max: 9 }),
  })
}
const step = drawStep(fc.integer({ min: 0, max: 5 * DAY_MS }))
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

export function testCharges(opener: StoreOpener<WholeStoreUnderTest>, { runs = 20 } = {}): void {
  describe('what was charged', () => {
    const store = shareStore(opener)

    test('says what it was for, and a refund says so too', async () => {
      const tenant = await Tenant.metered(store())
      await play(store(), tenant, [
        { kind: 'job', afterMs: 1000, keyId: 'key a', model: 'fake/one', pick: 0 },
        { kind: 'call', afterMs: 2000, keyId: null, model: 'fake/one', pick: 0 },
        { kind: 'part of it back', afterMs: DAY_MS, keyId: null, model: 'fake/one', pick: 1 },
      ])
      const ask = (by: ChargeGroup, limit = ALL) =>
        store().ledger.charges({ accountId: tenant.accountId, edges: [START, at(DAY_MS), at(2 * DAY_MS)], by, limit })
      const job = { charged: 2000 - 7, refunded: 7, count: 1 }
      const call = { charged: 40_000, refunded: 0, count: 1 }
      assert.deepEqual(await ask('model'), {
        days: [
          { place: 0, charged: 42_000, refunded: 0, count: 2 },
          { place: 1, charged: -7, refunded: 7, count: 0 },
        ],
        groups: [
          { name: 'fake/one', work: 'call', ...call },
          { name: null, work: 'job', ...job },
        ],
        held: 0,
      })
      assert.deepEqual((await ask('pool')).groups, [
        { name: null, work: 'call', ...call },
        { name: tenant.pool, work: 'job', ...job },
      ])
      assert.deepEqual((await ask('key')).groups, [
        { name: null, work: null, ...call },
        { name: 'key a', work: null, ...job },
      ])
      assert.deepEqual((await ask('key', 1)).groups.length, 1)
      assert.deepEqual((await ask('day')).groups, [])
      assert.deepEqual((await ask('account')).groups, [
        { name: tenant.accountId, work: null, charged: 41_993, refunded: 7, count: 2 },
      ])
    })

    test(`adds up to the ledger after each of ${runs} random interleavings, in every time zone`, async () => {
      const period = fc.record({ fromMs: fc.nat({ max: 2 * DAY_MS }), forMs: fc.integer({ min: 1, max: 5 * DAY_MS }) })
      const property = fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 16 }),
        period,
        fc.constantFrom(...ZONES),
        async (steps, { fromMs, forMs }, zone) => {
          const [tenant, other] = [await Tenant.metered(store()), await Tenant.metered(store())]
          await Promise.all([play(store(), tenant, steps), play(store(), other, steps.slice(0, 3))])
          const [from, to] = [at(fromMs), at(fromMs + forMs)]
          for (const by of CHARGE_GROUPS) await checkPeriod(store(), tenant, { from, to, zone, by })
        },
      )
      await fc.assert(property, { numRuns: runs })
      const edges = [START, at(30 * DAY_MS)]
      const all = await store().ledger.charges({ accountId: null, edges, by: 'account', limit: 100_000 })
      assert.deepEqual(sumUp(all.days), sumUp(all.groups))
      for (const { name, ...sum } of all.groups) {
        const { charged, refunded, settled } = await store().ledger.usage(name ?? '', {
          from: START,
          to: at(30 * DAY_MS),
        })
        assert.deepEqual([sum.charged, sum.refunded, sum.count], [charged, refunded, settled])
      }
    })
  })
}

/** Steps that need no step before them are sent together. */
export async function play(store: WholeStoreUnderTest, tenant: Tenant, steps: readonly Step[]): Promise<void> {
  const charged: string[] = []
  await Promise.all(
    steps.map(async ({ kind, afterMs, keyId, model }) => {
      if (kind === 'open job') await tenant.submit({ price: PRICE, createdAt: START, pool: 'other', keyId })
      if (kind === 'call') charged.push(await runCall(store, tenant, { afterMs, keyId, model }))
    }),
  )
  for (const { kind, afterMs, keyId } of steps) {
    if (kind !== 'job' && kind !== 'failed job') continue
    const { job, lease } = await tenant.run({ price: PRICE, createdAt: at(afterMs), keyId }, at(afterMs))
    const error = { code: 'worker_lost', message: '', nodeId: null, classType: null, traceback: null }
    const isGood = kind === 'job'
    const finish = { status: isGood ? 'succeeded' : 'failed', from: ['running'], error: isGood ? null : error } as const
    await store.jobs.commit(lease, { finish: { ...finish, at: at(afterMs + 2000) } })
    charged.push(`job:${job.id}`)
  }
  for (const { kind, afterMs, pick } of steps) {
    const holdId = charged[pick % Math.max(1, charged.length)]
    if ((kind !== 'refund' && kind !== 'part of it back') || holdId === undefined) continue
    await store.ledger.refund({ holdId, micros: kind === 'refund' ? null : 7, at: at(afterMs), memo: '' })
  }
}

async function runCall(
  { calls, ledger }: WholeStoreUnderTest,
  { accountId }: Tenant,
  { afterMs, keyId, model }: Pick<Step, 'afterMs' | 'keyId' | 'model'>,
): Promise<string> {
  const call = newCall(accountId, { keyId, modelId: model, createdAt: at(afterMs) })
  const lease = { ...leaseOf(randomUUID()), until: at(afterMs + DAY_MS) }
  const outcome = await calls.admit(call, NO_LIMITS, { isValid: true, lease })
  assert.ok(outcome.outcome === 'admitted', outcome.outcome)
  await calls.finish(outcome.ref, ending({ at: at(afterMs + 500), chargeMicros: 40_000 }))
  const entries = await ledger.entries(accountId, { limit: 1000, before: null, kinds: ['settle'] })
  return entries.find(({ reference }) => reference.includes(call.id))?.reference ?? ''
}

interface Period {
  readonly from: Date
  readonly to: Date
  readonly zone: string
  readonly by: ChargeGroup
}

async function checkPeriod(store: WholeStoreUnderTest, { accountId }: Tenant, period: Period): Promise<void> {
  const { from, to, zone, by } = period
  const dateOf = openZone(zone)
  assert.ok(dateOf !== null)
  const edges = toDayEdges(from, to, dateOf)
  const { days, groups, held } = await store.ledger.charges({ accountId, edges, by, limit: ALL })
  const entries = await store.ledger.entries(accountId, { limit: 1000, before: null })
  const inside = entries.filter((entry) => entry.at >= from && entry.at < to)
  const expected = sumOf(inside)
  assert.deepEqual(sumUp(days), expected)
  if (by !== 'day') assert.deepEqual(sumUp(groups), expected)
  const byDate = Map.groupBy(
    inside.filter(({ kind }) => kind === 'settle' || kind === 'refund'),
    (entry) => dateOf(entry.at),
  )
  assert.deepEqual(
    new Map(days.map(({ place, ...sum }) => [dateOf(edges[place] ?? from), sum])),
    new Map([...byDate].sort().map(([date, ofDate]) => [date, sumOf(ofDate)])),
  )
  assert.equal(held, (await store.ledger.balance(accountId))?.held)
}

function sumOf(entries: readonly LedgerEntry[]): ChargeSum {
  const refunds = entries.filter(({ kind }) => kind === 'refund')
  return {
    charged: entries.reduce((sum, { charged }) => sum + charged, 0),
    refunded: 0 - refunds.reduce((sum, { charged }) => sum + charged, 0),
    count: entries.filter(({ kind }) => kind === 'settle').length,
  }
}
