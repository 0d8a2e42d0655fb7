/** What every store of model calls must do: decide in the contract's order, once per key, and keep the pool and the money in step. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import type { LedgerStore } from '../../../src/domain/credits/ledger.ts'
import type {
  CallEnd,
  CallFinish,
  CallLimits,
  CallStore,
  HeldCall,
  NewCall,
  NewLease,
  UnfinishedCall,
} from '../../../src/domain/models/calls/call-store.ts'
import type { RequestStore } from '../../../src/domain/models/queue/request-store.ts'
import { at, DAY_MS } from '../store-under-test.ts'

export interface CallStoreUnderTest {
  readonly calls: CallStore
  readonly requests: RequestStore
  readonly ledger: LedgerStore
  /** An account with this much credit; null: one that is not metered. */
  addAccount(micros: number | null): Promise<string>
}

const LEASE_MS = 30_000

/** A lease that begins at the start of the test's time, or `afterMs` later. */
export function leaseOf(owner: string, afterMs = 0): NewLease {
  return { owner, until: at(afterMs + LEASE_MS) }
}

const NO_LIMITS: CallLimits = { maxCalls: null, maxCostlyCalls: null, ceilingMicros: null }
export const PRICE = 40_000

export function newCall(accountId: string, fields: Partial<NewCall> = {}): NewCall {
  return {
    id: randomUUID(),
    accountId,
    key: randomUUID(),
    fingerprint: 'same',
    modelId: 'fake/paid',
    baseUrl: 'http://here',
    createdAt: at(0),
    expiresAt: at(DAY_MS),
    holdMicros: PRICE,
    spendMicros: PRICE,
    isCostly: false,
    mayResubmit: false,
    ...fields,
  }
}

const END: CallEnd = {
  kind: 'result',
  result: {
    contentType: 'application/json',
    body: { kind: 'inline', bytes: new Uint8Array([123, 125]) },
    sizeBytes: 2,
    costMicros: PRICE,
  },
}

export function ending(fields: Partial<CallFinish> = {}): CallFinish {
  const common = { fate: 'keep' as const, end: END, chargeMicros: PRICE, memo: 'test', at: at(1000) }
  return { ...common, replayUntil: null, expiresAt: null, ...fields }
}

