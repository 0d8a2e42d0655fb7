/** Recomputes balances and holds from the entries and reports whatever differs. Reads only; walks the whole ledger. */
import type { DatabaseSync } from 'node:sqlite'
import type { LedgerFault, LedgerReport } from '../../../../../domain/credits/ledger.ts'
import { prepareRows, type RowStatement } from '../statement.ts'

type Difference = [accountId: string, reference: string | null, expected: number | null, found: number | null]

// Each statement selects only what is wrong.
const CHECKS: readonly (readonly [fault: LedgerFault['fault'], sql: string])[] = [
  [
    'unbalanced_entry',
    `SELECT account_id, reference, 0, granted + available + held + charged FROM ledger_entry
     WHERE granted + available + held + charged <> 0`,
  ],
  [
    'wrong_balance',
    `SELECT account_id, 'available', coalesce(entry.available, 0), credit_account.available
     FROM credit_account LEFT JOIN (SELECT account_id, sum(available) AS available FROM ledger_entry GROUP BY account_id) AS entry
     USING (account_id) WHERE coalesce(entry.available, 0) <> credit_account.available`,
  ],
  [
    'wrong_balance',
    `SELECT account_id, 'held', coalesce(entry.held, 0), credit_account.held
     FROM credit_account LEFT JOIN (SELECT account_id, sum(held) AS held FROM ledger_entry GROUP BY account_id) AS entry
     USING (account_id) WHERE coalesce(entry.held, 0) <> credit_account.held`,
  ],
  [
    'wrong_balance',
    `SELECT account_id, 'entries', NULL, sum(available) FROM ledger_entry
     WHERE account_id NOT IN (SELECT account_id FROM credit_account) GROUP BY account_id`,
  ],
  [
    'wrong_hold',
    `SELECT account_id, reference, sum(held), (SELECT micros FROM ledger_hold WHERE id = reference)
     FROM ledger_entry WHERE kind IN ('hold', 'settle', 'release') GROUP BY reference
     HAVING sum(held) <> coalesce((SELECT micros FROM ledger_hold WHERE id = reference), 0)`,
  ],
  [
    'wrong_hold',
    `SELECT account_id, id, 0, micros FROM ledger_hold
     WHERE NOT EXISTS (SELECT 1 FROM ledger_entry WHERE reference = ledger_hold.id AND kind = 'hold')`,
  ],
  [
    'orphan_hold',
    `SELECT account_id, id, 0, micros FROM ledger_hold WHERE id LIKE 'job:%' AND NOT EXISTS (
       SELECT 1 FROM job WHERE job.id = substr(ledger_hold.id, 5) AND status IN ('queued', 'running', 'canceling'))`,
  ],
  [
    'missing_hold',
    `SELECT account_id, 'job:' || id, NULL, NULL FROM job
     WHERE status IN ('queued', 'running', 'canceling') AND price_second IS NOT NULL
       AND account_id IN (SELECT account_id FROM credit_account)
       AND NOT EXISTS (SELECT 1 FROM ledger_hold WHERE ledger_hold.id = 'job:' || job.id)`,
  ],
  // A floor that was raised later leaves whoever was below it where it is; only a debt that no floor ever allowed is a fault.
  ['below_floor', `SELECT account_id, NULL, floor, available FROM credit_account WHERE available < min(floor, 0)`],
]

// A broken ledger may differ everywhere; the report stays readable.
const MAX_FAULTS = 1000

export function prepareCheckLedger(database: DatabaseSync): (input: null) => LedgerReport {
  const count = prepareRows<[number, number, number]>(
    database,
    `SELECT (SELECT count(*) FROM credit_account), (SELECT count(*) FROM ledger_entry), (SELECT count(*) FROM ledger_hold)`,
  )
  const checks = CHECKS.map(([fault, sql]) => ({
    fault,
    find: prepareRows(database, `${sql} LIMIT ${MAX_FAULTS}`) as RowStatement<Difference>,
  }))
  return () => {
    const [accounts, entries, openHolds] = count.get() ?? [0, 0, 0]
    const faults = checks.flatMap(({ fault, find }) =>
      find.all().map(([accountId, reference, expected, found]) => ({ fault, accountId, reference, expected, found })),
    )
    return { accounts, entries, openHolds, faults: faults.slice(0, MAX_FAULTS) }
  }
}
