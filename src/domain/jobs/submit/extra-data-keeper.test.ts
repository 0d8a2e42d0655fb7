import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSealer } from '../../../../lib/sealer.ts'
import { finishNow, type Work } from '../../../../lib/waiting/turns.ts'
import { newKeyText } from '../../accounts/keys/api-key.ts'
import { ServiceError } from '../../errors.ts'
import {
  blankCredentialSteps,
  createExtraDataKeeper,
  isCredentialName,
  splitExtraDataSteps,
} from './extra-data-keeper.ts'

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

type Blank = typeof blankCredentialSteps
const splitExtraData = (data: Parameters<typeof splitExtraDataSteps>[0]) => finishNow(splitExtraDataSteps(data))
const blankCredentials = (...given: Parameters<Blank>) => finishNow(blankCredentialSteps(...given))

test('credentials are separated from notes, and an unknown field is a credential', () => {
  const data = {
    api_key_comfy_org: 'a-secret',
    something_new: 1,
    extra_pnginfo: { workflow: { seed: 2n ** 64n - 1n } },
  }
  assert.deepEqual(splitExtraData(data), {
    credentials: { api_key_comfy_org: 'a-secret', something_new: 1 },
    notes: { extra_pnginfo: { workflow: { seed: 18_446_744_073_709_551_615n } } },
  })
  for (const empty of [null, {}]) assert.deepEqual(splitExtraData(empty), { credentials: null, notes: null })
})

test('names that leave no doubt are those of credentials, and no others', () => {
  const telling =
    'apiKey api-key API_KEY_COMFY_ORG x-api-key hfToken accessToken token password Authorization client_secret'
  const innocent = 'key keyframes monkey keybinding tokens max_tokens token_normalization secretary bypass passes seed'
  for (const name of telling.split(' ')) assert.ok(isCredentialName(name), name)
  for (const name of innocent.split(' ')) assert.ok(!isCredentialName(name), name)
})

test('what holds no credential stays the very same value', () => {
  const value = { a: [1, 'text', { password: '', token: null, secret: false, cookies: [] }], atl_: 'no key' }
  assert.deepEqual(blankCredentials(value, { known: ['short', 'secret-value'] }), value)
  const plain = { a: [{ b: 'text' }] }
  assert.equal(blankCredentials(plain, { known: [] }), plain)
})

test('credentials are blanked by name, by value and by the form of our own keys, names of members included', () => {
  const key = newKeyText('abcdefghijkl')
  const value = JSON.parse(
    `{"__proto__":{"password":12345},"x":["hidden-value!",{"hidden-value":1}],"note":"use ${key}.","credentials":{"user":"u"}}`,
  )
  assert.equal(
    JSON.stringify(blankCredentials(value, { known: ['hidden-value', 5, null] })),
    '{"__proto__":{"password":"[REDACTED]"},"x":["[REDACTED]!",{"[REDACTED]":1}],"note":"use [REDACTED].","credentials":"[REDACTED]"}',
  )
})

test('a large workflow that an editor sends along is looked through in many steps, and so is a credential in it blanked', () => {
  const plain = Array.from({ length: 90_000 }, (_, id) => ({ id, pos: [1, 2] }))
  const inside = { extra_pnginfo: { workflow: { nodes: [...plain, { api_key: 'x' }] } } }
  const clean = countSteps(splitExtraDataSteps({ extra_pnginfo: { workflow: { nodes: plain } } }))
  assert.ok(clean.steps > 50, `${clean.steps} steps`)
  // The search comes upon the last member first: nearly all of the steps are those of the copy.
  const { steps, result } = countSteps(splitExtraDataSteps(inside))
  assert.ok(steps > 50, `${steps} steps`)
  const nodes = [...plain, { api_key: '[REDACTED]' }]
  assert.deepEqual(result, { credentials: null, notes: { extra_pnginfo: { workflow: { nodes } } } })
})

function countSteps<Result>(work: Work<Result>): { readonly steps: number; readonly result: Result } {
  for (let steps = 1; ; steps++) {
    const { done, value } = work.next()
    if (done === true) return { steps, result: value }
  }
}
