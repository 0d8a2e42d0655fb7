/** What every store of model calls must do with plans: keep them, let one attempt follow another once, hold what the account affords. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CallPlan, type PlannedAttempt, withEnd } from '../../../src/domain/models/calls/call-plan.ts'
import type { CallEnd, HeldCall, NewCall } from '../../../src/domain/models/calls/call-store.ts'
import { at } from '../store-under-test.ts'
import { type CallStoreUnderTest, ending, leaseOf, newCall } from './call-store.ts'

const NO_LIMITS = { maxCalls: null, maxCostlyCalls: null, ceilingMicros: null }
const LEFT_LONG_AGO = 3_600_000

function attempt(provider: string, holdMicros: number): PlannedAttempt {
  return { provider, modelId: `${provider}/painter`, form: 'native', keyOwner: 'service', holdMicros, dropped: [] }
}

const NATIVE = attempt('fake', 100)
const PLAN: CallPlan = {
  asked: 'fake',
  route: 'listed',
  attempts: [NATIVE, attempt('dear', 900), attempt('fair', 300)],
}

/** A call with the whole plan, and the same without its dearer alternates. */
function planned(accountId: string, fields: Partial<NewCall> = {}): NewCall {
  const [, , fair] = PLAN.attempts
  const without = (attempts: readonly PlannedAttempt[], micros: number) => ({
    ...{ plan: { ...PLAN, attempts }, holdMicros: micros, spendMicros: micros, isCostly: false },
  })
  const narrower = [without([NATIVE, fair], 300), without([NATIVE], 100)]
  return newCall(accountId, { plan: PLAN, holdMicros: 900, spendMicros: 900, narrower, ...fields })
}

