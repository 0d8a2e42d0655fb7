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
import type { Micros } from '../../../lib/text/usd.ts'
import type { ChargeLabels, ChargeQuery, Charges } from './charges.ts'
import type { StatementQuery, StatementSums } from './statement.ts'

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

/** A charge or a refund, with what it was for. */
export type UsageEntry = LedgerEntry & ChargeLabels

export interface UsageQuery {
  /** `seq` of the last one that was read; 0: from the first on. */
  readonly after: number
  readonly upTo: number
  readonly limit: number
}

/** How far the ledger has come. Transactions have numbers that rise; those of a store with one writer are all over. */
export interface LedgerTop {
  readonly seq: number
  /** Every transaction that may still write an entry up to `seq` has a number below this one. */
  readonly next: bigint
  /** Every transaction below this one is over. */
  readonly over: bigint
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

interface Grant {
  /** Makes a repetition harmless. */
  readonly id: string
  readonly accountId: string
  /** Above zero: credit to spend; below zero: takes back what was granted, down to the account's floor. */
  readonly micros: Micros
  readonly at: Date
  readonly memo: string
}

interface Refund {
  /** A settled hold, such as `job:…`. It can be refunded once. */
  readonly holdId: string
  /** Must not exceed what was charged; null: all of it. */
  readonly micros: Micros | null
  readonly at: Date
  readonly memo: string
}

export type GrantOutcome =
  | { readonly outcome: 'granted' | 'repeated'; readonly balance: Balance }
  /** The account is unknown or unmetered. */
  | { readonly outcome: 'unmetered' }
  /** The balance would fall below the floor, or rise above what an account may have. */
  | { readonly outcome: 'out_of_bounds'; readonly balance: Balance }

export type RefundOutcome =
  | { readonly outcome: 'refunded' | 'repeated'; readonly accountId: string; readonly micros: Micros }
  | { readonly outcome: 'not_charged' }
  | { readonly outcome: 'more_than_charged'; readonly charged: Micros }

interface EntryQuery {
  readonly limit: number
  /** `seq` of the last entry of the page before. */
  readonly before: number | null
  readonly kinds?: readonly EntryKind[]
}

export interface Usage {
  /** What work cost in the period, refunds taken off. */
  readonly charged: Micros
  readonly refunded: Micros
  readonly granted: Micros
  /** Holds that ended with a charge. */
  readonly settled: number
  readonly released: number
}

/** One thing that the recomputation found; an intact ledger has none. */
export interface LedgerFault {
  readonly fault:
    | 'unbalanced_entry' // amounts of an entry do not add up to nothing
    | 'wrong_balance' // a stored balance differs from the sum of the entries
    | 'wrong_hold' // an open hold without its entry, or with another amount, or an entry without its open hold
    | 'orphan_hold' // a hold of a job that has ended or is gone
    | 'missing_hold' // a job under way that must have a hold and has none
    | 'below_floor'
  readonly accountId: string
  readonly reference: string | null
  readonly expected: Micros | null
  readonly found: Micros | null
}

export interface LedgerReport {
  readonly accounts: number
  readonly entries: number
  readonly openHolds: number
  readonly faults: readonly LedgerFault[]
}

/**
 * The ledger as accounts and operators use it. Holds are taken elsewhere: in the transaction that admits the work, and settled
 * in the one that ends it.
 */
export interface LedgerStore {
  /** null for an account that is unknown or unmetered. */
  balance(accountId: string): Promise<Balance | null>
  grant(grant: Grant): Promise<GrantOutcome>
  refund(refund: Refund): Promise<RefundOutcome>
  /** Newest first. */
  entries(accountId: string, query: EntryQuery): Promise<readonly LedgerEntry[]>
  /** Open holds, oldest first. */
  holds(accountId: string, limit: number): Promise<readonly Hold[]>
  usage(accountId: string, period: { readonly from: Date; readonly to: Date }): Promise<Usage>
  /** What was charged, by day and by what it was for. */
  charges(query: ChargeQuery): Promise<Charges>
  /** null for an account that is unknown or not metered. */
  statement(query: StatementQuery): Promise<StatementSums | null>
  /** Charges and refunds of all accounts, oldest first. */
  usageEntries(query: UsageQuery): Promise<readonly UsageEntry[]>
  /** How far the ledger has come. */
  top(): Promise<LedgerTop>
  /** Recomputes balances and holds from the entries and compares. Changes nothing; costs as much as there are entries. */
  check(): Promise<LedgerReport>
}
