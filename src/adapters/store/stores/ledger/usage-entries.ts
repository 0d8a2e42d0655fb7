/** Charges and refunds of all accounts in the order of their numbers, and how far every one of them is written. */
import type { LedgerTop, UsageEntry, UsageQuery } from '../../../../domain/credits/ledger.ts'
import { all, get, type Steps } from '../../statements/operation.ts'
import { query } from '../../statements/statement.ts'
import { ledgerEntry } from '../../tables/credits.ts'
import { integer, shape, text } from '../../tables/table.ts'

const USAGE = query(
  'ledger.usageEntries',
  ledgerEntry,
  (words) => `SELECT ${ledgerEntry.columns} FROM ledger_entry ${words.either('NOT INDEXED', '')}
    WHERE seq > :after AND seq <= :upTo AND kind IN ('settle', 'refund') ORDER BY seq LIMIT :limit`,
)

export function* readUsageEntries({ after, upTo, limit }: UsageQuery): Steps<readonly UsageEntry[]> {
  return yield* all(USAGE, { after, upTo, limit })
}

// Whoever writes an entry has changed a balance before, so its transaction has its number before the entry has one. SQLite has one
// writer at a time: what can be seen is all there is.
const TOP = query(
  'ledger.top',
  shape({ seq: integer(), next: text(), over: text() }),
  (
    words,
  ) => `SELECT coalesce(max(seq), 0) AS seq, ${words.either(`'0'`, 'pg_snapshot_xmax(pg_current_snapshot())::text')} AS next,
    ${words.either(`'0'`, 'pg_snapshot_xmin(pg_current_snapshot())::text')} AS over FROM ledger_entry`,
)

export function* readTop(): Steps<LedgerTop> {
  const { seq, next, over } = (yield* get(TOP)) ?? { seq: 0, next: '0', over: '0' }
  return { seq, next: BigInt(next), over: BigInt(over) }
}
