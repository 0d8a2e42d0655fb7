import assert from 'node:assert/strict'
import { test } from 'node:test'
import { finishNow, type Work } from '../../../../lib/waiting/turns.ts'
import { newKeyText } from '../../accounts/keys/api-key.ts'
import { blankCredentialSteps, isCredentialName, splitExtraDataSteps } from './split-extra-data.ts'

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
