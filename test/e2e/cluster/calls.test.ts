/** Model calls of three processes: numbers, spend and keys are exact over all of them, and a call has one owner at a time. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CallLimits, HeldCall } from '../../../src/domain/models/calls/call-store.ts'
import { ending, leaseOf, newCall, PRICE } from '../../contracts/calls/call-store.ts'
import { at, Tenant } from '../../contracts/store-under-test.ts'
import { askAll, countBy, shareCluster } from '../../support/cluster/share-cluster.ts'

const NO_LIMITS: CallLimits = { maxCalls: null, maxCostlyCalls: null, ceilingMicros: null }

describe('model calls of three processes on one database', () => {
  const cluster = shareCluster()
  const newPayer = () => Tenant.metered(cluster().stores[0], { micros: 100 * PRICE })

  function admit({ accountId }: Tenant, limits: Partial<CallLimits>, key?: string) {
    return askAll(cluster(), 30, ({ calls }, index) => {
      const call = newCall(accountId, key === undefined ? {} : { key })
      return calls.admit(call, { ...NO_LIMITS, ...limits }, { isValid: true, lease: leaseOf(`node ${index % 3}`) })
    })
  }

  test('are let in up to the number and the ceiling of spend of their account, and one for a key', async () => {
    const [byNumber, bySpend, byKey] = await Promise.all([newPayer(), newPayer(), newPayer()])
    const [numbers, spends, keys] = await Promise.all([
      admit(byNumber, { maxCalls: 4 }),
      admit(bySpend, { ceilingMicros: 3 * PRICE + 1 }),
      admit(byKey, {}, 'the same'),
    ])
    const outcomeOf = ({ outcome }: { readonly outcome: string }) => outcome
    assert.deepEqual(countBy(numbers, outcomeOf), { admitted: 4, calls_exhausted: 26 })
    assert.deepEqual(countBy(spends, outcomeOf), { admitted: 3, spend_exhausted: 27 })
    assert.deepEqual(countBy(keys, outcomeOf), { admitted: 1, running: 29 })
    const standing = await cluster().stores[2].calls.standing(bySpend.accountId)
    assert.deepEqual(standing, { runningCalls: 3, committedMicros: 3 * PRICE })
  })

  test('are taken over once when their process is gone, ended by the new owner only, and charged once', async () => {
    const payer = await newPayer()
    const calls = (await admit(payer, { maxCalls: 12 })).flatMap((outcome) =>
      outcome.outcome === 'admitted' ? [outcome.ref] : [],
    )
    assert.equal(calls.length, 12)
    const mine = (ref: HeldCall) => calls.some(({ id }) => id === ref.id)
    const taken = await askAll(cluster(), 6, (store, index) =>
      store.calls.takeLapsed({
        ...{ lapsedBefore: at(60_000), ownLapsedBefore: at(60_000), lease: leaseOf(`heir ${index}`, 3_600_000) },
        ...{ except: [], limit: 5 },
      }),
    )
    const heirs = taken.flat().map(({ ref }) => ref)
    assert.equal(new Set(heirs.map(({ seq }) => seq)).size, heirs.length, 'each has one new owner')
    const owned = heirs.filter(mine)
    assert.equal(owned.length, 12)
    // The former owners are not as dead as it seemed.
    const ends = await Promise.all(
      [...calls, ...owned, ...owned].map(async (ref, index) => ({
        isHeir: index >= calls.length,
        ended: await cluster().stores[index % 3].calls.finish(ref, ending()),
      })),
    )
    assert.ok(ends.every(({ isHeir, ended }) => isHeir || ended === null))
    assert.equal(ends.filter(({ ended }) => ended !== null).length, 12)
    const { ledger } = cluster().stores[1]
    assert.deepEqual(await ledger.balance(payer.accountId), { available: 88 * PRICE, held: 0, floor: 0 })
    const settled = await ledger.entries(payer.accountId, { limit: 100, before: null, kinds: ['settle'] })
    assert.equal(settled.length, 12)
    assert.deepEqual((await ledger.check()).faults, [])
  })
})
