/** How every directory of accounts behaves. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { AccountRecord } from '../../../src/domain/accounts/account.ts'
import { START, type StoreOpener, shareStore, Tenant, withStore } from '../store-under-test.ts'

const LIMITS = { maxRunning: 1, maxQueued: 2, creditFloor: 0 }

function newAccount(fields: Partial<AccountRecord> = {}): AccountRecord {
  const id = randomUUID()
  return { id, name: 'A', tier: 'free', overrides: {}, status: 'active', createdAt: START, ...fields }
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

    test('is replaced at a version only while it has that version', () =>
      withStore(opener, async ({ directory }) => {
        const account = newAccount()
        await directory.create(account, LIMITS)
        const [{ version }] = await directory.changedAfter(0, 10)
        assert.equal(await directory.replace({ ...account, name: 'One' }, LIMITS, version), true)
        assert.equal(await directory.replace({ ...account, name: 'Other' }, LIMITS, version), false)
        assert.equal((await directory.find(account.id))?.name, 'One')
        const [newest] = await directory.changedAfter(version, 10)
        assert.equal(await directory.replace({ ...account, name: 'Other' }, LIMITS, newest.version), true)
      }))
  })
}
