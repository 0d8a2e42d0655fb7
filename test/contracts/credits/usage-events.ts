/**
 * Usage events of every ledger. Whoever reads page by page, while any number of accounts are charged at the same time, sees each charge and
 * each refund once, as it stands in the ledger, and never anything below what was read.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { LedgerTop, UsageEntry } from '../../../src/domain/credits/ledger.ts'
import { createReadUsage, toUsageEvent } from '../../../src/domain/credits/usage-events.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { at, type StoreOpener, shareStore, Tenant, type WholeStoreUnderTest } from '../store-under-test.ts'
import { play } from './charges.ts'

const ACCOUNTS = 8
const CALL = { kind: 'call', afterMs: 1000, keyId: 'key a', model: 'fake/one', pick: 0 } as const
const STEPS = [
  ...([CALL, CALL, { ...CALL, kind: 'job', model: 'fake/two' }, { ...CALL, kind: 'failed job' }] as const),
  ...([
    { ...CALL, kind: 'open job' },
    { ...CALL, kind: 'part of it back', afterMs: 9000 },
  ] as const),
]

export function testUsageEvents(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('usage events', () => {
    const store = shareStore(opener)

    test('are each read once while many accounts are charged, whoever reads and however long a page is', async () => {
      const tenants = await Promise.all(Array.from({ length: ACCOUNTS }, () => Tenant.metered(store())))
      const read = createReadUsage({ ledger: store().ledger, pause: () => setImmediate() })
      let isOver = false
      async function follow(limit: number): Promise<readonly UsageEntry[]> {
        const seen: UsageEntry[] = []
        let after = 0
        async function readOn(): Promise<boolean> {
          const page = await read({ after, limit })
          seen.push(...page.entries)
          after = page.after
          return page.isLast
        }
        while (!isOver) {
          await readOn()
          await setImmediate()
        }
        // What other databases of the same server write holds the end back for a while, on Postgres.
        const isOwn = ({ accountId }: UsageEntry) => tenants.some((tenant) => tenant.accountId === accountId)
        await waitUntil(async () => (await readOn()) && seen.filter(isOwn).length >= ACCOUNTS * 4)
        return seen
      }
      const readers = [1, 3, 1000].map(follow)
      await Promise.all(tenants.map((tenant) => play(store(), tenant, STEPS)))
      isOver = true
      for (const seen of await Promise.all(readers)) {
        assert.ok(seen.every((entry, index) => index === 0 || entry.seq > (seen[index - 1]?.seq ?? 0)))
        for (const { accountId } of tenants) {
          const kinds = ['settle', 'refund'] as const
          const entries = await store().ledger.entries(accountId, { limit: 1000, before: null, kinds })
          const own = seen.filter((entry) => entry.accountId === accountId)
          assert.deepEqual(
            own.map(({ seq }) => seq),
            entries.map(({ seq }) => seq).toReversed(),
          )
          assert.equal(own.length, 4)
        }
      }
    })

    test('say what was used, by whom, for what, and what it cost, under an id of their own', async () => {
      const tenant = await Tenant.metered(store())
      const before = (await store().ledger.top()).seq
      await play(store(), tenant, STEPS)
      const read = createReadUsage({ ledger: store().ledger, pause: () => setImmediate() })
      const own = await waitUntil(async () => {
        const { entries } = await read({ after: before, limit: 10 })
        const events = entries.map(toUsageEvent).filter(({ subject }) => subject === tenant.accountId)
        return events.length === 4 ? events : null
      })
      assert.equal(new Set(own.map(({ id }) => id)).size, own.length)
      const job = own.find(({ id }) => String(id).startsWith('job:'))
      const { sequence, data, ...about } = job ?? {}
      const { reference, ...facts } = data as Record<string, unknown>
      assert.match(String(sequence), /^\d+$/)
      assert.deepEqual(about, {
        ...{ specversion: '1.0', id: `${reference}:charge`, source: 'atelier', type: 'usage.charged' },
        ...{ subject: tenant.accountId, time: at(3000).toISOString(), datacontenttype: 'application/json' },
      })
      assert.deepEqual(facts, {
        ...{ account_id: tenant.accountId, kind: 'job', model: null, pool: tenant.pool, endpoint: null },
        ...{ endpoint_version: null, key_id: 'key a', tag: null },
        ...{ quantity: '2', unit: 'second', price_usd: '0.002', price_micros: 2000 },
      })
      const refund = own.find(({ type }) => type === 'usage.refunded')?.['data'] as Record<string, unknown>
      assert.deepEqual([refund['price_usd'], refund['price_micros'], refund['unit']], ['-0.000007', -7, 'call'])
    })

    test('end below whatever a transaction under way may still write', async () => {
      const tops: LedgerTop[] = [
        { seq: 7, next: 12n, over: 10n },
        { seq: 9, next: 13n, over: 11n },
        { seq: 9, next: 14n, over: 12n },
      ]
      const asked: number[] = []
      const ledger = {
        top: async () => tops.shift() ?? { seq: 9, next: 20n, over: 15n },
        usageEntries: async ({ upTo }: { readonly upTo: number }) => {
          asked.push(upTo)
          return []
        },
      }
      const read = createReadUsage({ ledger, pause: () => setImmediate() })
      assert.deepEqual(await read({ after: 3, limit: 5 }), { entries: [], after: 3, isLast: true })
      assert.deepEqual([asked, tops], [[7], []])
      // One that does not end holds everything back, and is not waited for without end.
      let looks = 0
      async function top(): Promise<LedgerTop> {
        looks += 1
        return { seq: 9, next: 30n, over: 29n }
      }
      const stuck = createReadUsage({ ledger: { ...ledger, top }, pause: () => setImmediate() })
      assert.deepEqual(await stuck({ after: 3, limit: 5 }), { entries: [], after: 3, isLast: true })
      assert.deepEqual([asked, looks < 50], [[7], true])
    })
  })
}
