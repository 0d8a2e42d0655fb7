import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { createPoolHooks, type PoolEvent, type PoolHooksDeps } from '../../../src/domain/deployments/pool-hooks.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'

const LOAD = { pool: 'demo', queued: 2, running: 0 }

function createRig(call: PoolHooksDeps['call'], options: Partial<PoolHooksDeps> = {}) {
  const clock = createFixedClock()
  const hooks = createPoolHooks({ call, clock, log: silentLog, firstPauseMs: 1, ...options })
  return { clock, hooks }
}

/** Lets everything that only waits for promises run. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('a want is told once, again after a while if it lasts, and anew after it was served', async () => {
  const told: PoolEvent[] = []
  const { clock, hooks } = createRig(async (event) => void told.push(event))
  hooks.wanted(LOAD)
  await turn()
  hooks.wanted(LOAD)
  await turn()
  assert.deepEqual(told, [{ event: 'workers_wanted', ...LOAD, at: clock.now(), signal: null }])
  clock.advance(30_000)
  hooks.wanted(LOAD)
  await turn()
  assert.equal(told.length, 2)
  hooks.served('demo')
  hooks.wanted(LOAD)
  await turn()
  assert.equal(told.length, 3)
  await hooks[Symbol.asyncDispose]()
})

test('idleness is told once per idle time', async () => {
  const told: string[] = []
  const { hooks } = createRig(async ({ event }) => void told.push(event))
  for (const tell of [hooks.idle, hooks.idle, hooks.wanted, hooks.idle]) {
    tell(LOAD)
    await turn()
  }
  assert.deepEqual(told, ['workers_idle', 'workers_wanted', 'workers_idle'])
  await hooks[Symbol.asyncDispose]()
})

test('a call that fails is tried again, a bounded number of times', async () => {
  let attempts = 0
  const done = Promise.withResolvers<void>()
  const { hooks } = createRig(async () => {
    attempts++
    if (attempts === 4) done.resolve()
    throw new Error('not now')
  })
  hooks.wanted(LOAD)
  await done.promise
  await turn()
  assert.equal(attempts, 4)
  await hooks[Symbol.asyncDispose]()
  assert.equal(attempts, 4)
})

test('a call that never ends is cut, and does not hold up the end', async () => {
  const cut = Promise.withResolvers<void>()
  const { hooks } = createRig(
    (_event, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          cut.resolve()
          reject(new Error('cut'))
        })
      }),
    { callTimeoutMs: 60_000 },
  )
  hooks.wanted(LOAD)
  await turn()
  await hooks[Symbol.asyncDispose]()
  await cut.promise
})

test('while one call is under way the same pool is not told a second time', async () => {
  const release = Promise.withResolvers<void>()
  const pools: string[] = []
  const { hooks } = createRig(async ({ pool }) => {
    pools.push(pool)
    await release.promise
  })
  hooks.wanted(LOAD)
  hooks.idle(LOAD)
  hooks.wanted({ ...LOAD, pool: 'other' })
  await turn()
  assert.deepEqual(pools, ['demo', 'other'])
  release.resolve()
  await hooks[Symbol.asyncDispose]()
})
