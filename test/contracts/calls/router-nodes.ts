/**
 * What the callers of a service see when several of its nodes drive model calls over one store: whichever node they ask, and
 * whichever node is lost, a call is sent once, charged once, and found again by its key.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { createLocalBus } from '../../../src/adapters/bus/local.ts'
import type { CallStore } from '../../../src/domain/models/calls/call-store.ts'
import type { RunAnswer } from '../../../src/domain/models/calls/run-call.ts'
import type { RequestStore } from '../../../src/domain/models/queue/request-store.ts'
import { RouterError } from '../../../src/domain/models/router-error.ts'
import type { Store, StoreGlance } from '../../../src/domain/store.ts'
import { ACCOUNT, createMemoryJournal, openRouterNode, type RouterNode } from '../../support/app/router-nodes.ts'
import { PRICE } from '../../support/app/start-router.ts'
import { createFixedClock, type FixedClock } from '../../support/fixed-clock.ts'
import {
  accepted,
  createFakeProvider,
  done,
  type FakeProvider,
  fakeModel,
  gate,
} from '../../support/providers/fake-provider.ts'
import { waitUntil } from '../../support/wait-until.ts'

type SharedStore = Pick<Store, 'calls' | 'requests' | 'ledger' | 'sentJournal'>

export interface NodesUnderTest {
  /** The same store twice, as two nodes have it open, with an account `payer` that has one dollar. */
  open(clock: FixedClock): Promise<{ readonly stores: readonly [SharedStore, SharedStore] } & AsyncDisposable>
}

const MODELS = [
  fakeModel('fake/direct', { price: PRICE }),
  fakeModel('fake/polled', { price: PRICE, returns: 'poll' }),
  fakeModel('fake/free'),
]
const COST = 40_000
const DOLLAR = 1_000_000
const LAPSE_MS = 31_000

interface Nodes {
  readonly a: RouterNode
  readonly b: RouterNode
  readonly provider: FakeProvider
  readonly clock: FixedClock
  readonly store: SharedStore
}

interface NodesOptions {
  readonly deduplicates?: boolean
  /** Of the first node. */
  readonly wrapCalls?: (calls: CallStore) => CallStore
  readonly wrapRequests?: (requests: RequestStore) => RequestStore
  /** Of both. */
  readonly glance?: () => Pick<StoreGlance, 'hasWaitingCalls' | 'hasLapsedCalls'> | null
  readonly settings?: Readonly<Record<string, string>>
}

function resultOf({ end }: RunAnswer): unknown {
  assert.ok(end.kind === 'result' && end.result.body.kind === 'inline')
  return JSON.parse(Buffer.from(end.result.body.bytes).toString())
}

