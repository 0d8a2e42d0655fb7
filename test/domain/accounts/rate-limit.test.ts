import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  createRateLimiter,
  type LimitStore,
  type RateLimiter,
  type RequestRate,
} from '../../../src/domain/credits/rate-limit.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { openAccountRig } from './account-rig.ts'

async function rigFor(rate: RequestRate | null) {
  const rig = await openAccountRig()
  let calls = 0
  const store: Pick<LimitStore, 'takeRequests'> = {
    takeRequests(...request) {
      calls++
      return rig.store.limits.takeRequests(...request)
    },
  }
  const open = () => createRateLimiter({ store, rateOf: () => rate, clock: rig.clock })
  return { ...rig, open, calls: () => calls }
}

/** null when the request may go on, else after how many seconds to try again. */
async function take(limiter: RateLimiter, accountId = 'acme'): Promise<number | null> {
  try {
    await limiter.take(accountId)
    return null
  } catch (error) {
    assert.ok(error instanceof ServiceError && error.refusal === 'rate_limited')
    return error.retryAfterSeconds
  }
}

async function takeMany(limiter: RateLimiter, count: number): Promise<number> {
  const taken = await Promise.all(Array.from({ length: count }, () => take(limiter)))
  return taken.filter((wait) => wait === null).length
}

describe('the rate of an account', () => {
  test('lets the burst through, then refuses with whole seconds, then refills evenly', async () => {
    await using rig = await rigFor({ perMinute: 20, burst: 4 })
    const limiter = rig.open()
    for (let count = 0; count < 4; count++) assert.equal(await take(limiter), null)
    assert.equal(await take(limiter), 3)
    rig.clock.advance(2999)
    assert.equal(await take(limiter), 1)
    rig.clock.advance(1)
    assert.equal(await take(limiter), null)
    assert.equal(await take(limiter), 3)
    rig.clock.advance(3_600_000)
    assert.equal(await takeMany(limiter, 50), 4)
  })

  test('is the same for all that come at once, and holds over processes and restarts', async () => {
    await using rig = await rigFor({ perMinute: 60, burst: 10 })
    const [first, second] = [rig.open(), rig.open()]
    const [one, two] = await Promise.all([takeMany(first, 30), takeMany(second, 30)])
    assert.equal(one + two, 10)
    assert.equal(await takeMany(rig.open(), 5), 0)
  })

  test('costs the store one write for many requests, and none for those that are refused', async () => {
    await using rig = await rigFor({ perMinute: 60_000, burst: 1000 })
    const limiter = rig.open()
    assert.equal(await takeMany(limiter, 50), 50)
    assert.equal(rig.calls(), 1)
    let now = 0
    while (limiter.take('acme') === undefined) now++
    assert.equal(now, 100, 'a tenth of a second of the rate is taken along')
    assert.equal(rig.calls(), 2, 'the next share is asked for before this one is used up')
    await using slow = await rigFor({ perMinute: 60, burst: 1 })
    const slowLimiter = slow.open()
    await takeMany(slowLimiter, 3)
    const before = slow.calls()
    assert.equal(await takeMany(slowLimiter, 100), 0)
    assert.equal(slow.calls(), before)
  })

  test('never gives more than burst and rate allow, whatever the pace', async () => {
    await using rig = await rigFor({ perMinute: 6000, burst: 50 })
    const limiters = [rig.open(), rig.open()]
    let passed = 0
    for (let round = 0; round < 20; round++) {
      for (const limiter of limiters) passed += await takeMany(limiter, 20)
      rig.clock.advance(100)
    }
    assert.ok(passed <= 50 + 200 + 2 * 20, `${passed} in two seconds`)
    assert.ok(passed >= 50 + 6000 / 60, `${passed} in two seconds`)
  })

  test('goes on at once while the next share is on its way', async () => {
    await using rig = await rigFor({ perMinute: 60_000, burst: 1000 })
    const limiter = rig.open()
    await take(limiter)
    for (let round = 0; round < 10; round++) {
      for (let count = 0; count < 60; count++) assert.equal(limiter.take('acme'), undefined)
      // Behind the share that was asked for ahead, on the same way.
      await rig.store.limits.takeRequests('other', { perMinute: 1, burst: 1 }, 1, rig.clock.now())
    }
  })

  test('what was taken along and not used in a second is dropped', async () => {
    await using rig = await rigFor({ perMinute: 60_000, burst: 1000 })
    const limiter = rig.open()
    await take(limiter)
    assert.equal(limiter.take('acme'), undefined)
    rig.clock.advance(1000)
    assert.ok(limiter.take('acme') instanceof Promise)
  })

  test('an account without a rate costs nothing', async () => {
    await using rig = await rigFor(null)
    const limiter = rig.open()
    for (let count = 0; count < 1000; count++) assert.equal(limiter.take('acme'), undefined)
    assert.equal(rig.calls(), 0)
  })

  test('a store that fails refuses nobody for good', async () => {
    let fails = true
    const clock = createFixedClock()
    const limiter = createRateLimiter({
      store: {
        async takeRequests() {
          if (fails) throw new Error('no disk')
          return { granted: 1, nextAt: clock.now() }
        },
      },
      rateOf: () => ({ perMinute: 60, burst: 1 }),
      clock,
    })
    await assert.rejects(async () => limiter.take('acme'), /no disk/)
    fails = false
    assert.equal(await take(limiter), null)
  })
})
