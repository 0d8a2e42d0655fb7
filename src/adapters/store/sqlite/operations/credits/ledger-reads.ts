/** What the ledger can tell: balances, entries by page, open holds, the use of a period. */
import type { DatabaseSync } from 'node:sqlite'
import type { Micros } from '../../../../../../lib/text/usd.ts'
import type { Balance, Hold, LedgerEntry, Usage } from '../../../../../domain/credits/ledger.ts'
import { ENTRY_COLUMNS, type EntryRow, toLedgerEntry } from '../../../rows/ledger-row.ts'
import { prepareRows } from '../statement.ts'

export function prepareBalance(database: DatabaseSync): (accountId: string) => Balance | null {
  const select = prepareRows<[Micros, Micros, Micros]>(
    database,
    'SELECT available, held, floor FROM credit_account WHERE account_id = ?',
  )
  return (accountId) => {
    const row = select.get(accountId)
    return row === undefined ? null : { available: row[0], held: row[1], floor: row[2] }
  }
}

interface EntriesInput {
  readonly accountId: string
  readonly before: number
  readonly limit: number
  /** JSON list. */
  readonly kinds: string
}

export function prepareLedgerEntries(database: DatabaseSync): (input: EntriesInput) => LedgerEntry[] {
  const select = prepareRows<EntryRow>(
    database,
    `SELECT ${ENTRY_COLUMNS}
     FROM ledger_entry INDEXED BY ledger_entry_account
     WHERE account_id = ? AND seq < ? AND kind IN (SELECT value FROM json_each(?)) ORDER BY seq DESC LIMIT ?`,
  )
  return ({ accountId, before, kinds, limit }) => select.all(accountId, before, kinds, limit).map(toLedgerEntry)
}

export function prepareOpenHolds(
  database: DatabaseSync,
): (query: { readonly accountId: string; readonly limit: number }) => Hold[] {
  const select = prepareRows<[id: string, micros: Micros, heldAt: number]>(
    database,
    'SELECT id, micros, held_at FROM ledger_hold WHERE account_id = ? ORDER BY held_at LIMIT ?',
  )
  return ({ accountId, limit }) =>
    select.all(accountId, limit).map(([id, micros, heldAt]) => ({ id, accountId, micros, heldAt: new Date(heldAt) }))
}

interface UsageInput {
  readonly accountId: string
  readonly from: number
  readonly to: number
}

export function prepareUsage(database: DatabaseSync): (input: UsageInput) => Usage {
  const sum = prepareRows<[charged: Micros, refunded: Micros, granted: Micros, settled: number, released: number]>(
    database,
    `SELECT coalesce(sum(charged), 0), coalesce(-sum(CASE WHEN kind = 'refund' THEN charged END), 0),
       coalesce(-sum(granted), 0), coalesce(sum(kind = 'settle'), 0), coalesce(sum(kind = 'release'), 0)
     FROM ledger_entry INDEXED BY ledger_entry_period WHERE account_id = ? AND at >= ? AND at < ?`,
  )
  return ({ accountId, from, to }) => {
    const [charged, refunded, granted, settled, released] = sum.get(accountId, from, to) ?? [0, 0, 0, 0, 0]
    return { charged, refunded, granted, settled, released }
  }
}
