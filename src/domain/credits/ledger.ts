/**
 * The ledger: append-only, double-entry, in whole micro-dollars. Every account has four books, and each entry moves money
 * between them so that its amounts add up to nothing:
 *
 *   granted    where credit comes from; negative, the sum of all grants
 *   available  what the account may still spend
 *   held       promised to work under way
 *   charged    what work has cost
 *
 * Balances are kept beside the entries for speed and can always be recomputed from them. An account without a balance is
 * unmetered (the local kind): holds succeed and leave no trace.
 */
import type { Micros } from './micros.ts'

/** `revoke` takes granted credit back; `refund` gives back what was charged. */
export type EntryKind = 'grant' | 'revoke' | 'hold' | 'settle' | 'release' | 'refund'

export interface LedgerEntry {
  /** Order of writing. */
  readonly seq: number
  readonly accountId: string
  readonly kind: EntryKind
  /** What the entry is about: a hold's id such as `job:…` or `call:…`, or a grant's. One entry of a kind per reference. */
  readonly reference: string
  readonly granted: Micros
  readonly available: Micros
  readonly held: Micros
  readonly charged: Micros
  readonly at: Date
  readonly memo: string
}

export interface Hold {
  readonly id: string
  readonly accountId: string
  readonly micros: Micros
  readonly heldAt: Date
}

export interface Balance {
  /** What can still be held: a hold may bring it down to `floor` and no further. */
  readonly available: Micros
  readonly held: Micros
  /** Zero, or below zero for an account that may owe. */
  readonly floor: Micros
}

/** The id of the hold of a job. One hold spans all its attempts, so a job is charged once or not at all. */
export function jobHoldId(jobId: string): string {
  return `job:${jobId}`
}