export function testRouterNodes({ open }: NodesUnderTest): void {
  async function withNodes(options: NodesOptions, body: (nodes: Nodes) => Promise<void>): Promise<void> {
    const clock = createFixedClock()
    await using opened = await open(clock)
    const provider = createFakeProvider({ deduplicates: options.deduplicates ?? false })
    const bus = createLocalBus<never>({ log: silentLog })
    const shared = {
      provider,
      models: MODELS,
      clock,
      bus,
      journal: opened.stores[0].sentJournal ?? createMemoryJournal(),
      ...(options.glance && { glance: options.glance }),
    }
    const settings = options.settings ?? {}
    const { wrapCalls, wrapRequests } = options
    await using a = openRouterNode({ ...shared, settings, store: opened.stores[0], wrapCalls, wrapRequests })
    await using b = openRouterNode({ ...shared, settings, store: opened.stores[1] })
    await body({ a, b, provider, clock, store: opened.stores[0] })
    assert.deepEqual((await opened.stores[0].ledger.check()).faults, [])
  }
  const available = async ({ ledger }: SharedStore) => (await ledger.balance(ACCOUNT))?.available

  test('a key whose call runs on another node waits for it and gets the same answer', () =>
    withNodes({}, async ({ a, b, provider, store }) => {
      const held = gate(done({ made: 'once' }))
      provider.answer(held.answer)
      const first = a.run('fake/direct', { x: 1 }, 'k')
      await waitUntil(() => provider.submits.length === 1)
      // One request of a node waits, and a second one is told to come back.
      const again = [1, 2].map(() => b.run('fake/direct', { x: 1 }, 'k').catch((error: unknown) => error))
      const early = await Promise.race(again)
      assert.ok(early instanceof RouterError && early.refusal === 'key_running')
      held.open()
      assert.deepEqual(resultOf(await first), { made: 'once' })
      const replay = (await Promise.all(again)).find((answer) => answer !== early) as RunAnswer
      assert.deepEqual([resultOf(replay), replay.isReplay], [{ made: 'once' }, true])
      assert.equal(provider.submits.length, 1)
      assert.equal(await available(store), DOLLAR - COST)
    }))

  test('a generation goes on when its node is lost: another polls it, and whoever waits gets it', () =>
    withNodes({}, async ({ a, b, provider, clock, store }) => {
      provider.answer(accepted({ task: 7 }))
      const waiting = a.run('fake/polled', {}, 'k')
      await waitUntil(() => provider.polls.length > 0)
      const elsewhere = b.run('fake/polled', {}, 'k')
      clock.advance(LAPSE_MS)
      // A look passes over a call that another transaction works on.
      await waitUntil(async () => {
        await b.look()
        return b.actions.live.size === 1
      })
      await a.renew()
      provider.pollAnswer(done({ made: 'once' }))
      for (const answer of await Promise.all([waiting, elsewhere])) {
        assert.deepEqual([resultOf(answer), answer.isReplay], [{ made: 'once' }, true])
      }
      assert.equal(provider.submits.length, 1)
      assert.equal(await available(store), DOLLAR - COST)
    }))

  test('a call that was sent when its node was lost is not sent again, and not charged', () =>
    withNodes({}, async ({ a, b, provider, clock, store }) => {
      const held = gate(done({ made: 'unseen' }))
      provider.answer(held.answer)
      const waiting = a.run('fake/direct', {}, 'k')
      await waitUntil(() => provider.submits.length === 1)
      clock.advance(LAPSE_MS)
      await b.look()
      await assert.rejects(b.run('fake/direct', {}, 'k'), { refusal: 'key_unusable' })
      held.open()
      // Whoever still waits for the lost node gets what its provider answered.
      assert.deepEqual(resultOf(await waiting), { made: 'unseen' })
      await assert.rejects(b.run('fake/direct', {}, 'k'), { refusal: 'key_unusable' })
      assert.equal(provider.submits.length, 1)
      assert.equal(await available(store), DOLLAR)
    }))

  test('a call that was not sent when its node was lost is sent by whoever has its key, once', async () => {
    const letIn = Promise.withResolvers<void>()
    let isFirst = true
    const wrapCalls = (calls: CallStore): CallStore => ({
      ...calls,
      async admit(...call) {
        const outcome = await calls.admit(...call)
        if (isFirst && outcome.outcome === 'admitted') {
          isFirst = false
          await letIn.promise
        }
        return outcome
      },
    })
    await withNodes({ wrapCalls }, async ({ a, b, provider, clock, store }) => {
      const first = a.run('fake/direct', {}, 'k')
      await waitUntil(() => !isFirst)
      clock.advance(LAPSE_MS)
      await b.look()
      const second = await b.run('fake/direct', {}, 'k')
      letIn.resolve()
      // It was stopped before it sent, finds its call taken over, and asks for what became of the key.
      const replay = await first
      assert.deepEqual([second.isReplay, replay.isReplay], [false, true])
      assert.equal(provider.submits.length, 1)
      assert.equal(await available(store), DOLLAR - COST)
    })
  })

  const stateOf = async ({ requests }: SharedStore, id: string) => (await requests.find(ACCOUNT, id))?.state
  async function untilDone(store: SharedStore, id: string): Promise<void> {
    await waitUntil(async () => (await stateOf(store, id)) === 'done')
  }
  /** A node that takes the account's next request, and is never heard of again. */
  async function takeAndDie({ requests }: SharedStore, clock: FixedClock): Promise<void> {
    const until = new Date(clock.now().getTime() + LAPSE_MS - 1000)
    const limits = { maxCalls: null, maxCostlyCalls: null, ceilingMicros: null }
    assert.notEqual(await requests.take(ACCOUNT, limits, { now: clock.now(), lease: { owner: 'dead', until } }), null)
    clock.advance(LAPSE_MS)
  }

  test('a request is run by any node', () =>
    withNodes({}, async ({ a, b, provider, store }) => {
      const id = await a.submit('fake/direct', { n: 1 })
      b.actions.queue.start()
      await untilDone(store, id)
      assert.equal(provider.submits.length, 1)
      assert.equal(await available(store), DOLLAR - COST)
    }))

  test('a request whose node was lost before it was sent runs on another', () =>
    withNodes({}, async ({ a, b, provider, clock, store }) => {
      const id = await a.submit('fake/direct', {})
      await takeAndDie(store, clock)
      await b.look()
      b.actions.queue.start()
      await untilDone(store, id)
      assert.equal(provider.submits.length, 1)
      assert.equal(await available(store), DOLLAR - COST)
    }))

  test('a request that was called off while its node was lost ends without having run', () =>
    withNodes({}, async ({ a, b, provider, clock, store }) => {
      const id = await a.submit('fake/direct', {})
      await takeAndDie(store, clock)
      await a.actions.queue.cancel(ACCOUNT, 'fake/direct', id)
      await b.look()
      assert.partialDeepStrictEqual(await store.requests.find(ACCOUNT, id), {
        end: { refusal: { refusal: 'cancelled' } },
      })
      assert.equal(provider.submits.length, 0)
      assert.equal(await available(store), DOLLAR)
    }))

  test('a request that has cost three nodes is not tried again', () =>
    withNodes({}, async ({ a, b, provider, clock, store }) => {
      const id = await a.submit('fake/direct', {})
      for (const state of ['waiting', 'waiting', 'done']) {
        await takeAndDie(store, clock)
        await b.look()
        assert.equal(await stateOf(store, id), state)
      }
      assert.partialDeepStrictEqual(await store.requests.find(ACCOUNT, id), { end: { kind: 'refusal' } })
      assert.equal(provider.submits.length, 0)
      assert.equal(await available(store), DOLLAR)
    }))

  test('a request that runs on another node is called off there', () =>
    withNodes({}, async ({ a, b, provider, store }) => {
      provider.answer(accepted({ task: 1 }))
      const id = await a.submit('fake/polled', {})
      a.actions.queue.start()
      await waitUntil(() => provider.polls.length > 0)
      await b.actions.queue.cancel(ACCOUNT, 'fake/polled', id)
      await waitUntil(() => provider.canceled.length > 0)
      assert.deepEqual(provider.canceled, [{ task: 1 }])
      provider.pollAnswer(done({ too: 'late' }))
      await untilDone(store, id)
    }))

  test('what a node leaves when it stops is taken up by another at once', () =>
    withNodes({}, async ({ a, b, provider }) => {
      provider.answer(accepted({ task: 1 }))
      const waiting = a.run('fake/polled', {}, 'k')
      await waitUntil(() => provider.polls.length > 0)
      const refused = assert.rejects(waiting, { refusal: 'unavailable' })
      await a.actions.close(0)
      await refused
      await b.look()
      provider.pollAnswer(done({ made: 'once' }))
      assert.deepEqual(resultOf(await b.run('fake/polled', {}, 'k')), { made: 'once' })
      assert.equal(provider.submits.length, 1)
    }))

  test('a store that is away for a moment costs neither the answer nor the charge', async () => {
    let failures = 0
    const isAway = () => ++failures % 4 !== 0
    const wrapCalls = (calls: CallStore): CallStore => ({
      ...calls,
      finish: (...end) => (isAway() ? Promise.reject(new Error('away')) : calls.finish(...end)),
      keepProgress: (...kept) => (isAway() ? Promise.reject(new Error('away')) : calls.keepProgress(...kept)),
    })
    await withNodes({ wrapCalls }, async ({ a, b, provider, store }) => {
      provider.answer(accepted({ task: 1 }))
      provider.pollAnswer(done({ made: 'once' }))
      assert.deepEqual(resultOf(await a.run('fake/polled', {}, 'k')), { made: 'once' })
      assert.deepEqual(resultOf(await b.run('fake/polled', {}, 'k')), { made: 'once' })
      assert.equal(await available(store), DOLLAR - COST)
      assert.equal(provider.submits.length, 1)
    })
  })

  test('a node that could not reach the store does not take calls of others away from them', async () => {
    let isAway = true
    const wrapCalls = (calls: CallStore): CallStore => ({
      ...calls,
      takeLapsed: (options) => (isAway ? Promise.reject(new Error('away')) : calls.takeLapsed(options)),
    })
    await withNodes({ wrapCalls }, async ({ a, b, provider, clock }) => {
      provider.answer(accepted({ task: 1 }))
      const waiting = b.run('fake/polled', {}, 'k')
      await waitUntil(() => provider.polls.length > 0)
      clock.advance(LAPSE_MS)
      await assert.rejects(a.look(), /away/)
      isAway = false
      await a.look()
      assert.equal(a.actions.live.size, 0)
      // The other node could not renew for as long as the store was away, and does so now.
      await b.renew()
      clock.advance(15_000)
      await a.look()
      assert.equal(a.actions.live.size, 0)
      provider.pollAnswer(done({ made: 'once' }))
      assert.equal((await waiting).isReplay, false)
    })
  })

  test('a request whose model is gone waits, and is taken once per look', async () => {
    let takes = 0
    const wrapRequests = (requests: RequestStore): RequestStore => ({
      ...requests,
      take(...taking) {
        takes += 1
        return requests.take(...taking)
      },
    })
    await withNodes({ wrapRequests }, async ({ a, provider, store }) => {
      const id = await a.submit('fake/direct', {})
      a.offer([])
      a.actions.queue.start()
      await waitUntil(() => takes > 0)
      // The submit woke the loop, so that it may look a second time.
      for (let reads = 0; reads < 50; reads++) await stateOf(store, id)
      assert.ok(takes <= 2, `it was taken ${takes} times`)
      assert.equal(await stateOf(store, id), 'waiting')
      a.offer(MODELS)
      await a.submit('fake/free', {})
      await waitUntil(() => provider.submits.length === 2)
    })
  })

  test('abandoned calls are looked for only when a glance shows some, and what is queued is taken whatever it showed', async () => {
    let looks = 0
    const wrapCalls = (calls: CallStore): CallStore => ({
      ...calls,
      takeLapsed(options) {
        looks += 1
        return calls.takeLapsed(options)
      },
    })
    let glance: { hasWaitingCalls: boolean; hasLapsedCalls: boolean } | null = null
    await withNodes({ wrapCalls, glance: () => glance }, async ({ a, b, provider }) => {
      glance = { hasWaitingCalls: false, hasLapsedCalls: false }
      await a.look()
      assert.equal(looks, 0)
      glance = { hasWaitingCalls: false, hasLapsedCalls: true }
      await a.look()
      glance = null
      await a.look()
      assert.equal(looks, 2)
      glance = { hasWaitingCalls: false, hasLapsedCalls: false }
      a.actions.queue.start()
      await a.submit('fake/free', {})
      await waitUntil(() => provider.submits.length === 1)
      await b.submit('fake/free', {})
      b.actions.queue.start()
      await waitUntil(() => provider.submits.length === 2)
    })
  })
}