export function testCallStore(store: () => CallStoreUnderTest): void {
  async function admit(call: NewCall, limits = NO_LIMITS, isValid = true) {
    return store().calls.admit(call, limits, { isValid, lease: leaseOf('a') })
  }
  async function admitted(call: NewCall, limits = NO_LIMITS): Promise<HeldCall> {
    const outcome = await admit(call, limits)
    assert.equal(outcome.outcome, 'admitted')
    return (outcome as Extract<typeof outcome, { outcome: 'admitted' }>).ref
  }
  const balance = async (accountId: string) => {
    const found = await store().ledger.balance(accountId)
    return [found?.available, found?.held]
  }

  test('calls on record are listed by their account, newest first, by model and state', async () => {
    const [accountId, other] = [await store().addAccount(1_000_000), await store().addAccount(1_000_000)]
    const [done, failed, running] = [
      newCall(accountId),
      newCall(accountId, { modelId: 'fake/other' }),
      newCall(accountId),
    ]
    await store().calls.finish(await admitted(done), ending())
    const refusal = { refusal: 'policy', message: 'no', upstreamStatus: 400, failures: null } as const
    await store().calls.finish(
      await admitted(failed),
      ending({ end: { kind: 'refusal', refusal }, chargeMicros: null, at: at(2000) }),
    )
    await admitted(running)
    // Without a key nothing is left of it.
    await store().calls.finish(await admitted(newCall(accountId, { key: null })), ending())
    const list = async (asked: object = {}, whose = accountId) =>
      store().calls.list(whose, { before: null, limit: 10, modelId: null, status: null, ...asked })
    const all = await list()
    assert.deepEqual(
      all.map(({ id, status, isQueued }) => [id, status, isQueued]),
      [
        [running.id, 'running', false],
        [failed.id, 'failed', false],
        [done.id, 'succeeded', false],
      ],
    )
    assert.deepEqual([all[1]?.refusal, all[1]?.finishedAt, all[2]?.costMicros], [refusal, at(2000), PRICE])
    assert.deepEqual([all[0]?.createdAt, all[0]?.finishedAt, all[0]?.costMicros], [at(0), null, null])
    const idsOf = async (asked: object) => (await list(asked)).map(({ id }) => id)
    assert.deepEqual(await idsOf({ modelId: 'fake/other' }), [failed.id])
    assert.deepEqual(await idsOf({ status: 'succeeded' }), [done.id])
    assert.deepEqual(await idsOf({ before: all[1]?.seq ?? null, limit: 1 }), [done.id])
    assert.deepEqual(await list({}, other), [])
  })

  /** What this node takes of the calls whose leases are over a minute from now; other tests may have left some. */
  const takeLapsed = (owner: string, limit = 10_000) => {
    const times = { lapsedBefore: at(60_000), ownLapsedBefore: at(60_000), lease: leaseOf(owner, 3_600_000) }
    return store().calls.takeLapsed({ ...times, except: [], limit })
  }
  async function takeOver(owner: string, { id }: HeldCall): Promise<UnfinishedCall> {
    const found = (await takeLapsed(owner)).find(({ ref }) => ref.id === id)
    assert.ok(found !== undefined, 'the call was not taken over')
    return found
  }

  test('no call is charged more than was set aside for it', async () => {
    const accountId = await store().addAccount(1_000_000)
    const outcome = await store().calls.finish(await admitted(newCall(accountId)), ending({ chargeMicros: PRICE * 10 }))
    assert.equal(outcome?.chargedMicros, PRICE)
    assert.deepEqual(await balance(accountId), [1_000_000 - PRICE, 0])
  })

  test('of many equal calls one is let in, and its end is told to all', async () => {
    const accountId = await store().addAccount(1_000_000)
    const call = newCall(accountId)
    const outcomes = await Promise.all(Array.from({ length: 16 }, () => admit({ ...call, id: randomUUID() })))
    const [first, ...others] = outcomes.toSorted((a) => (a.outcome === 'admitted' ? -1 : 1))
    assert.equal(first.outcome, 'admitted')
    assert.ok(others.every(({ outcome }) => outcome === 'running'))
    assert.deepEqual(await balance(accountId), [960_000, PRICE])
    const { ref } = first as Extract<typeof first, { outcome: 'admitted' }>
    assert.deepEqual(await store().calls.finish(ref, ending()), { chargedMicros: PRICE })
    assert.equal(await store().calls.finish(ref, ending()), null)
    assert.partialDeepStrictEqual(await admit(call), { outcome: 'done', id: ref.id, end: END })
    assert.deepEqual(await balance(accountId), [960_000, 0])
  })

  test('what stands against a call is said in order, and leaves nothing behind', async () => {
    const accountId = await store().addAccount(100_000)
    const full: CallLimits = { maxCalls: 0, maxCostlyCalls: null, ceilingMicros: null }
    const call = newCall(accountId)
    const other = { ...call, fingerprint: 'other' }
    assert.equal((await admit({ ...call, holdMicros: 200_000 }, full, false)).outcome, 'no_credits')
    assert.equal((await admit(call, full, false)).outcome, 'invalid')
    assert.equal((await admit(call, full)).outcome, 'calls_exhausted')
    assert.equal((await admit(call, { ...NO_LIMITS, ceilingMicros: PRICE - 1 })).outcome, 'spend_exhausted')
    const ref = await admitted(call)
    assert.equal((await admit({ ...other, holdMicros: 200_000 }, full, false)).outcome, 'other_request')
    await store().calls.finish(ref, ending())
    assert.equal((await admit({ ...call, holdMicros: 200_000 }, full, false)).outcome, 'done')
  })

  test('costly calls have a smaller pool of their own', async () => {
    const accountId = await store().addAccount(null)
    const limits: CallLimits = { maxCalls: 3, maxCostlyCalls: 1, ceilingMicros: null }
    await admitted(newCall(accountId, { isCostly: true }), limits)
    assert.equal((await admit(newCall(accountId, { isCostly: true }), limits)).outcome, 'calls_exhausted')
    await admitted(newCall(accountId), limits)
  })

  test('a forgotten call frees its key and gives everything back', async () => {
    const accountId = await store().addAccount(1_000_000)
    const call = newCall(accountId)
    const ref = await admitted(call)
    await store().calls.finish(ref, ending({ fate: 'forget', end: null, chargeMicros: null }))
    assert.deepEqual(await balance(accountId), [1_000_000, 0])
    await admitted({ ...call, id: randomUUID(), fingerprint: 'another' })
  })

  test('an interrupted call runs again under its own id where that is harmless, and nowhere else', async () => {
    const accountId = await store().addAccount(1_000_000)
    const call = newCall(accountId)
    const ref = await admitted(call)
    await store().calls.finish(ref, ending({ fate: 'interrupt', end: null, chargeMicros: null }))
    assert.equal((await admit({ ...call, id: randomUUID() })).outcome, 'unusable')
    const again = await admitted({ ...call, id: randomUUID(), mayResubmit: true })
    assert.deepEqual([again.seq, again.id], [ref.seq, ref.id])
    assert.equal(await store().calls.finish(ref, ending()), null)
    assert.deepEqual(await balance(accountId), [960_000, PRICE])
    await store().calls.finish(again, ending())
    assert.deepEqual(await balance(accountId), [960_000, 0])
  })

  test('a call with a handle is found again, one that ended is not', async () => {
    const accountId = await store().addAccount(null)
    const ref = await admitted(newCall(accountId))
    const progress = { handle: { task: 1 }, quote: [1, 2.5], isOwnKey: false }
    await store().calls.keepProgress(ref, progress)
    const taken = await takeOver('b', ref)
    assert.partialDeepStrictEqual(taken, { progress, isQueued: false, isKeyed: true, isStopAsked: false })
    await store().calls.finish(taken.ref, ending())
    assert.equal(await store().calls.isRunning(ref), false)
    assert.ok((await takeLapsed('c')).every((call) => call.ref.id !== ref.id))
  })

  test('a call is found by what its caller was told, in its own account only, also after its end', async () => {
    const accountId = await store().addAccount(null)
    const call = newCall(accountId, { jobId: 'job' })
    const ref = await admitted(call)
    const told = { task: 'bfl/7', answer: '{"id":"7"}' }
    const key = call.key ?? ''
    assert.equal(await store().calls.findTold(accountId, { key }), null)
    await store().calls.keepProgress(ref, { handle: { task: 7 }, quote: [], isOwnKey: false, told })
    await store().calls.finish(ref, ending())
    const found = { id: ref.id, modelId: call.modelId, told, isOwnKey: false }
    assert.deepEqual(await store().calls.findTold(accountId, { task: 'bfl/7' }), found)
    assert.deepEqual(await store().calls.findTold(accountId, { key }), found)
    assert.equal(await store().calls.findTold(await store().addAccount(null), { task: 'bfl/7' }), null)
    const [listed] = await store().calls.list(accountId, { before: null, limit: 1, modelId: null, status: null })
    assert.equal(listed?.jobId, 'job')
  })

  test('a record is told again until its time, and its key is free after its life', async () => {
    const accountId = await store().addAccount(null)
    const short = newCall(accountId)
    await store().calls.finish(await admitted(short), ending({ replayUntil: at(5000) }))
    assert.equal((await admit({ ...short, createdAt: at(4999) })).outcome, 'done')
    assert.equal((await admit({ ...short, createdAt: at(5000) })).outcome, 'unusable')
    assert.equal((await admit({ ...short, id: randomUUID(), createdAt: at(DAY_MS) })).outcome, 'admitted')
  })

  test('the pool, the money and the rows agree after any sequence of calls and ends', async () => {
    const fates = fc.constantFrom('keep' as const, 'forget' as const, 'interrupt' as const, 'spend' as const)
    const step = fc.record({
      key: fc.integer({ min: 0, max: 3 }),
      fate: fates,
      charge: fc.integer({ min: 0, max: 90_000 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const accountId = await store().addAccount(10_000_000)
        let charged = 0
        for (const { key, fate, charge } of steps) {
          const call = newCall(accountId, { key: `k${key}`, mayResubmit: true })
          const outcome = await admit(call, { maxCalls: 1, maxCostlyCalls: null, ceilingMicros: PRICE })
          if (outcome.outcome !== 'admitted') continue
          assert.deepEqual(outcome.standing, { runningCalls: 1, committedMicros: PRICE })
          assert.deepEqual(await store().calls.standing(accountId), outcome.standing)
          const chargeMicros = fate === 'keep' || fate === 'spend' ? charge : null
          await store().calls.finish(outcome.ref, ending({ fate, chargeMicros, end: fate === 'keep' ? END : null }))
          charged += Math.min(PRICE, chargeMicros ?? 0)
        }
        assert.deepEqual(await balance(accountId), [10_000_000 - charged, 0])
        assert.deepEqual(await store().calls.standing(accountId), { runningCalls: 0, committedMicros: 0 })
      }),
      { seed: 20_261_115, numRuns: 25 },
    )
    assert.deepEqual((await store().ledger.check()).faults, [])
  })

  test('queued calls are taken in order, as far as the limits allow, and put back to the front', async () => {
    const accountId = await store().addAccount(1_000_000)
    const body = { kind: 'inline' as const, bytes: new Uint8Array([123, 125]) }
    const ids = ['a', 'b', 'c'].map(() => randomUUID())
    for (const [index, id] of ids.entries()) {
      const request = { ...newCall(accountId, { id }), body, bodyBytes: 2 }
      const outcome = await store().requests.enqueue(request, { maxWaiting: 3, isValid: true })
      assert.deepEqual(outcome, { outcome: 'queued', position: index })
    }
    const extra = { ...newCall(accountId), body, bodyBytes: 2 }
    assert.equal((await store().requests.enqueue(extra, { maxWaiting: 3, isValid: true })).outcome, 'backlog_full')
    const limits: CallLimits = { maxCalls: 1, maxCostlyCalls: null, ceilingMicros: null }
    const taking = { now: at(1), lease: leaseOf('a') }
    const first = await store().requests.take(accountId, limits, taking)
    assert.equal(first?.ref.id, ids[0])
    assert.equal(await store().requests.take(accountId, limits, taking), null)
    assert.equal(await store().requests.putBack(first?.ref as HeldCall, { isLoss: false }), true)
    assert.equal((await store().requests.find(accountId, ids[0]))?.position, 0)
    assert.equal(await store().requests.cancel(accountId, ids[0], at(2), at(DAY_MS)), 'canceled')
    assert.equal(await store().requests.cancel(accountId, ids[0], at(2), at(DAY_MS)), 'ended')
    assert.equal((await store().requests.take(accountId, limits, taking))?.ref.id, ids[1])
    assert.equal(await store().requests.timeOut(at(DAY_MS), at(DAY_MS), at(2 * DAY_MS)), 1)
    assert.equal((await store().requests.find(accountId, ids[2]))?.state, 'done')
    assert.deepEqual(await balance(accountId), [960_000, PRICE])
  })
}
