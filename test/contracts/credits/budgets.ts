/** What every store counts for budgets: holds, their ends and refunds, exactly, and one message for each share of a period. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { type Budget, type BudgetCounts, NO_COUNTS, spentOf } from '../../../src/domain/credits/budgets/budget.ts'
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

const NO_LIMITS = { maxCalls: null, maxCostlyCalls: null, ceilingMicros: null }
const HOUR_MS = 3_600_000

export function newBudget(accountId: string, fields: Partial<Budget> = {}): Budget {
  return {
    ...{ id: randomUUID(), accountId, name: 'team', owner: 'account', subject: 'account', value: null },
    ...{ limitMicros: 100_000, unit: 'day', style: 'calendar', timeZone: 'UTC', shares: [], isHard: true },
    ...{ raiseMicros: null, raiseUntil: null, counts: NO_COUNTS, createdAt: START, changedAt: START },
    ...fields,
  }
}

export function testBudgetStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('budgets', () => {
    const store = shareStore(opener)
    const newPayer = () => Tenant.metered(store(), { micros: 9_000_000 })
    async function create(budget: Budget): Promise<Budget> {
      const made = await store().budgets.create(budget, 20)
      assert.equal(made.outcome, 'created')
      return made.outcome === 'created' ? made.budget : budget
    }
    const spent = async ({ accountId, id }: Budget) =>
      spentOf((await store().budgets.find(accountId, id))?.counts ?? ({ parts: [] } as unknown as BudgetCounts))
    const admit = (accountId: string, fields: Parameters<typeof newCall>[1] = {}) => {
      const call = newCall(accountId, { holdMicros: 40_000, spendMicros: 40_000, ...fields })
      return store().calls.admit(call, NO_LIMITS, { isValid: true, lease: leaseOf(randomUUID()) })
    }

    test('what is held counts, what is released comes back, and a call beyond it names the budget and its reset', async () => {
      const { accountId } = await newPayer()
      const budget = await create(newBudget(accountId))
      const [first, second] = [await admit(accountId), await admit(accountId)]
      assert.deepEqual([first.outcome, second.outcome, await spent(budget)], ['admitted', 'admitted', 80_000])
      const refused = await admit(accountId)
      assert.equal(refused.outcome, 'no_credits')
      assert.deepEqual(refused.outcome === 'no_credits' && refused.budget, {
        ...{ name: 'team', subject: 'account', value: null, unit: 'day', style: 'calendar', timeZone: 'UTC' },
        ...{ limitMicros: 100_000, spentMicros: 80_000, neededMicros: 40_000, resetsAt: at(DAY_MS) },
      })
      if (first.outcome !== 'admitted' || second.outcome !== 'admitted') return
      await store().calls.finish(first.ref, ending({ chargeMicros: 10_000 }))
      assert.equal(await spent(budget), 50_000)
      await store().calls.finish(second.ref, ending({ fate: 'forget', end: null, chargeMicros: null }))
      assert.equal(await spent(budget), 10_000)
      await store().ledger.refund({ holdId: `call:${first.ref.id}`, micros: 4000, at: at(5000), memo: '' })
      assert.equal(await spent(budget), 6000)
    })

    test('the next period begins anew, and ends of the one before leave it alone', async () => {
      const { accountId } = await newPayer()
      const budget = await create(newBudget(accountId, { unit: 'hour', limitMicros: 50_000 }))
      const old = await admit(accountId)
      assert.equal((await admit(accountId)).outcome, 'no_credits')
      assert.equal((await admit(accountId, { createdAt: at(HOUR_MS) })).outcome, 'admitted')
      assert.equal(await spent(budget), 40_000)
      if (old.outcome === 'admitted') await store().calls.finish(old.ref, ending({ chargeMicros: 0 }))
      assert.equal(await spent(budget), 40_000)
    })

    test('a budget counts only what it is for, and what was spent before it was made', async () => {
      const { accountId } = await newPayer()
      const about = { modelId: 'fake/paid', keyId: 'key-1', tag: 'blog' }
      await admit(accountId, about)
      const budgets = await Promise.all(
        (
          [
            ['account', null, 80_000],
            ['key', 'key-1', 40_000],
            ['model', 'fake/*', 80_000],
            ['model', 'other/*', 0],
            ['tag', 'blog', 40_000],
            ['endpoint', 'poster', 0],
          ] as const
        ).map(async ([subject, value, expected]) => ({
          made: await create(newBudget(accountId, { subject, value, limitMicros: 500_000 })),
          expected,
        })),
      )
      await admit(accountId)
      for (const { made, expected } of budgets)
        assert.equal(await spent(made), expected, `${made.subject} ${made.value}`)
    })

    test('jobs count by what is held for them, with the tag of their metadata', async () => {
      const payer = await newPayer()
      const budget = await create(newBudget(payer.accountId, { subject: 'tag', value: 'blog', limitMicros: 70_000 }))
      const price = { perSecondMicros: 1, minimumMicros: 0, holdMicros: 60_000 }
      await payer.submit({ price, metadata: { tag: 'blog' } })
      assert.equal(await spent(budget), 60_000)
      const refused = await store().jobs.submit(payer.newJob({ price, metadata: { tag: 'blog' } }), null)
      assert.equal(refused.outcome, 'insufficient_credits')
      assert.equal(refused.outcome === 'insufficient_credits' && refused.budget?.name, 'team')
      await payer.submit({ price, metadata: { tag: 'shop' } })
    })

    test('a raise holds until it is over, and one that is soft only tells', async () => {
      const { accountId } = await newPayer()
      const made = await create(newBudget(accountId, { limitMicros: 40_000 }))
      await admit(accountId)
      assert.equal((await admit(accountId)).outcome, 'no_credits')
      const { budgets } = store()
      await budgets.change(accountId, made.id, { raiseMicros: 40_000, raiseUntil: at(1000) }, START)
      assert.equal((await admit(accountId)).outcome, 'admitted')
      await budgets.change(accountId, made.id, { raiseMicros: 80_000 }, START)
      assert.equal((await admit(accountId, { createdAt: at(1000) })).outcome, 'no_credits')
      await budgets.change(accountId, made.id, { isHard: false }, START)
      assert.equal((await admit(accountId, { createdAt: at(1000) })).outcome, 'admitted')
      assert.equal(await spent(made), 120_000)
    })

    test('each share of a period is told once, also when it is passed again', async () => {
      const { accountId } = await newPayer()
      const endpoint = { id: `whe_${randomUUID().replaceAll('-', '')}`, accountId, kind: 'account' } as const
      await store().webhooks.create(
        {
          ...{ ...endpoint, url: 'http://127.0.0.1:1/', description: '', events: ['budget.threshold'], secret: null },
          ...{ previousSecret: null, previousUntil: null, state: 'enabled', reason: null, disabledAt: null },
          ...{ failingSince: null, creditsLowMicros: null, createdAt: START, changedAt: START },
        },
        { max: 9 },
      )
      const made = await create(newBudget(accountId, { limitMicros: 100_000, shares: [50, 80, 100], unit: 'hour' }))
      const told = async () =>
        (await store().webhooks.deliveries(accountId, { endpointId: endpoint.id, limit: 50 }))
          .filter(({ type }) => type === 'budget.threshold')
          .map(({ facts }) => JSON.parse(facts).threshold_percent)
          .sort()
      const first = await admit(accountId, { holdMicros: 60_000 })
      assert.deepEqual(await told(), [50])
      if (first.outcome === 'admitted') await store().calls.finish(first.ref, ending({ chargeMicros: 0 }))
      await admit(accountId, { holdMicros: 60_000 })
      assert.deepEqual(await told(), [50])
      await admit(accountId, { holdMicros: 40_000 })
      assert.deepEqual(await told(), [100, 50, 80].sort())
      await admit(accountId, { holdMicros: 50_000, createdAt: at(HOUR_MS) })
      assert.deepEqual(await told(), [100, 50, 50, 80].sort())
      assert.equal(await store().budgets.remove(accountId, made.id), true)
    })

    test('other accounts have none of it, and one that is not metered can have none', async () => {
      const [mine, other, free] = [await newPayer(), await newPayer(), await Tenant.create(store())]
      const made = await create(newBudget(mine.accountId))
      const { budgets } = store()
      assert.equal(await budgets.find(other.accountId, made.id), null)
      assert.equal(await budgets.change(other.accountId, made.id, { name: 'x' }, START), null)
      assert.equal(await budgets.remove(other.accountId, made.id), false)
      assert.deepEqual(await budgets.list(other.accountId), [])
      assert.deepEqual(await budgets.create(newBudget(free.accountId), 9), { outcome: 'unmetered' })
      assert.deepEqual(await budgets.create(newBudget(mine.accountId), 1), { outcome: 'too_many' })
    })
  })
}
