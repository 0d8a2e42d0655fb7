import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Caller } from '../../../src/domain/accounts/caller.ts'
import { newKeyText } from '../../../src/domain/accounts/keys/api-key.ts'
import { openKeyRing } from '../../../src/domain/accounts/keys/key-ring.ts'
import { type Refusal, ServiceError } from '../../../src/domain/errors.ts'
import { openAccountRig } from './account-rig.ts'

function isRefusal(refusal: Refusal) {
  return (error: unknown) => error instanceof ServiceError && error.refusal === refusal
}

const REFUSED = isRefusal('unauthorized')

describe('API keys', () => {
  test('a key speaks for its account with its scopes, and at once', async () => {
    await using rig = await openAccountRig()
    const { key, text } = await rig.newKey({ scopes: ['jobs:read'] })
    const caller = rig.authenticate(text)
    assert.ok(!(caller instanceof Promise))
    assert.deepEqual(caller, { accountId: 'acme', keyId: key.id, scopes: new Set(['jobs:read']), endpoints: null })
    assert.equal((await rig.newKey()).key.scopes, null)
  })

  test('every other text is refused in one wording', async () => {
    await using rig = await openAccountRig()
    const { key, text } = await rig.newKey()
    const wrong = [
      null,
      '',
      'secret',
      text.slice(0, -1),
      text.toUpperCase(),
      newKeyText(key.id),
      newKeyText('0'.repeat(12)),
    ]
    const messages = wrong.map((credential) => {
      try {
        rig.authenticate(credential)
      } catch (error) {
        assert.ok(REFUSED(error))
        return (error as Error).message
      }
      return 'was accepted'
    })
    assert.deepEqual(new Set(messages), new Set(['a valid API key or token is required']))
  })

  test('a revoked key is refused from the moment that its revocation is answered', async () => {
    await using rig = await openAccountRig()
    const { key, text } = await rig.newKey()
    rig.authenticate(text)
    await rig.keys.revoke(key.id)
    assert.throws(() => rig.authenticate(text), REFUSED)
    await rig.ring.refresh()
    assert.throws(() => rig.authenticate(text), REFUSED)
    await assert.rejects(rig.keys.rotate(key.id, { overlapMs: 0 }), isRefusal('not_found'))
    assert.deepEqual((await rig.keys.find(key.id))?.revokedAt, rig.clock.now())
  })

  test('what another process revokes is refused after a refresh', async () => {
    await using rig = await openAccountRig()
    const { key, text } = await rig.newKey()
    const other = await openKeyRing({ store: rig.store.apiKeys, clock: rig.clock })
    assert.equal(other.identify(text).keyId, key.id)
    await rig.keys.revoke(key.id)
    await other.refresh()
    assert.throws(() => other.identify(text), REFUSED)
    assert.equal(other.size(), 0)
  })

  test('a key expires by itself', async () => {
    await using rig = await openAccountRig()
    const { text } = await rig.newKey({ expiresAt: new Date(rig.clock.now().getTime() + 1000) })
    rig.clock.advance(999)
    rig.authenticate(text)
    rig.clock.advance(1)
    assert.throws(() => rig.authenticate(text), REFUSED)
    const past = { accountId: 'acme', name: '', scopes: null, expiresAt: rig.clock.now() }
    await assert.rejects(rig.keys.create(past), isRefusal('invalid_field'))
  })

  test('after a rotation both secrets count for a while, then only the new one', async () => {
    await using rig = await openAccountRig()
    const { key, text } = await rig.newKey()
    const rotated = await rig.keys.rotate(key.id, { overlapMs: 1000 })
    assert.equal(rotated.key.id, key.id)
    rig.authenticate(text)
    rig.authenticate(rotated.text)
    rig.clock.advance(1000)
    assert.throws(() => rig.authenticate(text), REFUSED)
    rig.authenticate(rotated.text)
    const again = await rig.keys.rotate(key.id, { overlapMs: 0 })
    assert.throws(() => rig.authenticate(rotated.text), REFUSED)
    rig.authenticate(again.text)
  })

  test('the last use is written in batches, not with the request', async () => {
    await using rig = await openAccountRig()
    const { key, text } = await rig.newKey()
    const before = rig.store.stats().write.operations
    rig.clock.advance(5000)
    for (let count = 0; count < 100; count++) rig.authenticate(text)
    assert.equal(rig.store.stats().write.operations, before)
    await rig.ring.flushUses()
    assert.equal(rig.store.stats().write.operations, before + 1)
    assert.deepEqual((await rig.keys.find(key.id))?.lastUsedAt, rig.clock.now())
    await rig.ring.flushUses()
    assert.equal(rig.store.stats().write.operations, before + 1)
  })

  test('what was opened with a key may stay open for as long as that key could open it', async () => {
    await using rig = await openAccountRig()
    const expiresAt = new Date(rig.clock.now().getTime() + 10_000)
    const { key, text } = await rig.newKey({ expiresAt })
    const identify = (credential: string) => rig.authenticate(credential) as Caller
    const first = identify(text)
    assert.equal(rig.isWelcome(first), true)
    const rotated = await rig.keys.rotate(key.id, { overlapMs: 1000 })
    const [late, second] = [identify(text), identify(rotated.text)]
    assert.deepEqual([first, late, second].map(rig.isWelcome), [true, true, true])
    rig.clock.advance(1000)
    assert.deepEqual([first, late, second].map(rig.isWelcome), [false, false, true], 'the overlap is over')
    await rig.ring.refresh()
    assert.equal(rig.isWelcome(second), true, 'what other processes tell again changes nothing')
    rig.clock.advance(9000)
    assert.equal(rig.isWelcome(second), false, 'it has expired')
    const other = await rig.newKey()
    const third = identify(other.text)
    await rig.accounts.change('acme', { status: 'suspended' })
    assert.equal(rig.isWelcome(third), false)
    await rig.accounts.change('acme', { status: 'active' })
    assert.equal(rig.isWelcome(third), true)
    await rig.keys.revoke(other.key.id)
    assert.equal(rig.isWelcome(third), false)
  })

  test('a suspended account is forbidden with every key, and back when it is active again', async () => {
    await using rig = await openAccountRig()
    const { text } = await rig.newKey()
    await rig.accounts.change('acme', { status: 'suspended' })
    assert.throws(() => rig.authenticate(text), isRefusal('forbidden'))
    await rig.accounts.change('acme', { status: 'active' })
    rig.authenticate(text)
  })

  test('scopes that do not exist and accounts that do not exist are refused', async () => {
    await using rig = await openAccountRig()
    await assert.rejects(rig.newKey({ scopes: ['jobs:all'] }), isRefusal('invalid_field'))
    await assert.rejects(rig.newKey({ scopes: [] }), isRefusal('invalid_field'))
    const foreign = { accountId: 'nobody', name: '', scopes: null, expiresAt: null }
    await assert.rejects(rig.keys.create(foreign), isRefusal('not_found'))
    await assert.rejects(rig.keys.revoke('nowhere'), isRefusal('not_found'))
  })

  test('no text of a key reaches the disk, and what is listed holds no digest', async () => {
    await using rig = await openAccountRig()
    const { text } = await rig.newKey()
    const rotated = await rig.keys.rotate((await rig.keys.list('acme'))[0].id, { overlapMs: 1000 })
    assert.ok(!JSON.stringify(await rig.keys.list('acme')).includes('igest'))
    const folder = rig.directory
    for (const name of await readdir(folder)) {
      const bytes = await readFile(join(folder, name))
      for (const secret of [text, rotated.text]) assert.ok(!bytes.includes(secret.slice(17)), name)
    }
  })
})

