/**
 * What every store of model calls must do for nodes that share it. The nodes of these tests are owners of calls, each with a view
 * of the store of its own where the store can be opened more than once.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type {
  CallFinish,
  CallLimits,
  CallStore,
  HeldCall,
  NewCall,
  UnfinishedCall,
} from '../../../src/domain/models/calls/call-store.ts'
import type { RequestStore } from '../../../src/domain/models/queue/request-store.ts'
import { at, DAY_MS } from '../store-under-test.ts'
import { type CallStoreUnderTest, ending, leaseOf, newCall, PRICE } from './call-store.ts'

export interface SharedCallStore extends CallStoreUnderTest {
  /** The same store, as another node has it open. */
  readonly other: { readonly calls: CallStore; readonly requests: RequestStore }
}

const NO_LIMITS: CallLimits = { maxCalls: null, maxCostlyCalls: null, ceilingMicros: null }
const BODY = { kind: 'inline' as const, bytes: new Uint8Array([123, 125]) }
const PROGRESS = { handle: { task: 1 }, quote: [1], isOwnKey: false }
const LAPSED = at(31_000)
/** Later than any lease of these tests. */
const MUCH_LATER = 10 * DAY_MS

export function testCallLeases(store: () => SharedCallStore): void {
  /** Names of nodes that no other test has. */
  const nodes = () => [`a-${randomUUID()}`, `b-${randomUUID()}`, `c-${randomUUID()}`] as const

  async function admitted(owner: string, call: NewCall): Promise<HeldCall> {
    const outcome = await store().calls.admit(call, NO_LIMITS, { isValid: true, lease: leaseOf(owner) })
    assert.equal(outcome.outcome, 'admitted')
    return (outcome as Extract<typeof outcome, { outcome: 'admitted' }>).ref
  }

  async function queued(owner: string, accountId: string, fields: Partial<NewCall> = {}): Promise<HeldCall> {
    const request = { ...newCall(accountId, fields), body: BODY, bodyBytes: 2 }
    await store().requests.enqueue(request, { maxWaiting: 10, isValid: true })
    return taken(owner, accountId)
  }

  async function taken(owner: string, accountId: string): Promise<HeldCall> {
    const found = await store().requests.take(accountId, NO_LIMITS, { now: at(1), lease: leaseOf(owner) })
    assert.ok(found !== null)
    return found.ref
  }

  interface TakeOver {
    readonly lapsedBefore?: Date
    readonly ownLapsedBefore?: Date
    readonly except?: readonly HeldCall[]
    readonly calls?: CallStore
    readonly limit?: number
  }

  function takeAll(owner: string, options: TakeOver = {}): Promise<readonly UnfinishedCall[]> {
    const { lapsedBefore = LAPSED, ownLapsedBefore = at(0), except = [], limit = 10_000 } = options
    const lease = leaseOf(owner, MUCH_LATER)
    return (options.calls ?? store().other.calls).takeLapsed({ lease, lapsedBefore, ownLapsedBefore, except, limit })
  }

  /** The call as the node found it; null when there was no reason to take it. */
  async function takeOver(owner: string, { id }: HeldCall, options: TakeOver = {}): Promise<UnfinishedCall | null> {
    return (await takeAll(owner, options)).find(({ ref }) => ref.id === id) ?? null
  }

  async function sameAfter(accountId: string, writes: () => Promise<void>): Promise<void> {
    const look = async () => [await store().calls.standing(accountId), await store().ledger.balance(accountId)]
    const before = await look()
    await writes()
    assert.deepEqual(await look(), before)
  }

  const interrupted: Partial<CallFinish> = { fate: 'interrupt', end: null, chargeMicros: null }

  describe('calls of several nodes', () => {
    test('a call stays with its node while the lease lasts, and goes to whoever looks first after it', async () => {
      const [a, b, c] = nodes()
      const ref = await admitted(a, newCall(await store().addAccount(null)))
      assert.equal(await takeOver(b, ref, { lapsedBefore: at(30_000) }), null)
      const found = await takeOver(b, ref)
      assert.partialDeepStrictEqual(found, { ref: { ...ref, owner: b, fence: ref.fence + 1 }, progress: null })
      assert.equal(await takeOver(c, ref), null)
    })

    test('a renewed lease lasts longer, and a node is told which of its calls it has lost', async () => {
      const [a, b] = nodes()
      const accountId = await store().addAccount(null)
      const [kept, lost] = [await admitted(a, newCall(accountId)), await admitted(a, newCall(accountId))]
      assert.deepEqual(await store().calls.renew([kept], at(60_000)), [{ id: kept.id, isStopAsked: false }])
      assert.equal(await takeOver(b, kept), null)
      assert.deepEqual(await store().calls.renew([kept, lost], at(90_000)), [{ id: kept.id, isStopAsked: false }])
      assert.deepEqual(await store().calls.renew([], at(90_000)), [])
    })

    test('who has lost a call changes nothing: no answer, no charge, no handle, no place in the queue', async () => {
      const [a, b] = nodes()
      const accountId = await store().addAccount(1_000_000)
      const direct = await admitted(a, newCall(accountId))
      const waiting = await queued(a, accountId)
      const all = await takeAll(b)
      assert.ok([direct, waiting].every(({ id }) => all.some(({ ref }) => ref.id === id)))
      await sameAfter(accountId, async () => {
        for (const call of [direct, waiting]) {
          assert.equal(await store().calls.finish(call, ending()), null)
          assert.equal(await store().calls.keepProgress(call, PROGRESS), false)
          await store().calls.release([call])
          assert.equal(await store().calls.isRunning(call), true)
        }
        assert.equal(await store().requests.putBack(waiting, { isLoss: true }), false)
      })
      const now = all.find(({ ref }) => ref.id === direct.id)?.ref as HeldCall
      assert.deepEqual(await store().other.calls.finish(now, ending()), { chargedMicros: PRICE })
      assert.equal(await store().calls.finish(direct, ending()), null)
      assert.equal((await store().ledger.balance(accountId))?.available, 1_000_000 - 2 * PRICE)
    })

    test('of two nodes that end a call at once one does, and it is charged once', async () => {
      const [a, b] = nodes()
      const accountId = await store().addAccount(1_000_000)
      const first = await admitted(a, newCall(accountId))
      const second = (await takeOver(b, first))?.ref as HeldCall
      const ends = [
        ...Array.from({ length: 4 }, () => store().calls.finish(first, ending())),
        ...Array.from({ length: 4 }, () => store().other.calls.finish(second, ending())),
      ]
      const told = (await Promise.all(ends)).filter((end) => end !== null)
      assert.deepEqual(told, [{ chargedMicros: PRICE }])
      assert.equal((await store().ledger.balance(accountId))?.available, 1_000_000 - PRICE)
      assert.deepEqual(await store().calls.standing(accountId), { runningCalls: 0, committedMicros: 0 })
    })

    test('of many nodes that look at once each takes other calls, and none takes more than it may', async () => {
      const [a] = nodes()
      const accountId = await store().addAccount(null)
      const calls = await Promise.all(Array.from({ length: 20 }, () => admitted(a, newCall(accountId))))
      const looks = Array.from({ length: 8 }, (_, index) =>
        takeAll(`looker-${index}-${randomUUID()}`, {
          limit: 3,
          calls: index % 2 === 0 ? store().calls : store().other.calls,
        }),
      )
      const found = await Promise.all(looks)
      assert.ok(found.every((some) => some.length <= 3))
      const ids = found.flat().map(({ ref }) => ref.id)
      assert.equal(new Set(ids).size, ids.length)
      const rest = (await takeAll(`last-${randomUUID()}`)).map(({ ref }) => ref.id)
      assert.deepEqual(
        [...ids, ...rest].filter((id) => calls.some((call) => call.id === id)).sort(),
        calls.map(({ id }) => id).sort(),
      )
    })

    test('a node that lost a call and takes it again is another holder than before', async () => {
      const [a, b] = nodes()
      const accountId = await store().addAccount(null)
      const first = await queued(a, accountId)
      const lapsed = (await takeOver(b, first))?.ref as HeldCall
      assert.equal(await store().other.requests.putBack(lapsed, { isLoss: true }), true)
      const second = await taken(a, accountId)
      assert.equal(second.id, first.id)
      assert.equal(await store().calls.finish(first, ending()), null)
      assert.equal(await store().requests.putBack(first, { isLoss: false }), false)
      assert.deepEqual(await store().calls.finish(second, ending()), { chargedMicros: null })
    })

    test('what a node lets go is taken at once, with its handle, by whoever looks', async () => {
      const [a, b] = nodes()
      const ref = await admitted(a, newCall(await store().addAccount(null)))
      assert.equal(await store().calls.keepProgress(ref, PROGRESS), true)
      await store().calls.release([ref])
      const found = await takeOver(b, ref, { lapsedBefore: at(0) })
      assert.deepEqual(found?.progress, PROGRESS)
      assert.equal(await store().calls.finish(ref, ending()), null)
    })

    test('a node takes calls of its own only after longer, and none that it has under way', async () => {
      const [a] = nodes()
      const accountId = await store().addAccount(null)
      const [known, unknown] = [await admitted(a, newCall(accountId)), await admitted(a, newCall(accountId))]
      assert.equal(await takeOver(a, unknown, { ownLapsedBefore: at(30_000) }), null)
      const options = { ownLapsedBefore: LAPSED, except: [known] }
      assert.notEqual(await takeOver(a, unknown, options), null)
      assert.equal(await takeOver(a, known, options), null)
    })

    test('where every other node is dead, their calls are taken at once', async () => {
      const [a, b] = nodes()
      const ref = await admitted(a, newCall(await store().addAccount(null)))
      assert.notEqual(await takeOver(b, ref, { lapsedBefore: at(MUCH_LATER), limit: 100_000 }), null)
    })

    test('a running request that is called off tells its holder, and whoever takes it over', async () => {
      const [a, b] = nodes()
      const accountId = await store().addAccount(null)
      const ref = await queued(a, accountId)
      assert.equal(await store().other.requests.cancel(accountId, ref.id, at(2), at(DAY_MS)), 'running')
      assert.deepEqual(await store().calls.renew([ref], at(20_000)), [{ id: ref.id, isStopAsked: true }])
      const found = await takeOver(b, ref)
      assert.equal(found?.isStopAsked, true)
      assert.equal(await store().other.requests.putBack(found?.ref as HeldCall, { isLoss: true }), true)
      const next = await store().requests.take(accountId, NO_LIMITS, { now: at(3), lease: leaseOf(a) })
      assert.equal(next?.isStopAsked, true)
    })

    test('the trace of a request is there for whoever takes it, and for whoever goes on with it', async () => {
      const [a, b] = nodes()
      const accountId = await store().addAccount(null)
      const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), isSampled: true, state: 'vendor=1' }
      const request = { ...newCall(accountId), body: BODY, bodyBytes: 2, trace }
      await store().requests.enqueue(request, { maxWaiting: 10, isValid: true })
      const found = await store().requests.take(accountId, NO_LIMITS, { now: at(1), lease: leaseOf(a) })
      assert.deepEqual(found?.trace, trace)
      assert.deepEqual((await takeOver(b, found?.ref as HeldCall))?.trace, trace)
      assert.equal((await takeOver(b, await queued(a, accountId)))?.trace, null)
    })

    test('how often the node of a request was lost is counted', async () => {
      const [a, b] = nodes()
      const accountId = await store().addAccount(null)
      let ref = await queued(a, accountId)
      for (const losses of [0, 1, 2]) {
        const found = await takeOver(b, ref)
        assert.equal(found?.losses, losses)
        await store().other.requests.putBack(found?.ref as HeldCall, { isLoss: true })
        ref = await taken(a, accountId)
      }
      await store().requests.putBack(ref, { isLoss: false })
      assert.equal((await takeOver(b, await taken(a, accountId)))?.losses, 3)
    })

    test('one key is one call for all nodes, and what became of it is told on each', async () => {
      const [a, b] = nodes()
      const accountId = await store().addAccount(1_000_000)
      const call = newCall(accountId)
      const sides = [store().calls, store().other.calls]
      const admit = (calls: CallStore, owner: string, fields: Partial<NewCall> = {}) =>
        calls.admit({ ...call, id: randomUUID(), ...fields }, NO_LIMITS, { isValid: true, lease: leaseOf(owner) })
      const outcomes = await Promise.all(
        Array.from({ length: 16 }, (_, index) => admit(sides[index % 2], index % 2 === 0 ? a : b)),
      )
      const admittedOnes = outcomes.filter(({ outcome }) => outcome === 'admitted')
      assert.equal(admittedOnes.length, 1)
      const { ref } = admittedOnes[0] as Extract<(typeof outcomes)[0], { outcome: 'admitted' }>
      assert.equal(await store().other.calls.isRunning(ref), true)
      await store().calls.finish(ref, ending({ ...interrupted }))
      assert.equal((await admit(store().other.calls, b)).outcome, 'unusable')
      const again = await admit(store().other.calls, b, { mayResubmit: true })
      assert.partialDeepStrictEqual(again, { outcome: 'admitted', ref: { id: ref.id, owner: b } })
      assert.equal(await store().calls.finish(ref, ending()), null)
    })

    test('limits hold over all nodes, however many admit and take at once', async () => {
      const [a, b] = nodes()
      const accountId = await store().addAccount(1_000_000)
      const limits: CallLimits = { maxCalls: 5, maxCostlyCalls: null, ceilingMicros: 4 * PRICE }
      for (let count = 0; count < 6; count++) {
        const request = { ...newCall(accountId), body: BODY, bodyBytes: 2 }
        await store().requests.enqueue(request, { maxWaiting: 10, isValid: true })
      }
      const tries = Array.from({ length: 24 }, (_, index) => {
        const [side, owner] = index % 2 === 0 ? ([store(), a] as const) : ([store().other, b] as const)
        if (index % 4 < 2) return side.requests.take(accountId, limits, { now: at(1), lease: leaseOf(owner) })
        return side.calls.admit(newCall(accountId), limits, { isValid: true, lease: leaseOf(owner) })
      })
      const got = (await Promise.all(tries)).filter(
        (answer) => answer !== null && (!('outcome' in answer) || answer.outcome === 'admitted'),
      )
      assert.equal(got.length, 4)
      assert.deepEqual(await store().calls.standing(accountId), { runningCalls: 4, committedMicros: 4 * PRICE })
      assert.deepEqual((await store().ledger.check()).faults, [])
    })
  })
}
