/**
 * What the callers of a service see when several of its nodes drive model calls over one store: whichever node they ask, and
 * whichever node is lost, a call is sent once, charged once, and found again by its key.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CallStore } from '../../../src/domain/models/calls/call-store.ts'
import type { RunAnswer } from '../../../src/domain/models/calls/run-call.ts'
import { RouterError } from '../../../src/domain/models/router-error.ts'
import { accepted, done, gate } from '../../support/providers/fake-provider.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { testLeavingCallers } from './leaving-callers.ts'
import { testQueuedRequests } from './queued-requests.ts'
import {
  available,
  COST,
  createWithNodes,
  DOLLAR,
  LAPSE_MS,
  MODELS,
  type NodesUnderTest,
  resultOf,
} from './router-nodes-rig.ts'

const DAY_MS = 24 * 60 * 60 * 1000

export function testRouterNodes(under: NodesUnderTest): void {
  const withNodes = createWithNodes(under)
  testLeavingCallers(withNodes)

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

  test('a generation whose model has left the catalogue is kept for a day, and then given up', () =>
    withNodes({}, async ({ a, b, provider, clock, store }) => {
      provider.answer(accepted({ task: 7 }))
      const waiting = a.run('fake/polled', {}, 'k')
      await waitUntil(() => provider.polls.length > 0)
      const refused = assert.rejects(waiting, { refusal: 'unavailable' })
      await a.actions.close(0)
      await refused
      b.offer([])
      await b.look()
      clock.advance(DAY_MS - 1)
      await b.renew()
      await b.look()
      b.offer([])
      assert.equal(await available(store), DOLLAR - COST)
      clock.advance(1)
      await b.look()
      assert.equal(await available(store), DOLLAR)
      b.offer(MODELS)
      assert.equal(b.actions.live.size, 0)
    }))

  test('a call whose node was lost and whose model has left the catalogue may be at its provider: its key is not free', () =>
    withNodes({ deduplicates: true }, async ({ a, b, provider, clock, store }) => {
      const held = gate(done({ made: 'unseen' }))
      provider.answer(held.answer)
      const waiting = a.run('fake/direct', {}, 'k')
      await waitUntil(() => provider.submits.length === 1)
      clock.advance(LAPSE_MS)
      b.offer([])
      await b.look()
      b.offer(MODELS)
      provider.answer(done({ made: 'once' }))
      await b.run('fake/direct', {}, 'k')
      // The same key of the same call: its provider makes no second generation of it.
      assert.deepEqual(
        provider.submits.map(({ submitKey, isRepeat }) => [submitKey === provider.submits[0]?.submitKey, isRepeat]),
        [
          [true, false],
          [true, true],
        ],
      )
      held.open()
      await waiting
      assert.equal(await available(store), DOLLAR - COST)
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

  testQueuedRequests(withNodes)
}
