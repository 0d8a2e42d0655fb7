/** Queued requests over several nodes: any of them runs one, none runs it twice, and what a lost node had is taken up by another. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CallStore } from '../../../src/domain/models/calls/call-store.ts'
import type { RequestStore } from '../../../src/domain/models/queue/request-store.ts'
import { ACCOUNT } from '../../support/app/router-nodes.ts'
import type { FixedClock } from '../../support/fixed-clock.ts'
import { accepted, done } from '../../support/providers/fake-provider.ts'
import { waitUntil } from '../../support/wait-until.ts'
import {
  available,
  COST,
  DOLLAR,
  LAPSE_MS,
  MODELS,
  resultOf,
  type SharedStore,
  type WithNodes,
} from './router-nodes-rig.ts'

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

export function testQueuedRequests(withNodes: WithNodes): void {
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
      await waitUntil(async () => (await stateOf(store, id)) === 'waiting')
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
