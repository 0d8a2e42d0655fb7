/** What an account's statement of a period is made of, by one statement, so that nothing can come between its parts. */
import type { ChargedWork } from '../../../../domain/credits/charges.ts'
import type { EntryKind } from '../../../../domain/credits/ledger.ts'
import type { StatementQuery, StatementSums } from '../../../../domain/credits/statement.ts'
import { all, type Steps } from '../../statements/operation.ts'
import { query } from '../../statements/statement.ts'
import { integer, nullable, shape, text } from '../../tables/table.ts'
import { WORK } from './charges.ts'

/** What was moved by a kind of entry, in the period or after it; what each thing cost in it; and what there is now. */
const row = shape({
  what: text<'within' | 'after' | 'line' | 'now'>(),
  kind: nullable(text<EntryKind>()),
  work: nullable(text<ChargedWork>()),
  ...{ model: nullable(text()), pool: nullable(text()), endpoint: nullable(text()) },
  ...{ granted: integer(), available: integer(), held: integer(), charged: integer(), refunded: integer() },
  entries: integer(),
})

/**
 * Goes back from the balances of now, over the entries since the period began: the statement of a recent month does not grow with
 * the age of the account.
 */
const STATEMENT = query(
  'ledger.statement',
  row,
  (words) => `
  WITH moved AS MATERIALIZED (
    SELECT CASE WHEN at >= :to THEN 'after' ELSE 'within' END AS what, kind, ${WORK} AS work, model, pool, endpoint,
      sum(granted) AS granted, sum(available) AS available, sum(held) AS held, sum(charged) AS charged, count(*) AS entries
    FROM ledger_entry ${words.either('INDEXED BY ledger_entry_period', '')} WHERE account_id = :accountId AND at >= :from
    GROUP BY 1, 2, 3, 4, 5, 6)
  SELECT what, kind, CAST(NULL AS text) AS work, CAST(NULL AS text) AS model, CAST(NULL AS text) AS pool, CAST(NULL AS text) AS endpoint,
    sum(granted) AS granted, sum(available) AS available, sum(held) AS held, sum(charged) AS charged, 0 AS refunded, sum(entries) AS entries
  FROM moved GROUP BY what, kind
  UNION ALL SELECT * FROM (
    SELECT 'line', CAST(NULL AS text), work, model, pool, endpoint, 0, 0, 0, sum(CASE kind WHEN 'settle' THEN charged ELSE 0 END) AS cost,
      -sum(CASE kind WHEN 'refund' THEN charged ELSE 0 END), sum(CASE kind WHEN 'settle' THEN entries ELSE 0 END)
    FROM moved WHERE what = 'within' AND kind IN ('settle', 'refund') GROUP BY work, model, pool, endpoint
    ORDER BY cost DESC, work, model, pool, endpoint LIMIT CAST(:limit AS bigint)) AS dearest
  UNION ALL SELECT 'now', NULL, NULL, NULL, NULL, NULL, 0, available, held, 0, 0,
    (SELECT count(*) FROM ledger_hold WHERE account_id = :accountId) FROM credit_account WHERE account_id = :accountId`,
)

export function* readStatement({ accountId, from, to, limit }: StatementQuery): Steps<StatementSums | null> {
  const rows = yield* all(STATEMENT, { accountId, from: from.getTime(), to: to.getTime(), limit })
  const now = rows.find(({ what }) => what === 'now')
  if (now === undefined) return null
  const [within, after] = [rows.filter(({ what }) => what === 'within'), rows.filter(({ what }) => what === 'after')]
  const of = (kind: EntryKind) => within.find((moved) => moved.kind === kind)
  const closing = now.available + now.held - sumOf(after)
  return {
    opening: closing - sumOf(within),
    granted: 0 - (of('grant')?.granted ?? 0),
    revoked: of('revoke')?.granted ?? 0,
    charged: of('settle')?.charged ?? 0,
    refunded: 0 - (of('refund')?.charged ?? 0),
    count: of('settle')?.entries ?? 0,
    held: after.reduce((held, moved) => held - moved.held, now.held),
    holds: after.reduce((holds, { kind, entries }) => holds - OPENS[kind ?? 'grant'] * entries, now.entries),
    lines: rows
      .filter(({ what }) => what === 'line')
      .map(({ work, model, pool, endpoint, charged, refunded, entries }) => ({
        ...{ work: work ?? 'call', model, pool, endpoint, charged, refunded, count: entries },
      })),
  }
}

function sumOf(moved: readonly { readonly available: number; readonly held: number }[]): number {
  return moved.reduce((sum, { available, held }) => sum + available + held, 0)
}

/** How many holds an entry opens. */
const OPENS: Readonly<Record<EntryKind, number>> = { grant: 0, revoke: 0, hold: 1, settle: -1, release: -1, refund: 0 }
