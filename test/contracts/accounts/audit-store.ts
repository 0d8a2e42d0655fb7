/** How every audit log behaves: a line goes with each change that an operator makes, in the transaction of the change. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { AuditEntry } from '../../../src/domain/accounts/audit.ts'
import { at, START, type StoreOpener, Tenant, type WholeStoreUnderTest, withStore } from '../store-under-test.ts'
import { newDeployment } from './deployment-store.ts'

const NEWEST = { limit: 10, before: null, subject: null }

function newEntry(fields: Partial<AuditEntry> = {}): AuditEntry {
  return {
    actor: 'somebody',
    action: 'deployment.create',
    subject: 'demo',
    at: START,
    details: { workers: 2 },
    ...fields,
  }
}

export function testAuditStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('the audit log', () => {
    test('gets a line with every change that is made through it, and none for any other', async () => {
      await withStore(opener, async (store) => {
        const demo = newDeployment({ id: 'demo' })
        await store.audited(newEntry()).deployments.create(demo)
        await store.audited(newEntry({ at: at(1) })).deployments.create(demo)
        await store.deployments.create(newDeployment({ id: 'unwatched' }))
        const records = await store.audit.list({ limit: 10, before: null, subject: null })
        assert.deepEqual(records, [
          { ...newEntry({ at: at(1) }), seq: 2, outcome: 'refused' },
          { ...newEntry(), seq: 1, outcome: 'done' },
        ])
      })
    })

    test('is read page by page, and by what was changed', async () => {
      await withStore(opener, async (store) => {
        for (const id of ['a', 'b', 'a'])
          await store.audited(newEntry({ subject: id })).deployments.create(newDeployment())
        const seqs = async (query: object) =>
          (await store.audit.list({ limit: 10, before: null, subject: null, ...query })).map(({ seq }) => seq)
        assert.deepEqual(await seqs({ limit: 2 }), [3, 2])
        assert.deepEqual(await seqs({ before: 2 }), [1])
        assert.deepEqual(await seqs({ subject: 'a' }), [3, 1])
      })
    })

    test('a change that fails leaves no line', async () => {
      await withStore(opener, async (store) => {
        const through = store.audited(newEntry()).deployments
        await assert.rejects(through.create({ ...newDeployment(), workers: null as unknown as number }))
        assert.deepEqual(await store.audit.list({ limit: 10, before: null, subject: null }), [])
      })
    })

    test('a change outside of the store gets a line of its own', async () => {
      await withStore(opener, async (store) => {
        const entry = newEntry({ action: 'engine.drain', details: { nested: [1, null, { deep: 'ä' }] } })
        await store.audit.note(entry)
        assert.deepEqual(await store.audit.list(NEWEST), [{ ...entry, seq: 1, outcome: 'done' }])
      })
    })

    test('the line says how the change ended, whatever store it went through', async () => {
      await withStore(opener, async (store) => {
        const tenant = await Tenant.metered(store)
        const { accountId } = tenant
        const job = await tenant.submit()
        const through = (subject: string) => store.audited(newEntry({ subject }))
        const grant = { id: randomUUID(), accountId, micros: 5, at: START, memo: '' }
        await through('1').ledger.grant(grant)
        await through('2').ledger.grant(grant)
        await through('3').apiKeys.revoke('nowhere', START)
        await through('4').cancels.cancel(accountId, job.id, START)
        await through('5').cancels.cancel(accountId, randomUUID(), START)
        const records = await store.audit.list(NEWEST)
        assert.deepEqual(
          records.map(({ subject, outcome }) => [subject, outcome]),
          [
            ['5', 'refused'],
            ['4', 'canceled'],
            ['3', 'refused'],
            ['2', 'repeated'],
            ['1', 'granted'],
          ],
        )
      })
    })
  })
}
