import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSealer } from '../../../../lib/sealer.ts'
import { ServiceError } from '../../errors.ts'
import { createExtraDataKeeper } from './extra-data-keeper.ts'

const UNTIL = new Date('2026-01-08T00:00:00.000Z')
const DATA = { api_key_service_org: 'key', seed: 18_446_744_073_709_551_615n }

function isFull(error: unknown): boolean {
  return error instanceof ServiceError && error.refusal === 'queue_full' && (error.retryAfterSeconds ?? 0) >= 1
}

test('without a sealer the data waits in memory until it is forgotten', () => {
  const keeper = createExtraDataKeeper({ sealer: null })
  assert.equal(keeper.hold('a', DATA, UNTIL), null)
  assert.deepEqual(keeper.take('a', null), DATA)
  assert.deepEqual(keeper.take('a', null), DATA)
  keeper.forget('a')
  keeper.forget('a')
  assert.equal(keeper.take('a', null), null)
})

test('with a sealer it waits sealed, for every attempt anew, and never in memory', () => {
  const sealer = createSealer(Buffer.alloc(32, 7))
  const keeper = createExtraDataKeeper({ sealer })
  const sealed = keeper.hold('a', DATA, UNTIL)
  assert.ok(sealed !== null && !Buffer.from(sealed).includes('key'))
  assert.equal(keeper.count(), 0)
  const restarted = createExtraDataKeeper({ sealer })
  assert.deepEqual(restarted.take('a', sealed), DATA)
  assert.deepEqual(restarted.take('a', sealed), DATA)
  assert.equal(restarted.count(), 0)
  assert.equal(restarted.take('b', sealed), null, 'sealed for another job')
})

test('memory is bounded in count and in bytes, and forgetting frees it', () => {
  const few = createExtraDataKeeper({ sealer: null, maxCount: 2 })
  few.hold('a', {}, UNTIL)
  few.hold('b', {}, UNTIL)
  assert.throws(() => few.hold('c', {}, UNTIL), isFull)
  few.forget('a')
  few.hold('c', {}, UNTIL)
  const small = createExtraDataKeeper({ sealer: null, maxBytes: 50 })
  small.hold('a', { a: 'x'.repeat(30) }, UNTIL)
  assert.throws(() => small.hold('b', { a: 'x'.repeat(30) }, UNTIL), isFull)
  small.forget('a')
  small.hold('b', { a: 'x'.repeat(30) }, UNTIL)
})

test('what outlived its job is swept', () => {
  const keeper = createExtraDataKeeper({ sealer: null })
  keeper.hold('a', DATA, UNTIL)
  assert.equal(keeper.sweep(new Date(UNTIL.getTime() - 1)), 0)
  assert.equal(keeper.sweep(UNTIL), 1)
  assert.equal(keeper.count(), 0)
})
