/** How every store of API keys behaves. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { WORKERS_ACCOUNT_ID } from '../../../src/domain/accounts/account.ts'
import { digestOf, newKeyId, newKeyText, type StoredKey } from '../../../src/domain/accounts/keys/api-key.ts'
import { at, START, type StoreOpener, shareStore, Tenant, withStore } from '../store-under-test.ts'

function newKey(accountId: string, fields: Partial<StoredKey> = {}): StoredKey {
  const id = newKeyId()
  return {
    ...{
      id,
      accountId,
      name: 'ci',
      scopes: ['jobs:read'],
      endpoints: ['poster'],
      createdAt: START,
      expiresAt: at(1000),
    },
    ...{ revokedAt: null, lastUsedAt: null, digest: new Uint8Array(digestOf(newKeyText(id))) },
    ...{ previousDigest: null, previousUntil: null, ...fields },
  }
}

export function testKeyStore(opener: StoreOpener): void {
  describe('API keys in the store', () => {
    const store = shareStore(opener)

    test('are given back as they were put in, and need their account', async () => {
      const { accountId } = await Tenant.metered(store())
      const [key, unbounded] = [
        newKey(accountId),
        newKey(accountId, { scopes: null, endpoints: null, expiresAt: null }),
      ]
      assert.equal(await store().apiKeys.insert(key), true)
      assert.equal(await store().apiKeys.insert(unbounded), true)
      assert.equal(await store().apiKeys.insert(newKey(randomUUID())), false)
      assert.deepEqual(await store().apiKeys.find(key.id), key)
      const all = await store().apiKeys.list(accountId)
      assert.deepEqual(new Set(all.map(({ id }) => id)), new Set([key.id, unbounded.id]))
      assert.equal(await store().apiKeys.find('nowhere'), null)
    })

    test('are kept without an account where they are keys of workers', async () => {
      const key = newKey(WORKERS_ACCOUNT_ID, { scopes: ['workers:join:default'] })
      assert.equal(await store().apiKeys.insert(key), true)
      assert.deepEqual(await store().apiKeys.find(key.id), key)
      assert.ok((await store().apiKeys.list(WORKERS_ACCOUNT_ID)).some(({ id }) => id === key.id))
    })

    test('keep the digest before a rotation for its time, and the first moment of a revocation', async () => {
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

    test('are told by version when they change; a use is no change, and its time never goes back', () =>
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

    test('are listed by account, the oldest first, revoked and expired ones included', async () => {
      const [{ accountId }, stranger] = [await Tenant.metered(store()), await Tenant.metered(store())]
      const keys = [30, 10, 20].map((ms) => newKey(accountId, { createdAt: at(ms), expiresAt: at(ms + 1) }))
      for (const key of keys) await store().apiKeys.insert(key)
      await store().apiKeys.insert(newKey(stranger.accountId))
      await store().apiKeys.revoke(keys[1].id, at(40))
      const listed = await store().apiKeys.list(accountId)
      assert.deepEqual(
        listed.map(({ id }) => id),
        [keys[1].id, keys[2].id, keys[0].id],
      )
      assert.deepEqual(await store().apiKeys.list(randomUUID()), [])
    })

    test('are told in the order of their changes, page by page, each at its last change', () =>
      withStore(opener, async (fresh) => {
        const { accountId } = await Tenant.metered(fresh)
        const [first, second, third] = [newKey(accountId), newKey(accountId), newKey(accountId)]
        for (const key of [first, second, third]) await fresh.apiKeys.insert(key)
        await fresh.apiKeys.rotate({ keyId: first.id, digest: first.digest, previousUntil: at(1) })
        const page = await fresh.apiKeys.changedAfter(0, 2)
        const rest = await fresh.apiKeys.changedAfter(page[1].version, 2)
        assert.deepEqual(
          [...page, ...rest].map(({ key }) => key.id),
          [second.id, third.id, first.id],
        )
      }))

    test('forget the digest before the last two rotations; a use of an unknown key changes nothing', async () => {
      const { accountId } = await Tenant.metered(store())
      const key = newKey(accountId)
      await store().apiKeys.insert(key)
      const [one, two] = [new Uint8Array(digestOf('one')), new Uint8Array(digestOf('two'))]
      await store().apiKeys.rotate({ keyId: key.id, digest: one, previousUntil: at(50) })
      const rotated = await store().apiKeys.rotate({ keyId: key.id, digest: two, previousUntil: at(60) })
      assert.deepEqual(rotated, { ...key, digest: two, previousDigest: one, previousUntil: at(60) })
      await store().apiKeys.touch([
        { keyId: 'nowhere', at: at(1) },
        { keyId: key.id, at: at(2) },
      ])
      await store().apiKeys.touch([])
      assert.deepEqual((await store().apiKeys.find(key.id))?.lastUsedAt, at(2))
    })
  })
}
