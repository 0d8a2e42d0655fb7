/** Budgets over three processes on one Postgres: parallel calls and jobs at the edge of one never pass it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { spentOf } from '../../../src/domain/credits/budgets/budget.ts'
import { ending, leaseOf, newCall } from '../../contracts/calls/call-store.ts'
import { newBudget } from '../../contracts/credits/budgets.ts'
import { Tenant } from '../../contracts/store-under-test.ts'
import { askAll, countBy, shareCluster } from '../../support/cluster/share-cluster.ts'

const NO_LIMITS = { maxCalls: null, maxCostlyCalls: null, ceilingMicros: null }
const PRICE = 30_000

describe('budgets of three processes on one database', () => {
  const cluster = shareCluster()

  test('let in as many of 50 parallel calls and jobs as there is room for, and again as many as came back', async () => {
    const payer = await Tenant.metered(cluster().stores[0], { micros: 90_000_000, maxQueued: 1000 })
    const { accountId } = payer
    // Room for seven, and nearly for an eighth.
    const budget = newBudget(accountId, { limitMicros: 8 * PRICE - 1, shares: [50, 100] })
    assert.equal((await cluster().stores[1].budgets.create(budget, 9)).outcome, 'created')
    const admitAll = () =>
      askAll(cluster(), 50, async ({ calls, jobs }, index) => {
        if (index % 5 === 4) {
          const price = { perSecondMicros: 0, minimumMicros: 0, holdMicros: PRICE }
          return { job: await jobs.submit(payer.newJob({ price }), null) }
        }
        const call = newCall(accountId, { holdMicros: PRICE, spendMicros: PRICE })
        return { call: await calls.admit(call, NO_LIMITS, { isValid: true, lease: leaseOf(`node ${index % 3}`) }) }
      })
    const outcomeOf = ({ call, job }: Awaited<ReturnType<typeof admitAll>>[number]) =>
      call?.outcome === 'admitted' || job?.outcome === 'queued' ? 'in' : (call?.outcome ?? job?.outcome ?? '')
    const spent = async () => {
      const found = await cluster().stores[2].budgets.find(accountId, budget.id)
      return found === null ? null : spentOf(found.counts)
    }
    const first = await admitAll()
    assert.equal(countBy(first, outcomeOf)['in'], 7)
    assert.equal(await spent(), 7 * PRICE)
    const calls = first.flatMap(({ call }) => (call?.outcome === 'admitted' ? [call.ref] : []))
    await Promise.all(
      calls.map((ref, index) => cluster().stores[index % 3].calls.finish(ref, ending({ chargeMicros: PRICE / 10 }))),
    )
    assert.equal(await spent(), (7 - calls.length) * PRICE + (calls.length * PRICE) / 10)
    const left = 8 * PRICE - 1 - ((await spent()) ?? 0)
    assert.equal(countBy(await admitAll(), outcomeOf)['in'], Math.floor(left / PRICE))
    assert.ok(((await spent()) ?? 0) <= budget.limitMicros)
    const { faults } = await cluster().stores[0].ledger.check()
    assert.deepEqual(
      faults.filter((fault) => fault.accountId === accountId),
      [],
    )
  })
})
