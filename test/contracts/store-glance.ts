/** What every store shows at a glance of what processes would otherwise look for again and again. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { newCall } from './calls/call-store.ts'
import { newEngineStatus } from './engine-registry.ts'
import { at, START, type StoreOpener, type WholeStoreUnderTest, withStore } from './store-under-test.ts'

const NO_LIMITS = { maxCalls: null, maxCostlyCalls: null, ceilingMicros: null }
const LONG_AGO = new Date(1)
const NEVER = new Date(8.64e14)

export function testGlance(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('a glance at a store', () => {
    test('shows every change of what is said of engines, and not that they are still held', async () => {
      await withStore(opener, async ({ engines, glance }) => {
        const status = newEngineStatus()
        const publish = (fields: Partial<typeof status>, nowMs: number, nodeId = 'one') =>
          engines.publish({
            ...{ nodeId, now: at(nowMs), until: at(nowMs + 30_000), takesLapsed: true },
            engines: [{ isShared: true, catalogHash: null, status: { ...status, ...fields } }],
          })
        const sign = async () => (await glance()).engines
        const signs = [await sign()]
        const changes: (() => Promise<unknown>)[] = [
          () => publish({}, 0),
          () => publish({ state: 'lost' }, 1),
          () => publish({ state: 'lost', running: 0 }, 2),
          () => engines.setWill(status.id, 'cordoned'),
          () => engines.setWill(status.id, 'cordoned'),
          () => publish({ state: 'lost', running: 0 }, 40_000, 'another'),
        ]
        for (const change of changes) {
          await change()
          signs.push(await sign())
        }
        assert.equal(new Set(signs).size, signs.length)
        await publish({ state: 'lost', running: 0 }, 45_000, 'another')
        assert.equal(await sign(), signs.at(-1))
      })
    })

    test('shows whether calls of models wait, and whether any of those that run has nobody who holds it', async () => {
      await withStore(opener, async ({ calls, requests, glance }) => {
        const seen = async () => {
          const { hasWaitingCalls, hasLapsedCalls } = await glance()
          return { hasWaitingCalls, hasLapsedCalls }
        }
        const accountId = randomUUID()
        assert.deepEqual(await seen(), { hasWaitingCalls: false, hasLapsedCalls: false })
        const body = { kind: 'inline' as const, bytes: new Uint8Array([123, 125]) }
        const request = { ...newCall(accountId, { holdMicros: null }), body, bodyBytes: 2 }
        await requests.enqueue(request, { maxWaiting: 10, isValid: true })
        assert.deepEqual(await seen(), { hasWaitingCalls: true, hasLapsedCalls: false })
        const taken = await requests.take(accountId, NO_LIMITS, { now: START, lease: { owner: 'one', until: NEVER } })
        assert.deepEqual(await seen(), { hasWaitingCalls: false, hasLapsedCalls: false })
        await calls.release([taken?.ref ?? assert.fail('it waited')])
        assert.deepEqual(await seen(), { hasWaitingCalls: false, hasLapsedCalls: true })
      })
      await withStore(opener, async ({ calls, glance }) => {
        const call = newCall(randomUUID(), { holdMicros: null })
        await calls.admit(call, NO_LIMITS, { isValid: true, lease: { owner: 'one', until: LONG_AGO } })
        assert.equal((await glance()).hasLapsedCalls, true)
      })
    })
  })
}
