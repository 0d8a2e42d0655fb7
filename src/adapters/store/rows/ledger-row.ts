/** An entry of the ledger as both stores select it. */
import type { Micros } from '../../../../lib/text/usd.ts'
import type { EntryKind, LedgerEntry } from '../../../domain/credits/ledger.ts'

export const ENTRY_COLUMNS = 'seq, account_id, kind, reference, granted, available, held, charged, at, memo'

export type EntryRow = [
  seq: number,
  accountId: string,
  kind: EntryKind,
  reference: string,
  granted: Micros,
  available: Micros,
  held: Micros,
  charged: Micros,
  at: number,
  memo: string,
]

export function toLedgerEntry(row: EntryRow): LedgerEntry {
  const [seq, accountId, kind, reference, granted, available, held, charged, at, memo] = row
  return { seq, accountId, kind, reference, granted, available, held, charged, at: new Date(at), memo }
}