describe('accounts', () => {
  test('an id is taken once and has a form; a tier must exist', async () => {
    await using rig = await openAccountRig()
    const fields = { name: 'X', tier: null, overrides: {} }
    for (const id of ['acme', 'local', 'Acme', '-a', 'a-', 'a b', '', 'x'.repeat(64)]) {
      await assert.rejects(rig.accounts.create({ ...fields, id }), isRefusal('invalid_field'), id)
    }
    await assert.rejects(rig.accounts.create({ ...fields, id: 'b', tier: 'gold' }), isRefusal('invalid_field'))
    await assert.rejects(rig.accounts.create({ ...fields, id: 'b', name: ' ' }), isRefusal('invalid_field'))
    await assert.rejects(rig.accounts.change('b', { name: 'x' }), isRefusal('not_found'))
  })

  test('a changed tier counts at once, in memory and in the store', async () => {
    await using rig = await openAccountRig()
    await rig.accounts.change('acme', { tier: 'pro', overrides: { concurrentJobs: 2 } })
    assert.deepEqual([rig.accounts.limitsOf('acme').concurrentJobs, rig.accounts.limitsOf('acme').streams], [2, 2000])
    const free = rig.accounts.limitsOf('acme')
    const tiers = { defaultName: 'pro', byName: new Map([['pro', { ...free, queuedJobs: 0 }]]) }
    assert.equal(await rig.accounts.useTiers(tiers), 1)
    assert.equal(await rig.accounts.useTiers(tiers), 0)
    assert.equal(rig.accounts.limitsOf('acme').queuedJobs, 0)
    const job = { id: crypto.randomUUID(), accountId: 'acme', pool: 'p', priority: 0, metadata: {}, workflow: '{}' }
    const rest = { inputs: [], needsExtraData: false, sealedExtraData: null, needs: '' }
    const [createdAt, expiresAt] = [rig.clock.now(), new Date(rig.clock.now().getTime() + 1000)]
    const outcome = await rig.store.jobs.submit({ ...job, ...rest, createdAt, expiresAt }, null)
    assert.deepEqual(outcome, { outcome: 'queue_full' })
  })
})
