/** Secrets in the configuration are read, and never printed. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { ENV } from '../env.ts'
import { flagOf } from '../settings/settings.ts'
import { inFolder, load, refusal } from './config-rig.ts'

describe('signing keys', () => {
  const [one, two] = [Buffer.alloc(32, 1).toString('base64'), '02'.repeat(16)]

  test('may be several, with or without a name, and are never printed', () => {
    const loaded = load({ env: { [ENV.signingKeys]: `june:${one}, ${two}` } })
    const keys = loaded.secrets.signingKeys.map(({ name, secret }) => [name, secret.reveal().length])
    assert.deepEqual(keys, [
      ['june', 32],
      [null, 16],
    ])
    assert.ok(!inspect(loaded, { depth: 9 }).includes(one))
  })

  test('that are short, malformed or share a name are refused, and the error does not repeat them', () => {
    for (const bad of ['c2hvcnQ=', `a:${one},a:${two}`, `${one},`, 'a b c d e f g h i j k l m']) {
      const message = refusal({ env: { [ENV.signingKeys]: bad } })
      assert.match(message, /^signingKeys \(from ATELIER_SIGNING_KEYS\)/)
      assert.ok(!message.includes(one) && !message.includes('c2hvcnQ='))
    }
  })
})

describe('secrets', () => {
  const token = 'tok-very-secret-1234'
  const key = Buffer.alloc(32, 7).toString('base64')

  test('are revealed only on request', () => {
    const { secrets } = load({ env: { [ENV.token]: token, [ENV.secretKey]: key } })
    assert.equal(secrets.token?.reveal(), token)
    assert.deepEqual(secrets.secretKey?.reveal(), new Uint8Array(32).fill(7))
    assert.deepEqual(
      load({ env: { [ENV.secretKey]: '07'.repeat(32) } }).secrets.secretKey?.reveal(),
      new Uint8Array(32).fill(7),
    )
  })

  test('appear in no printed form of the loaded configuration', () => {
    const loaded = load({ env: { [ENV.token]: token, [ENV.secretKey]: key } })
    const texts = [
      JSON.stringify(loaded),
      inspect(loaded, { depth: 9, showHidden: true }),
      `${loaded.secrets.token}`,
      String(loaded.secrets.secretKey),
    ]
    for (const text of texts) {
      assert.ok(!text.includes(token), text)
      assert.ok(!text.includes(key), text)
      assert.ok(!/\b7, 7, 7\b/.test(text), text)
    }
  })

  test('appear in no error, not even when they are malformed', () => {
    for (const bad of ['hush hush', '', `${'x'.repeat(2000)}`, 'umlaut-ü']) {
      const message = refusal({ flags: { token: bad } })
      assert.match(message, /^token \(from --token\)/)
      assert.ok(bad === '' || !message.includes(bad.slice(0, 20)))
    }
    const message = refusal({ env: { [ENV.secretKey]: 'c2hvcnQ=' } })
    assert.match(message, /^secretKey \(from ATELIER_SECRET_KEY\) is not 32 bytes/)
    assert.ok(!message.includes('c2hvcnQ'))
    assert.ok(!refusal({ cwd: inFolder({ token: ['a', 5] }) }).includes('"a"'))
  })

  test('the secret key has no flag', () => assert.equal(flagOf('secretKey'), null))
})
