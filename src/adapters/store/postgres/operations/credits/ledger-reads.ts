/** What the ledger can tell: balances, entries by page, open holds, the use of a period. */
import type { Micros } from '../../../../../../lib/text/usd.ts'
import type { Balance, EntryKind, Hold, LedgerEntry, Usage } from '../../../../../domain/credits/ledger.ts'
import { ENTRY_COLUMNS, type EntryRow, toLedgerEntry } from '../../../rows/ledger-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'

const BALANCE = statement<[available: Micros, held: Micros, floor: Micros]>(
  'ledger.balance',
  'SELECT available, held, floor FROM credit_account WHERE account_id = $1',
)

export async function readBalance(db: Queryable, accountId: string): Promise<Balance | null> {
  const row = await db.get(BALANCE, [accountId])
  return row === undefined ? null : { available: row[0], held: row[1], floor: row[2] }
}

interface EntriesInput {
  readonly accountId: string
  readonly before: number
  readonly limit: number
  readonly kinds: readonly EntryKind[]
}

const ENTRIES = statement<EntryRow>(
  'ledger.entries',
  `SELECT ${ENTRY_COLUMNS} FROM ledger_entry
   WHERE account_id = $1 AND seq < $2 AND kind = ANY($3::text[]) ORDER BY seq DESC LIMIT $4`,
)

export async function listEntries(
  db: Queryable,
  { accountId, before, limit, kinds }: EntriesInput,
): Promise<LedgerEntry[]> {
  const rows = await db.all(ENTRIES, [accountId, before, kinds, limit])
  return rows.map(toLedgerEntry)
}

const OPEN_HOLDS = statement<[id: string, micros: Micros, heldAt: number]>(
  'ledger.openHolds',
  'SELECT id, micros, held_at FROM ledger_hold WHERE account_id = $1 ORDER BY held_at LIMIT $2',
)

export async function listOpenHolds(db: Queryable, accountId: string, limit: number): Promise<Hold[]> {
  const rows = await db.all(OPEN_HOLDS, [accountId, limit])
  return rows.map(([id, micros, heldAt]) => ({ id, accountId, micros, heldAt: new Date(heldAt) }))
}

const USAGE = statement<[charged: Micros, refunded: Micros, granted: Micros, settled: number, released: number]>(
  'ledger.usage',
  `SELECT coalesce(sum(charged), 0)::bigint, coalesce(-sum(charged) FILTER (WHERE kind = 'refund'), 0)::bigint,
     coalesce(-sum(granted), 0)::bigint, count(*) FILTER (WHERE kind = 'settle'), count(*) FILTER (WHERE kind = 'release')
   FROM ledger_entry WHERE account_id = $1 AND at >= $2 AND at < $3`,
)

export async function sumUsage(
  db: Queryable,
  accountId: string,
  period: { readonly from: Date; readonly to: Date },
): Promise<Usage> {
  const row = await db.get(USAGE, [accountId, period.from.getTime(), period.to.getTime()])
  const [charged, refunded, granted, settled, released] = row ?? [0, 0, 0, 0, 0]
  return { charged, refunded, granted, settled, released }
}
