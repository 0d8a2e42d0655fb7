/** Recomputes balances and holds from the entries and reports whatever differs. Reads only; walks the whole ledger. */
import type { LedgerFault, LedgerReport } from '../../../../domain/credits/ledger.ts'
import { all, get, type Steps } from '../../statements/operation.ts'
import { query, type Words } from '../../statements/statement.ts'
import { integer, nullable, shape, text } from '../../tables/table.ts'

// A broken ledger may differ everywhere; the report stays readable.
const MAX_FAULTS = 1000

const difference = shape({
  accountId: text(),
  reference: nullable(text()),
  expected: nullable(integer()),
  found: nullable(integer()),
})

function check(fault: LedgerFault['fault'], name: string, select: (words: Words) => string) {
  const text = (words: Words) =>
    `SELECT account_id, reference, expected, found FROM (${select(words)}) AS fault LIMIT ${MAX_FAULTS}`
  return { fault, find: query(`ledgerCheck.${name}`, difference, text) }
}

function checkBook(book: 'available' | 'held') {
  return check(
    'wrong_balance',
    book,
    () => `
    SELECT account_id, '${book}' AS reference, coalesce(entry.sum, 0) AS expected, credit_account.${book} AS found
    FROM credit_account LEFT JOIN (SELECT account_id, sum(${book}) AS sum FROM ledger_entry GROUP BY account_id) AS entry
    USING (account_id) WHERE coalesce(entry.sum, 0) <> credit_account.${book}`,
  )
}

const IS_LIVE = `status IN ('queued', 'running', 'canceling')`

// Each statement selects only what is wrong.
const CHECKS = [
  check(
    'unbalanced_entry',
    'entries',
    () => `
    SELECT account_id, reference, 0 AS expected, granted + available + held + charged AS found FROM ledger_entry
    WHERE granted + available + held + charged <> 0`,
  ),
  checkBook('available'),
  checkBook('held'),
  check(
    'wrong_balance',
    'strangers',
    () => `
    SELECT account_id, 'entries' AS reference, NULL AS expected, sum(available) AS found FROM ledger_entry
    WHERE NOT EXISTS (SELECT 1 FROM credit_account WHERE credit_account.account_id = ledger_entry.account_id) GROUP BY account_id`,
  ),
  check(
    'wrong_hold',
    'amounts',
    () => `
    SELECT entry.account_id, reference, entry.held AS expected, micros AS found
    FROM (
      SELECT min(account_id) AS account_id, reference, sum(held) AS held
      FROM ledger_entry WHERE kind IN ('hold', 'settle', 'release') GROUP BY reference
    ) AS entry LEFT JOIN ledger_hold ON ledger_hold.id = reference
    WHERE entry.held <> coalesce(micros, 0)`,
  ),
  check(
    'wrong_hold',
    'unposted',
    () => `
    SELECT account_id, id AS reference, 0 AS expected, micros AS found FROM ledger_hold
    WHERE NOT EXISTS (SELECT 1 FROM ledger_entry WHERE reference = ledger_hold.id AND kind = 'hold')`,
  ),
  check(
    'orphan_hold',
    'orphans',
    (words) => `
    SELECT account_id, id AS reference, 0 AS expected, micros AS found FROM ledger_hold WHERE id LIKE 'job:%' AND NOT EXISTS (
      SELECT 1 FROM job WHERE job.id${words.either('', '::text')} = substr(ledger_hold.id, 5) AND ${IS_LIVE})`,
  ),
  check(
    'missing_hold',
    'missing',
    () => `
    SELECT account_id, 'job:' || id AS reference, NULL AS expected, NULL AS found FROM job
    WHERE ${IS_LIVE} AND price_second IS NOT NULL AND account_id IN (SELECT account_id FROM credit_account)
      AND NOT EXISTS (SELECT 1 FROM ledger_hold WHERE ledger_hold.id = 'job:' || job.id)`,
  ),
  // A floor that was raised later leaves whoever was below it where it is; only a debt that no floor ever allowed is a fault.
  check(
    'below_floor',
    'debts',
    (words) => `
    SELECT account_id, NULL AS reference, floor AS expected, available AS found FROM credit_account
    WHERE available < ${words.least('floor', '0')}`,
  ),
]

const counts = shape({ accounts: integer(), entries: integer(), openHolds: integer() })
const COUNT = query(
  'ledgerCheck.count',
  counts,
  `SELECT (SELECT count(*) FROM credit_account) AS accounts, (SELECT count(*) FROM ledger_entry) AS entries,
     (SELECT count(*) FROM ledger_hold) AS open_holds`,
)

export function* checkLedger(): Steps<LedgerReport> {
  const { accounts, entries, openHolds } = (yield* get(COUNT)) ?? { accounts: 0, entries: 0, openHolds: 0 }
  const faults: LedgerFault[] = []
  for (const { fault, find } of CHECKS) faults.push(...(yield* all(find)).map((found) => ({ fault, ...found })))
  return { accounts, entries, openHolds, faults: faults.slice(0, MAX_FAULTS) }
}
