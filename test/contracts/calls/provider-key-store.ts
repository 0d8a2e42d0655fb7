/** How every store keeps the keys of accounts at providers, and that no call is admitted under keys that are no longer there. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { SealedProviderKey } from '../../../src/domain/models/access/provider-keys.ts'
import { at, START, type StoreOpener, shareStore, type WholeStoreUnderTest } from '../store-under-test.ts'

export function testProviderKeyStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('keys of accounts at providers', () => {
    const store = shareStore(opener)
    const keys = () => store().providerKeys
    const newKey = (fields: Partial<SealedProviderKey> = {}): SealedProviderKey => ({
      ...{ accountId: randomUUID(), provider: 'bfl', sealed: new Uint8Array([1, 2, 3]), lastFour: 'abcd' },
      ...{ createdAt: START, changedAt: START, ...fields },
    })
    const put = async (key: SealedProviderKey, max = 9) => (await keys().put(key, max)).outcome

    test('a key is kept as it was sealed, replaced by the next of its provider, and removed once', async () => {
      const made = newKey()
      const { accountId } = made
      assert.deepEqual(await keys().ofAccount(accountId), { version: 0, keys: [] })
      assert.equal(await put(made), 'added')
      assert.deepEqual(await keys().ofAccount(accountId), { version: 1, keys: [made] })
      const next = { ...made, sealed: new Uint8Array([4]), lastFour: 'wxyz', createdAt: at(9), changedAt: at(9) }
      assert.equal(await put(next), 'replaced')
      assert.deepEqual(await keys().ofAccount(accountId), { version: 2, keys: [{ ...next, createdAt: START }] })
      assert.equal(await keys().remove(randomUUID(), 'bfl'), false)
      assert.equal(await keys().remove(accountId, 'kling'), false)
      assert.equal(await keys().remove(accountId, 'bfl'), true)
      assert.equal(await keys().remove(accountId, 'bfl'), false)
      assert.deepEqual(await keys().ofAccount(accountId), { version: 3, keys: [] })
    })

    test('an account has no more of them than it may, and replacing one needs no room', async () => {
      const made = newKey()
      await put(made, 1)
      assert.equal(await put({ ...made, provider: 'kling' }, 1), 'too_many')
      assert.equal(await put(made, 1), 'replaced')
    })

    test('they are read in pages over all accounts, and sealed anew only where nobody changed them meanwhile', async () => {
      const [one, other] = [newKey(), newKey({ provider: 'kling' })]
      await Promise.all([put(one), put(other)])
      const found: SealedProviderKey[] = []
      for (let after: SealedProviderKey | null = null; ; ) {
        const page: readonly SealedProviderKey[] = await keys().page(after, 2)
        found.push(...page)
        if (page.length < 2) break
        after = page[1]
      }
      const owners = new Set([one.accountId, other.accountId])
      assert.equal(found.filter(({ accountId }) => owners.has(accountId)).length, 2)
      const sealed = new Uint8Array([7, 7])
      assert.equal(await keys().reseal(one, sealed), true)
      assert.equal(await keys().reseal(one, new Uint8Array([8])), false)
      assert.deepEqual((await keys().ofAccount(one.accountId)).keys, [{ ...one, sealed }])
    })

    test('a change leaves its line, without the key', async () => {
      const made = newKey()
      const entry = { actor: 'key k', action: 'provider_key.put', subject: made.accountId, at: START }
      await store()
        .audited({ ...entry, details: { provider: 'bfl' } })
        .providerKeys.put(made, 9)
      const [line] = await store().audit.list({ limit: 1, before: null, subject: made.accountId })
      assert.deepEqual([line?.action, line?.outcome, line?.details], ['provider_key.put', 'added', { provider: 'bfl' }])
    })

    test('a call that was opened under other keys is neither admitted nor queued', async () => {
      const made = newKey()
      const { accountId } = made
      const newCall = (keysVersion: number) => ({
        ...{ id: randomUUID(), accountId, key: null, fingerprint: 'f', modelId: 'bfl/flux', baseUrl: '' },
        ...{ createdAt: START, expiresAt: at(60_000), holdMicros: null, spendMicros: 0, isCostly: false },
        ...{ mayResubmit: false, keysVersion },
      })
      const limits = { maxCalls: null, maxCostlyCalls: null, ceilingMicros: null }
      let until = 1000
      const admit = async (version: number) => {
        const lease = { owner: 'node', until: at(until++) }
        return (await store().calls.admit(newCall(version), limits, { isValid: true, lease })).outcome
      }
      const enqueue = async (version: number) => {
        const body = { kind: 'inline', bytes: new Uint8Array([123, 125]) } as const
        const request = { ...newCall(version), body, bodyBytes: 2 }
        return (await store().requests.enqueue(request, { maxWaiting: 9, isValid: true })).outcome
      }
      assert.deepEqual([await admit(0), await enqueue(0)], ['admitted', 'queued'])
      await put(made)
      assert.deepEqual([await admit(0), await enqueue(0)], ['keys_changed', 'keys_changed'])
      assert.deepEqual([await admit(1), await enqueue(1)], ['admitted', 'queued'])
      await keys().remove(accountId, 'bfl')
      assert.deepEqual([await admit(1), await enqueue(1)], ['keys_changed', 'keys_changed'])
    })
  })
}
