/**
 * What a move between stores carries: everything that a store keeps, as rows that any store can read and write. Columns have the
 * same meaning everywhere; how a store lays them out is its own business. What follows from other rows (counters, indexes, sums)
 * is not carried: the store that receives the rows makes it anew. What only describes running processes is not carried either.
 */
export type RecordValue = string | number | Uint8Array | null

/** The values of a record, in the order of its kind's columns. */
export type RecordRow = readonly RecordValue[]

export interface RecordKind {
  readonly name: string
  /** The first of them are the key. */
  readonly columns: readonly string[]
  readonly keyLength: number
  /** Recomputed by the receiving store; compared, not written. */
  readonly isDerived?: boolean
}

/** Values of the service that belong to one store, or to the move itself. */
export const OWN_META = ['contracted_to', 'signing_keys', 'move_id', 'move_progress', 'moved_to'] as const
export type OwnMeta = (typeof OWN_META)[number]

export function keyOf({ keyLength }: RecordKind, row: RecordRow): RecordRow {
  return row.slice(0, keyLength)
}