export function testCallPlans(store: () => CallStoreUnderTest): void {
  const admit = (call: NewCall, limits: Parameters<CallStoreUnderTest['calls']['admit']>[1] = NO_LIMITS) =>
    store().calls.admit(call, limits, { isValid: true, lease: leaseOf('a') })

  async function admitted(call: NewCall, limits = NO_LIMITS) {
    const outcome = await admit(call, limits)
    assert.equal(outcome.outcome, 'admitted')
    return outcome as Extract<typeof outcome, { outcome: 'admitted' }>
  }

  const takeOver = async ({ id }: Pick<HeldCall, 'id'>) => {
    const times = { lapsedBefore: at(LEFT_LONG_AGO), ownLapsedBefore: at(0), except: [], limit: 1000 }
    const taken = await store().calls.takeLapsed({ ...times, lease: leaseOf('b', LEFT_LONG_AGO) })
    return taken.find(({ ref }) => ref.id === id)
  }

  test('an alternate that the account cannot afford is left out of the plan, by its credit and by its ceiling', async () => {
    const rich = await store().addAccount(10_000)
    const poor = await store().addAccount(350)
    const bare = await store().addAccount(99)
    const providers = ({ plan }: { plan: CallPlan | null }) => plan?.attempts.map(({ provider }) => provider)
    assert.deepEqual(providers(await admitted(planned(rich))), ['fake', 'dear', 'fair'])
    assert.equal((await store().ledger.balance(rich))?.held, 900)
    assert.deepEqual(providers(await admitted(planned(poor))), ['fake', 'fair'])
    assert.equal((await store().ledger.balance(poor))?.held, 300)
    assert.equal((await admit(planned(bare))).outcome, 'no_credits')
    const ceiling = await store().addAccount(10_000)
    assert.deepEqual(providers(await admitted(planned(ceiling), { ...NO_LIMITS, ceilingMicros: 120 as never })), [
      'fake',
    ])
    assert.equal((await store().calls.standing(ceiling)).committedMicros, 100)
    const second = await admit(planned(ceiling), { ...NO_LIMITS, ceilingMicros: 120 })
    assert.equal(second.outcome, 'spend_exhausted')
  })

  test('one attempt follows another once, and whoever takes the call over reads which one it is at', async () => {
    const { ref, attemptIndex } = await admitted(planned(await store().addAccount(10_000)))
    assert.equal(attemptIndex, 0)
    const second = { plan: withEnd(PLAN, 0, 'not_sent'), attemptIndex: 1 }
    assert.equal(await store().calls.beginAttempt({ ...ref, fence: ref.fence + 1 }, second), false)
    assert.equal(await store().calls.beginAttempt(ref, { ...second, attemptIndex: 2 }), false, 'none is passed over')
    assert.equal(await store().calls.beginAttempt(ref, second), true)
    assert.equal(await store().calls.beginAttempt(ref, { plan: PLAN, attemptIndex: 0 }), false, 'none comes back')
    const taken = await takeOver(ref)
    assert.deepEqual([taken?.plan, taken?.attemptIndex], [second.plan, 1])
    assert.equal(await store().calls.beginAttempt(ref, { ...second, attemptIndex: 2 }), false, 'it is another node’s')
  })

  test('no attempt follows one that has its handle', async () => {
    const { ref } = await admitted(planned(await store().addAccount(10_000)))
    assert.equal(await store().calls.keepProgress(ref, { handle: 'task', quote: [100], isOwnKey: false }), true)
    assert.equal(await store().calls.beginAttempt(ref, { plan: PLAN, attemptIndex: 1 }), false)
  })

  test('a key whose outcome is unknown is sent again only where the attempt that was lost bears it', async () => {
    const accountId = await store().addAccount(10_000)
    const call = planned(accountId, { mayResubmit: true, resubmittable: ['fake/painter'] })
    const { ref } = await admitted(call)
    await store().calls.beginAttempt(ref, { plan: withEnd(PLAN, 0, 'not_accepted'), attemptIndex: 1 })
    await store().calls.finish(ref, ending({ fate: 'interrupt', end: null, chargeMicros: null }))
    assert.equal((await admit({ ...call, id: 'again' })).outcome, 'unusable')
    const resumed = await admitted({ ...call, id: 'once more', resubmittable: ['dear/painter'] })
    assert.deepEqual([resumed.ref.id, resumed.attemptIndex], [ref.id, 1])
    assert.equal(resumed.plan?.attempts[0]?.end, 'not_accepted', 'the stored plan, not the new one')
  })

  test('who served a result is told again with it', async () => {
    const call = planned(await store().addAccount(10_000))
    const { ref } = await admitted(call)
    const served = { fallbackProvider: 'fair', dropped: ['tone (fair knows no such thing)'] }
    const [body, contentType] = [{ kind: 'inline' as const, bytes: new Uint8Array([123, 125]) }, 'application/json']
    const end: CallEnd = { kind: 'result', result: { contentType, body, sizeBytes: 2, costMicros: 300, served } }
    const finished = await store().calls.finish(ref, ending({ end, chargeMicros: 300 }))
    assert.equal(finished?.chargedMicros, 300)
    const again = await admit({ ...call, id: 'again' })
    assert.ok(again.outcome === 'done' && again.end.kind === 'result')
    assert.deepEqual(again.end.result.served, served)
  })

  test('a queued call keeps its plan, and where it is in it, when it is put back', async () => {
    const accountId = await store().addAccount(350)
    const body = { kind: 'inline' as const, bytes: new Uint8Array([123, 125]) }
    const request = { ...planned(accountId), body, bodyBytes: 2 }
    await store().requests.enqueue(request, { maxWaiting: 10, isValid: true })
    const take = (afterMs: number) =>
      store().requests.take(accountId, NO_LIMITS, { now: at(afterMs), lease: leaseOf('a', afterMs) })
    const first = await take(1)
    const plan = first?.plan
    assert.ok(first !== null && plan != null)
    assert.deepEqual(
      plan.attempts.map(({ provider }) => provider),
      ['fake', 'fair'],
    )
    await store().calls.beginAttempt(first.ref, { plan: withEnd(plan, 0, 'paused'), attemptIndex: 1 })
    await store().requests.putBack(first.ref, { isLoss: false })
    const second = await take(2)
    assert.deepEqual([second?.attemptIndex, second?.plan?.attempts[0]?.end], [1, 'paused'])
  })
}
