/** Entries cannot be changed or removed, and whoever gets around that, or around the balances, is found out. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { at, type StoreUnderTest, Tenant } from '../store-under-test.ts'

const PRICE = { perSecondMicros: 100, minimumMicros: 50, holdMicros: 1000 }

interface OpenedLedger {
  readonly store: StoreUnderTest
  /** Runs SQL behind the store's back. */
  readonly exec: (sql: string) => Promise<void>
  close(): Promise<void>
}

interface LedgerCheckOptions {
  readonly open: () => Promise<OpenedLedger>
  /** SQL that takes away what keeps entries from being changed. */
  readonly unlock: string
}

export function testLedgerCheck({ open, unlock }: LedgerCheckOptions): void {
  /** One settled job and one that waits, whose id is given to the body. */
  async function withLedger(
    body: (parts: Pick<OpenedLedger, 'store' | 'exec'> & { readonly waiting: string }) => Promise<void>,
  ): Promise<void> {
    const { store, exec, close } = await open()
    try {
      const tenant = await Tenant.metered(store, { micros: 5000 })
      const { lease } = await tenant.run({ price: PRICE })
      await tenant.succeed(lease, at(1000))
      const { id } = await tenant.submit({ price: PRICE })
      assert.deepEqual(await store.ledger.check(), { accounts: 1, entries: 4, openHolds: 1, faults: [] })
      await body({ store, exec, waiting: id })
    } finally {
      await close()
    }
  }

  test('the database itself refuses to change or remove an entry, and one that does not balance', () =>
    withLedger(async ({ exec }) => {
      await assert.rejects(exec(`UPDATE ledger_entry SET memo = '1'`), /never changed/)
      await assert.rejects(exec('DELETE FROM ledger_entry'), /never (changed or )?removed/)
      const unbalanced = `INSERT INTO ledger_entry (account_id, kind, reference, granted, available, held, charged, at, memo)
        VALUES ('a', 'grant', 'x', -5, 6, 0, 0, 0, '')`
      await assert.rejects(exec(unbalanced), /check constraint/i)
    }))

  const cases: readonly [what: string, sql: string, faults: (waiting: string) => string[]][] = [
    ['more credit', 'UPDATE credit_account SET available = available + 7', () => ['wrong_balance available 3900 3907']],
    ['a hold forgotten', 'UPDATE credit_account SET held = 0', () => ['wrong_balance held 1000 0']],
    [
      'a debt',
      'UPDATE credit_account SET available = -1',
      () => ['wrong_balance available 3900 -1', 'below_floor null 0 -1'],
    ],
    ['a hold of another size', 'UPDATE ledger_hold SET micros = 5', (waiting) => [`wrong_hold job:${waiting} 1000 5`]],
    [
      'a hold removed',
      'DELETE FROM ledger_hold',
      (waiting) => [`wrong_hold job:${waiting} 1000 null`, `missing_hold job:${waiting} null null`],
    ],
    [
      'a hold out of nothing',
      `INSERT INTO ledger_hold (id, account_id, micros, held_at) SELECT 'job:none', account_id, 3, 0 FROM credit_account`,
      () => ['wrong_hold job:none 0 3', 'orphan_hold job:none 0 3'],
    ],
    [
      'a job ended behind our back',
      `UPDATE job SET status = 'canceled' WHERE status = 'queued'`,
      (waiting) => [`orphan_hold job:${waiting} 0 1000`],
    ],
    [
      'a charge removed',
      `${unlock}; UPDATE ledger_entry SET available = 1000, charged = 0 WHERE kind = 'settle'`,
      () => ['wrong_balance available 4000 3900'],
    ],
  ]

  for (const [what, sql, faults] of cases) {
    test(`${what} is found out`, () =>
      withLedger(async ({ store, exec, waiting }) => {
        await exec(sql)
        const found = (await store.ledger.check()).faults
        const lines = found.map(({ fault, reference, expected, found }) => `${fault} ${reference} ${expected} ${found}`)
        assert.deepEqual(lines, faults(waiting))
      }))
  }
}
