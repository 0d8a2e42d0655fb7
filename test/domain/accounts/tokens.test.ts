import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'
import { type JwtOptions, openJwtVerifier } from '../../../src/adapters/tokens/jwt.ts'
import type { Caller } from '../../../src/domain/accounts/caller.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { openAccountRig } from './account-rig.ts'

const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
const KEY_SET = await jwks()
const PEM = await exportSPKI(publicKey)
const stranger = await generateKeyPair('ES256')
const NOW = new Date('2026-01-01T00:00:00.000Z').getTime() / 1000

interface Shape {
  readonly claims?: JWTPayload
  readonly header?: { readonly alg?: string; readonly kid?: string }
  readonly key?: typeof privateKey | Uint8Array
}

function sign({ claims = {}, header = {}, key = privateKey }: Shape = {}): Promise<string> {
  const payload = { iss: 'https://login.example', aud: 'atelier', sub: 'acme', exp: NOW + 60, ...claims }
  return new SignJWT(payload).setProtectedHeader({ alg: 'ES256', kid: 'one', ...header }).sign(key)
}

async function withKeyFile(text: string, body: (path: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-jwt-'))
  try {
    const path = join(folder, 'keys')
    await writeFile(path, text)
    await body(path)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function optionsFor(keys: JwtOptions['keys'], clock = createFixedClock()): JwtOptions {
  return {
    ...{ keys, clock, issuer: 'https://login.example', audience: 'atelier', algorithms: ['ES256'] },
    ...{ accountClaim: 'sub', scopesClaim: 'scope', clockSkewMs: 5000 },
  }
}

/** A set of keys behind an address; what it answers can be changed, and how often it was asked is counted. */
async function serveKeys() {
  const state = { status: 200, body: JSON.stringify(await jwks()), asked: 0 }
  const server = createServer((_request, response) => {
    state.asked++
    response.writeHead(state.status, { 'content-type': 'application/json' }).end(state.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    state,
    url: `http://127.0.0.1:${port}/jwks.json`,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

async function jwks() {
  return { keys: [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256', use: 'sig' }] }
}

describe('tokens', () => {
  test('a good token speaks for the account that its claim names, until it expires', () =>
    withKeyFile(JSON.stringify(KEY_SET), async (path) => {
      const verify = await openJwtVerifier(optionsFor({ kind: 'file', path }))
      const expiresAt = new Date((NOW + 65) * 1000)
      assert.deepEqual(await verify(await sign()), { accountId: 'acme', scopes: null, expiresAt })
      const scoped = await sign({ claims: { scope: 'openid jobs:read jobs:all' } })
      assert.deepEqual((await verify(scoped))?.scopes, ['jobs:read'])
      const listed = await sign({ claims: { scope: ['assets:read'] } })
      assert.deepEqual((await verify(listed))?.scopes, ['assets:read'])
      assert.deepEqual((await verify(await sign({ claims: { scope: 'openid' } })))?.scopes, [])
    }))

  test('everything else is none: issuer, audience, time, algorithm, key, claim', () =>
    withKeyFile(JSON.stringify(KEY_SET), async (path) => {
      const verify = await openJwtVerifier(optionsFor({ kind: 'file', path }))
      const shapes: readonly Shape[] = [
        { claims: { iss: 'https://other.example' } },
        { claims: { aud: 'other' } },
        { claims: { exp: NOW - 6 } },
        { claims: { exp: undefined } },
        { claims: { nbf: NOW + 6 } },
        { claims: { sub: undefined } },
        { claims: { sub: 'Not An Account' } },
        { claims: { sub: 'local' } },
        { key: stranger.privateKey },
        { header: { kid: 'two' } },
        { header: { alg: 'HS256' }, key: new TextEncoder().encode(PEM) },
      ]
      for (const shape of shapes) assert.equal(await verify(await sign(shape)), null, JSON.stringify(shape))
      const unsigned = new UnsecuredJWT({ sub: 'acme', iss: 'https://login.example', aud: 'atelier', exp: NOW + 60 })
      assert.equal(await verify(unsigned.encode()), null)
      const [head, , signature] = (await sign()).split('.')
      const forged = Buffer.from(JSON.stringify({ sub: 'other', exp: NOW + 60 })).toString('base64url')
      assert.equal(await verify(`${head}.${forged}.${signature}`), null)
      assert.equal(await verify('a.b.c'), null)
    }))

  test('the clock of whoever signed may be off a little', () =>
    withKeyFile(PEM, async (path) => {
      const verify = await openJwtVerifier(optionsFor({ kind: 'file', path }))
      assert.notEqual(await verify(await sign({ claims: { exp: NOW - 4 } })), null)
      assert.notEqual(await verify(await sign({ claims: { nbf: NOW + 4 } })), null)
    }))

  test('keys at an address are fetched once; when they cannot be had, nobody is let in and nobody is asked twice', async () => {
    await using keys = await serveKeys()
    const clock = createFixedClock()
    const verify = await openJwtVerifier(optionsFor({ kind: 'url', url: keys.url }, clock))
    await Promise.all([verify(await sign()), verify(await sign({ claims: { jti: '2' } }))])
    for (let count = 0; count < 5; count++) assert.equal(await verify(await sign({ header: { kid: 'new' } })), null)
    assert.equal(keys.state.asked, 1, 'unknown key ids do not make us ask again at once')

    const broken = await openJwtVerifier(optionsFor({ kind: 'url', url: keys.url }, clock))
    keys.state.status = 503
    await assert.rejects(broken(await sign()), /cannot be fetched: the answer is 503/)
    await assert.rejects(broken(await sign()), /a moment ago/)
    assert.equal(keys.state.asked, 2)
    keys.state.status = 200
    clock.advance(5000)
    assert.notEqual(await broken(await sign()), null)
  })

  test('a file without keys stops the start', async () => {
    await withKeyFile('no key', (path) => assert.rejects(openJwtVerifier(optionsFor({ kind: 'file', path }))))
  })
})

describe('callers with tokens', () => {
  const token = (name: string) => `${name}.${'x'.repeat(20)}.${'y'.repeat(20)}`

  function createVerifier(expiresAt: Date) {
    const state = { checks: 0, accountId: 'acme' }
    const verifyToken = async (text: string) => {
      state.checks++
      return text.startsWith('bad') ? null : { accountId: state.accountId, scopes: ['jobs:read'], expiresAt }
    }
    return { state, verifyToken }
  }

  test('a token is checked once and then known at once, until it expires', async () => {
    const { state, verifyToken } = createVerifier(new Date('2026-01-01T00:01:00Z'))
    await using rig = await openAccountRig({ verifyToken })
    const [first, second] = [rig.authenticate(token('a')), rig.authenticate(token('a'))]
    assert.deepEqual(await first, { accountId: 'acme', keyId: null, scopes: new Set(['jobs:read']), endpoints: null })
    assert.equal(await second, await first)
    assert.ok(!(rig.authenticate(token('a')) instanceof Promise))
    assert.equal(state.checks, 1)
    const caller = (await rig.authenticate(token('a'))) as Caller
    assert.equal(rig.isWelcome(caller), true)
    rig.clock.advance(60_000)
    assert.ok(rig.authenticate(token('a')) instanceof Promise)
    assert.equal(rig.isWelcome(caller), false, 'what it opened ends with it')
  })

  test('a bad token, an unknown account and a suspended one are refused, a remembered token included', async () => {
    const { state, verifyToken } = createVerifier(new Date('2027-01-01T00:00:00Z'))
    await using rig = await openAccountRig({ verifyToken })
    const refusal = async (text: string) => {
      try {
        await rig.authenticate(text)
      } catch (error) {
        return (error as ServiceError).refusal
      }
      return null
    }
    assert.equal(await refusal(token('bad')), 'unauthorized')
    assert.equal(await refusal(token('good')), null)
    await rig.accounts.change('acme', { status: 'suspended' })
    assert.equal(await refusal(token('good')), 'forbidden')
    state.accountId = 'nobody'
    assert.equal(await refusal(token('other')), 'forbidden')
    for (const text of ['a.b', 'a.b.c.d', '..', `a.${'b'.repeat(7000)}.c`, 'a.b .c']) {
      assert.equal(await refusal(text), 'unauthorized', text.slice(0, 10))
    }
  })

  test('checks that are under way are bounded', async () => {
    const gate = Promise.withResolvers<null>()
    await using rig = await openAccountRig({ verifyToken: () => gate.promise })
    const started = Array.from({ length: 256 }, (_, index) => Promise.resolve(rig.authenticate(token(`t${index}`))))
    assert.throws(
      () => rig.authenticate(token('more')),
      (error) => error instanceof ServiceError && error.refusal === 'rate_limited' && error.retryAfterSeconds === 1,
    )
    gate.resolve(null)
    const ends = await Promise.allSettled(started)
    assert.ok(ends.every(({ status }) => status === 'rejected'))
  })
})
