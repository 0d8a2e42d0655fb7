/** How every directory of accounts, and every store of their keys, behaves. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { AccountRecord } from '../../src/domain/accounts/account.ts'
import { digestOf, newKeyId, newKeyText, type StoredKey } from '../../src/domain/accounts/keys/api-key.ts'
import { at, START, type StoreOpener, shareStore, Tenant, withStore } from './store-under-test.ts'

const LIMITS = { maxRunning: 1, maxQueued: 2, creditFloor: 0 }

function newAccount(fields: Partial<AccountRecord> = {}): AccountRecord {
  const id = randomUUID()
  return { id, name: 'A', tier: 'free', overrides: {}, status: 'active', createdAt: START, ...fields }
}

function newKey(accountId: string, fields: Partial<StoredKey> = {}): StoredKey {
  const id = newKeyId()
  return {
    ...{ id, accountId, name: 'ci', scopes: ['jobs:read'], createdAt: START, expiresAt: at(1000) },
    ...{ revokedAt: null, lastUsedAt: null, digest: new Uint8Array(digestOf(newKeyText(id))) },
    ...{ previousDigest: null, previousUntil: null, ...fields },
  }
}

export function testAccountDirectory(opener: StoreOpener): void {
  describe('the directory of accounts', () => {
    const store = shareStore(opener)

    test('gives back what was put in, and an id only once', async () => {
      const account = newAccount({ overrides: { concurrentJobs: 3, allowNodes: ['A'], uploadBytes: null } })
      assert.equal(await store().directory.create(account, LIMITS), true)
      assert.equal(await store().directory.create({ ...account, name: 'B' }, LIMITS), false)
      assert.deepEqual(await store().directory.find(account.id), account)
      assert.equal(await store().directory.find(randomUUID()), null)
    })

    test('an account without a floor is not metered; one that gets a floor has a balance from then on', async () => {
      const account = newAccount()
      await store().directory.create(account, { ...LIMITS, creditFloor: null })
      assert.equal(await store().ledger.balance(account.id), null)
      await store().directory.replace(account, { ...LIMITS, creditFloor: -5 })
      assert.deepEqual(await store().ledger.balance(account.id), { available: 0, held: 0, floor: -5 })
      await store().directory.replace(account, { ...LIMITS, creditFloor: null })
      const balance = await store().ledger.balance(account.id)
      assert.ok(balance !== null && balance.floor < -1e14, 'it keeps its balance and cannot run out')
    })

    test('limits are enforced for the next submit and claim', async () => {
      const tenant = await Tenant.metered(store(), { maxRunning: 0 })
      await tenant.submit()
      assert.equal(await tenant.claim(), null)
      const { accountId } = tenant
      await store().directory.enforce([{ accountId, maxRunning: 1, maxQueued: 0, creditFloor: 0 }])
      assert.notEqual(await tenant.claim(), null)
      assert.deepEqual(await store().jobs.submit(tenant.newJob(), null), { outcome: 'queue_full' })
    })

    test('tells what changed since a version, once each, in order', () =>
      withStore(opener, async ({ directory }) => {
        const [first, second] = [newAccount(), newAccount()]
        await directory.create(first, LIMITS)
        await directory.create(second, LIMITS)
        const [, { version }] = await directory.changedAfter(0, 10)
        assert.deepEqual(await directory.changedAfter(version, 10), [])
        const changed = { ...first, status: 'suspended' as const }
        assert.equal(await directory.replace(changed, LIMITS), true)
        const page = await directory.changedAfter(version, 10)
        assert.deepEqual(
          page.map(({ account }) => account),
          [changed],
        )
        assert.equal((await directory.changedAfter(0, 1)).length, 1)
        assert.equal(await directory.replace(newAccount(), LIMITS), false)
      }))
  })

  describe('the store of API keys', () => {
    const store = shareStore(opener)

    test('gives back what was put in; a key needs its account', async () => {
      const { accountId } = await Tenant.metered(store())
      const [key, unbounded] = [newKey(accountId), newKey(accountId, { scopes: null, expiresAt: null })]
      assert.equal(await store().apiKeys.insert(key), true)
      assert.equal(await store().apiKeys.insert(unbounded), true)
      assert.equal(await store().apiKeys.insert(newKey(randomUUID())), false)
      assert.deepEqual(await store().apiKeys.find(key.id), key)
      const all = await store().apiKeys.list(accountId)
      assert.deepEqual(new Set(all.map(({ id }) => id)), new Set([key.id, unbounded.id]))
      assert.equal(await store().apiKeys.find('nowhere'), null)
    })

    test('a rotation keeps the digest before for its time; a revocation keeps its first moment', async () => {
      const { accountId } = await Tenant.metered(store())
      const key = newKey(accountId)
      await store().apiKeys.insert(key)
      const digest = new Uint8Array(digestOf('new'))
      const rotated = await store().apiKeys.rotate({ keyId: key.id, digest, previousUntil: at(50) })
      assert.deepEqual(rotated, { ...key, digest, previousDigest: key.digest, previousUntil: at(50) })
      assert.deepEqual((await store().apiKeys.revoke(key.id, at(5)))?.revokedAt, at(5))
      assert.deepEqual((await store().apiKeys.revoke(key.id, at(9)))?.revokedAt, at(5))
      assert.equal(await store().apiKeys.rotate({ keyId: key.id, digest, previousUntil: at(50) }), null)
      assert.equal(await store().apiKeys.revoke('nowhere', at(5)), null)
    })

    test('tells what changed since a version; a use is no change and never goes back', () =>
      withStore(opener, async (fresh) => {
        const { accountId } = await Tenant.metered(fresh)
        const key = newKey(accountId)
        await fresh.apiKeys.insert(key)
        const [{ version }] = await fresh.apiKeys.changedAfter(0, 10)
        await fresh.apiKeys.touch([{ keyId: key.id, at: at(20) }])
        await fresh.apiKeys.touch([{ keyId: key.id, at: at(10) }])
        assert.deepEqual((await fresh.apiKeys.find(key.id))?.lastUsedAt, at(20))
        assert.deepEqual(await fresh.apiKeys.changedAfter(version, 10), [])
        await fresh.apiKeys.revoke(key.id, at(30))
        const [changed] = await fresh.apiKeys.changedAfter(version, 10)
        assert.deepEqual([changed.key.id, changed.key.revokedAt], [key.id, at(30)])
      }))
  })
}
