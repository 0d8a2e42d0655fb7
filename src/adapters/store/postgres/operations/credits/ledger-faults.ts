/**
 * Recomputes balances and holds from the entries and reports whatever differs. Reads only; walks the whole ledger. Its statements
 * must see one moment: run in a transaction with a snapshot.
 */
import type { LedgerFault, LedgerReport } from '../../../../../domain/credits/ledger.ts'
import { type Queryable, type Statement, statement } from '../../database/statement.ts'

type Difference = [accountId: string, reference: string | null, expected: number | null, found: number | null]

// A broken ledger may differ everywhere; the report stays readable.
const MAX_FAULTS = 1000

// Each statement selects only what is wrong. Every row of `job` is a live job, unless somebody meddled.
const CHECKS: readonly Check[] = [
  check(
    'unbalanced_entry',
    'entries',
    `SELECT account_id, reference, 0::bigint, granted + available + held + charged FROM ledger_entry
     WHERE granted + available + held + charged <> 0`,
  ),
  check(
    'wrong_balance',
    'available',
    `SELECT account_id, 'available', coalesce(entry.available, 0)::bigint, credit_account.available
     FROM credit_account LEFT JOIN (SELECT account_id, sum(available) AS available FROM ledger_entry GROUP BY account_id) AS entry
     USING (account_id) WHERE coalesce(entry.available, 0) <> credit_account.available`,
  ),
  check(
    'wrong_balance',
    'held',
    `SELECT account_id, 'held', coalesce(entry.held, 0)::bigint, credit_account.held
     FROM credit_account LEFT JOIN (SELECT account_id, sum(held) AS held FROM ledger_entry GROUP BY account_id) AS entry
     USING (account_id) WHERE coalesce(entry.held, 0) <> credit_account.held`,
  ),
  check(
    'wrong_balance',
    'strangers',
    `SELECT account_id, 'entries', NULL::bigint, sum(available)::bigint FROM ledger_entry
     WHERE NOT EXISTS (SELECT 1 FROM credit_account WHERE credit_account.account_id = ledger_entry.account_id)
     GROUP BY account_id`,
  ),
  check(
    'wrong_hold',
    'amounts',
    `SELECT entry.account_id, reference, entry.held::bigint, micros
     FROM (
       SELECT min(account_id) AS account_id, reference, sum(held) AS held
       FROM ledger_entry WHERE kind IN ('hold', 'settle', 'release') GROUP BY reference
     ) AS entry LEFT JOIN ledger_hold ON ledger_hold.id = reference
     WHERE entry.held <> coalesce(micros, 0)`,
  ),
  check(
    'wrong_hold',
    'unposted',
    `SELECT account_id, id, 0::bigint, micros FROM ledger_hold
     WHERE NOT EXISTS (SELECT 1 FROM ledger_entry WHERE reference = ledger_hold.id AND kind = 'hold')`,
  ),
  check(
    'orphan_hold',
    'orphans',
    `SELECT account_id, id, 0::bigint, micros FROM ledger_hold WHERE id LIKE 'job:%' AND NOT EXISTS (
       SELECT 1 FROM job WHERE job.id::text = substr(ledger_hold.id, 5) AND status IN ('queued', 'running', 'canceling'))`,
  ),
  check(
    'missing_hold',
    'missing',
    `SELECT account_id, 'job:' || id, NULL::bigint, NULL::bigint FROM job
     WHERE status IN ('queued', 'running', 'canceling') AND price_second IS NOT NULL
       AND account_id IN (SELECT account_id FROM credit_account)
       AND NOT EXISTS (SELECT 1 FROM ledger_hold WHERE ledger_hold.id = 'job:' || job.id)`,
  ),
  // A floor that was raised later leaves whoever was below it where it is; only a debt that no floor ever allowed is a fault.
  check(
    'below_floor',
    'debts',
    'SELECT account_id, NULL::text, floor, available FROM credit_account WHERE available < least(floor, 0)',
  ),
]

const COUNT = statement<[accounts: number, entries: number, openHolds: number]>(
  'ledgerCheck.count',
  `SELECT (SELECT count(*) FROM credit_account), (SELECT count(*) FROM ledger_entry), (SELECT count(*) FROM ledger_hold)`,
)

export async function findLedgerFaults(snapshot: Queryable): Promise<LedgerReport> {
  const [accounts, entries, openHolds] = (await snapshot.get(COUNT)) ?? [0, 0, 0]
  const faults: LedgerFault[] = []
  for (const { fault, find } of CHECKS) {
    const rows = await snapshot.all(find)
    faults.push(
      ...rows.map(([accountId, reference, expected, found]) => ({ fault, accountId, reference, expected, found })),
    )
  }
  return { accounts, entries, openHolds, faults: faults.slice(0, MAX_FAULTS) }
}

interface Check {
  readonly fault: LedgerFault['fault']
  readonly find: Statement<Difference>
}

function check(fault: LedgerFault['fault'], name: string, sql: string): Check {
  return { fault, find: statement(`ledgerCheck.${name}`, `${sql} LIMIT ${MAX_FAULTS}`) }
}
