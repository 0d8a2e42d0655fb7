import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readProviderSettings } from './provider-settings.ts'

test('a provider that is not named has no key and its shipped rules', () => {
  const { of, mediaHosts, allowsPrivateNetwork } = readProviderSettings(null)
  assert.deepEqual(
    { ...of('bfl'), accountKeys: [] },
    { key: null, baseUrl: null, concurrency: null, values: {}, accountKeys: [] },
  )
  assert.deepEqual([mediaHosts, allowsPrivateNetwork], [[], false])
  assert.equal(of('constructor').key, null)
})

test('everything that can be set is read', () => {
  const settings = readProviderSettings(
    JSON.stringify({
      veo: {
        key: 'k',
        base_url: 'http://gateway:8080/v1',
        concurrency: 3,
        settings: { project: 'p' },
        accounts: { a1: 'own' },
      },
      '*': { media_hosts: ['.r2.cloudflarestorage.com'], allow_private_network: true },
    }),
  )
  const veo = settings.of('veo')
  assert.deepEqual(
    [veo.key, veo.baseUrl, veo.concurrency, veo.values],
    ['k', 'http://gateway:8080/v1', 3, { project: 'p' }],
  )
  assert.equal(veo.accountKeys.get('a1'), 'own')
  assert.deepEqual([settings.mediaHosts, settings.allowsPrivateNetwork], [['.r2.cloudflarestorage.com'], true])
})

const WRONG = [
  '{',
  '[]',
  '{"bfl":"geheim"}',
  '{"bfl":{"keys":"geheim"}}',
  '{"bfl":{"key":"geheim wort"}}',
  '{"bfl":{"base_url":"ftp://geheim"}}',
  '{"*":{"media_hosts":["https://geheim"]}}',
]

for (const text of WRONG) {
  test(`${text} is refused without repeating a value`, () => {
    assert.throws(
      () => readProviderSettings(text),
      (error: Error) => {
        assert.match(error.message, /docs\/adapters\.md/)
        assert.doesNotMatch(error.message, /geheim/)
        return true
      },
    )
  })
}
