/** How every store of request rates behaves. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { at, type StoreOpener, shareStore } from '../store-under-test.ts'

export function testLimitStore(opener: StoreOpener): void {
  describe('request rates', () => {
    const store = shareStore(opener)
    const rate = { perMinute: 60, burst: 5 }
    const take = (accountId: string, count: number, ms: number) =>
      store().limits.takeRequests(accountId, rate, count, at(ms))

    test('give the burst at once, then one by one, and say when the next comes', async () => {
      const accountId = randomUUID()
      assert.equal((await take(accountId, 3, 0)).granted, 3)
      assert.deepEqual(await take(accountId, 3, 0), { granted: 2, nextAt: at(1000) })
      assert.deepEqual(await take(accountId, 1, 999), { granted: 0, nextAt: at(1000) })
      assert.deepEqual(await take(accountId, 2, 1000), { granted: 1, nextAt: at(2000) })
      assert.equal((await take(accountId, 9, 60_000)).granted, 5, 'a pause saves no more than the burst')
    })

    test('accounts do not share them, and a clock that goes back refuses nobody for long', async () => {
      const [first, second] = [randomUUID(), randomUUID()]
      assert.equal((await take(first, 5, 1_000_000)).granted, 5)
      assert.equal((await take(second, 5, 1_000_000)).granted, 5)
      const back = await take(first, 1, 0)
      assert.deepEqual(back, { granted: 0, nextAt: at(1000) })
      assert.equal((await take(first, 1, 1000)).granted, 1)
    })

    test('many at once never get more than there is', async () => {
      const accountId = randomUUID()
      const grants = await Promise.all(Array.from({ length: 50 }, () => take(accountId, 2, 0)))
      assert.equal(
        grants.reduce((sum, { granted }) => sum + granted, 0),
        5,
      )
    })
  })

  describe('requests in a window', () => {
    const store = shareStore(opener)
    const rate = { allowance: 5, windowMs: 10_000 }
    const take = (accountId: string, count: number, ms: number, of = rate) =>
      store().limits.takeWindow(accountId, of, count, at(ms))

    test('begins with the first request, ends as a whole, and then the allowance is there again', async () => {
      const accountId = randomUUID()
      assert.deepEqual(await take(accountId, 3, 0), { granted: 3, endsAt: at(10_000) })
      assert.deepEqual(await take(accountId, 3, 4000), { granted: 2, endsAt: at(10_000) })
      assert.deepEqual(await take(accountId, 1, 9999), { granted: 0, endsAt: at(10_000) })
      assert.deepEqual(await take(accountId, 1, 10_000), { granted: 1, endsAt: at(20_000) })
      assert.deepEqual(await take(accountId, 9, 50_000), { granted: 5, endsAt: at(60_000) })
    })

    test("is each account's own, and a clock that goes back or a shorter rule refuses nobody for long", async () => {
      const [first, second] = [randomUUID(), randomUUID()]
      assert.equal((await take(first, 5, 1_000_000)).granted, 5)
      assert.equal((await take(second, 5, 1_000_000)).granted, 5)
      assert.deepEqual(await take(first, 1, 0), { granted: 1, endsAt: at(10_000) })
      assert.deepEqual(await take(second, 1, 1_000_000, { allowance: 2, windowMs: 1000 }), {
        granted: 1,
        endsAt: at(1_001_000),
      })
    })

    test('an allowance that was made smaller takes nothing back and gives nothing more', async () => {
      const accountId = randomUUID()
      await take(accountId, 4, 0)
      assert.equal((await take(accountId, 1, 1, { allowance: 2, windowMs: 10_000 })).granted, 0)
      assert.equal((await take(accountId, 9, 2)).granted, 1)
    })

    test('many at once never get more than there is', async () => {
      const accountId = randomUUID()
      const grants = await Promise.all(Array.from({ length: 50 }, () => take(accountId, 2, 0)))
      assert.equal(
        grants.reduce((sum, { granted }) => sum + granted, 0),
        5,
      )
    })
  })
}
