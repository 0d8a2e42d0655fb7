/**
 * A caller who leaves at any point of its call, from before its admission to after its end: the call was never admitted, or it goes
 * on. The next request with its key gets the answer, on the same node or on another, and the provider is asked and paid once.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CallStore } from '../../../src/domain/models/calls/call-store.ts'
import { accepted, done } from '../../support/providers/fake-provider.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { available, COST, DOLLAR, resultOf, type WithNodes } from './router-nodes-rig.ts'

/** Stops before and after every operation of the store. */
function stopping(calls: CallStore, at: (name: string) => Promise<void>): CallStore {
  return new Proxy(calls, {
    get(target, name: keyof CallStore & string) {
      const operation = target[name] as (...given: unknown[]) => Promise<unknown>
      return async (...given: unknown[]) => {
        await at(`before ${name}`)
        const result = await operation.apply(target, given)
        await at(`after ${name}`)
        return result
      }
    },
  })
}

export function testLeavingCallers(withNodes: WithNodes): void {
  for (const model of ['fake/direct', 'fake/polled']) {
    for (const on of ['a', 'b'] as const) {
      for (const when of ['at once', 'later'] as const) {
        test(`whoever leaves a call of ${model} at any point: its key, sent ${when} to ${on}, gets the answer of the only call`, async () => {
          let at: (name: string) => Promise<void> = async () => {}
          const wrapCalls = (calls: CallStore) => stopping(calls, (name) => at(name))
          await withNodes({ wrapCalls }, async (nodes) => {
            const { a, provider, store } = nodes
            const cuts: string[] = []
            for (let cut = 0; ; cut++) {
              const key = `key ${cut}`
              const left = new AbortController()
              const answered = Promise.withResolvers<void>()
              const answer = done({ made: key })
              const askedBefore = provider.submits.length
              provider.answer(
                model === 'fake/polled' ? accepted({ key }) : async () => answered.promise.then(() => answer),
              )
              provider.pollAnswer(async () => answered.promise.then(() => answer))
              let retry: Promise<unknown> | null = null
              const sendAgain = () => nodes[on].run(model, { x: 1 }, key).then(resultOf)
              let passed = 0
              let isAdmitted = false
              at = async (name) => {
                if (retry !== null && name === 'after admit') isAdmitted = true
                if (passed++ !== cut) return
                cuts.push(name)
                left.abort()
                if (when === 'later') return
                retry = sendAgain()
                // The store of the other node is not watched.
                if (on === 'a') await waitUntil(() => isAdmitted)
              }
              const first = a.run(model, { x: 1 }, key, left.signal).catch((error: unknown) => error)
              let isOver = false
              void first.then(() => (isOver = true))
              const isAsked = () => provider.submits.length > askedBefore
              await waitUntil(() => left.signal.aborted || isAsked())
              if (!left.signal.aborted) answered.resolve()
              await waitUntil(() => left.signal.aborted || isOver)
              if (!left.signal.aborted) break
              retry ??= sendAgain()
              // Nothing ends before somebody may wait for it again, unless it has ended already.
              await waitUntil(isAsked)
              answered.resolve()
              assert.deepEqual(await retry, { made: key }, `left ${cuts.at(-1)}`)
              await first
              await waitUntil(() => a.actions.live.size === 0)
              assert.equal(provider.submits.length, askedBefore + 1, `left ${cuts.at(-1)}`)
              assert.equal(await available(store), DOLLAR - COST * (cut + 1), `left ${cuts.at(-1)}`)
            }
            assert.deepEqual(cuts.slice(0, 2), ['before admit', 'after admit'])
            assert.equal(cuts.at(-1), 'after finish')
          })
        })
      }
    }
  }

  test('whoever has left before the admission has called nothing', () =>
    withNodes({}, async ({ a, provider, store }) => {
      await assert.rejects(a.run('fake/direct', { x: 1 }, 'k', AbortSignal.abort()), /disconnected/)
      assert.deepEqual([provider.submits.length, await available(store)], [0, DOLLAR])
      assert.deepEqual(resultOf(await a.run('fake/direct', { x: 1 }, 'k')), { ok: true })
    }))
}
