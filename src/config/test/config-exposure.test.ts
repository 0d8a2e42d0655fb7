/** Who may reach the service, and for whom: addresses beyond this machine, and the kinds that many accounts share. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { cwd, inFolder, load, refusal } from './config-rig.ts'

describe('listening beyond this machine', () => {
  for (const host of ['', '0.0.0.0', '::', '[::]', '192.168.1.5', 'example.com', '127.1']) {
    test(`${JSON.stringify(host)} needs a token`, () => {
      assert.match(refusal({ flags: { host } }), /^host = .*no token.*ATELIER_TOKEN.*--allow-insecure-bind$/)
      assert.equal(load({ flags: { host, token: 'x' } }).config.http.isLoopback, false)
      const { warnings } = load({ flags: { host, allowInsecureBind: true } })
      assert.match(warnings.join(), /without a token/)
    })
  }

  for (const host of ['127.0.0.1', '127.9.9.9', '::1', '[::1]', 'localhost', 'LOCALHOST', '::ffff:127.0.0.1']) {
    test(`${host} does not`, () => assert.equal(load({ flags: { host } }).config.http.isLoopback, true))
  }

  test('an empty host listens on every interface', () => {
    assert.equal(load({ flags: { host: '', token: 'x' } }).config.http.host, '0.0.0.0')
  })
})

test('the configured names of the service are allowed in Host', () => {
  const flags = {
    host: 'box.lan',
    token: 'x',
    publicUrl: 'https://Atelier.example:8443',
    allowedHosts: 'Other.example',
  }
  assert.deepEqual(load({ flags }).config.http.allowedHosts, ['other.example', 'box.lan', 'atelier.example'])
  assert.deepEqual(load({ flags: { host: '0.0.0.0', token: 'x' } }).config.http.allowedHosts, [])
})

describe('the kinds that many accounts share', () => {
  const JWT = { keys: 'keys.json', issuer: 'https://login.example', audience: 'atelier' }
  const jwt = { jwt: JSON.stringify(JWT) }

  test('need no other setting, also when they listen beyond this machine', () => {
    for (const kind of ['cloud', 'serverless']) {
      const { config, warnings } = load({ flags: { kind, host: '0.0.0.0' } })
      assert.equal(config.kind, kind)
      assert.deepEqual(config.accounts, { tiers: null, tiersFile: null, prices: null, jwt: null })
      assert.match(warnings.join(), /no adminToken/)
      assert.doesNotMatch(warnings.join(), /without a token/)
    }
    assert.deepEqual([load().config.accounts, load().config.deployments], [null, null])
  })

  test('refuse what only makes sense for one user, and the local kind what only makes sense for many', () => {
    for (const flags of [{ token: 'x' }, { modelsDir: 'm' }, { allowInsecureBind: true }]) {
      const message = refusal({ flags: { kind: 'cloud', ...flags } })
      assert.match(
        message,
        /^(token|modelsDir|allowInsecureBind) \(from --.*does not fit kind = "cloud".*leave it out$/,
      )
    }
    for (const flags of [
      { tiers: 't.json' },
      { prices: '{}' },
      jwt,
      { deploymentsDomain: 'a.b' },
      { poolHook: '/x' },
    ]) {
      assert.match(refusal({ flags }), /is for the kinds cloud and serverless; add --kind cloud, or leave it out$/)
    }
  })

  test('take tokens signed elsewhere only with keys, issuer and audience', () => {
    const { config } = load({ flags: { kind: 'cloud', ...jwt } })
    assert.deepEqual(config.accounts?.jwt?.keys, { kind: 'file', path: path.join(cwd, 'keys.json') })
    assert.deepEqual(config.accounts?.jwt?.algorithms, ['RS256', 'PS256', 'ES256', 'EdDSA'])
    const other = JSON.stringify({ ...JWT, algorithms: 'ES384, EdDSA' })
    const own = load({ flags: { kind: 'cloud', jwt: other } }).config.accounts?.jwt?.algorithms
    assert.deepEqual(own, ['ES384', 'EdDSA'])
    const refused = (members: object) =>
      refusal({ flags: { kind: 'cloud', jwt: JSON.stringify({ ...JWT, ...members }) } })
    for (const name of ['keys', 'issuer', 'audience']) {
      assert.match(refused({ [name]: undefined }), new RegExp(`^jwt \\(from --jwt\\) needs ${name} as a text`))
    }
    assert.match(refused({ keys: 'http://login.example/keys' }), /^jwt \(from --jwt\): keys is not an https address/)
    assert.match(refused({ issuer: 'two words' }), /^jwt \(from --jwt\): issuer is empty or has blanks/)
    assert.match(refused({ accountClaim: 'a claim' }), /^jwt \(from --jwt\): accountClaim is not the name of a claim/)
    for (const algorithms of ['HS256', 'none', 'ES256,HS256', '']) {
      assert.match(refused({ algorithms }), /^jwt \(from --jwt\): algorithms has .*; use some of RS256/)
    }
    assert.match(refused({ secret: 'x' }), /^jwt \(from --jwt\) has the unknown member "secret"/)
  })

  test('read tiers and prices from the config file itself or from a file beside it', () => {
    const tiers = { free: { concurrentJobs: 1 } }
    const folder = inFolder({ kind: 'cloud', tiers, prices: 'prices.json' })
    writeFileSync(path.join(folder, 'prices.json'), '{"perSecond": {}}')
    const { config } = load({ cwd: folder })
    assert.deepEqual([config.accounts?.tiers, config.accounts?.prices], [tiers, { perSecond: {} }])
    assert.match(
      refusal({ flags: { kind: 'cloud', tiers: 'nowhere.json' } }),
      /^tiers: there is no JSON file .*nowhere/,
    )
    writeFileSync(path.join(folder, 'prices.json'), '[]')
    assert.match(refusal({ cwd: folder }), /^prices: the file .* must hold one JSON object$/)
    assert.match(refusal({ cwd: inFolder({ port: {} }) }), /^port in /)
  })

  test('the admin token must not be the token of callers', () => {
    assert.match(refusal({ flags: { token: 'same', adminToken: 'same' } }), /^adminToken and token are the same/)
  })
})
