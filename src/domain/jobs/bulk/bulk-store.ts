/** The store as those need it who do one thing to many jobs. */
import type { BulkAction, BulkItem, BulkReason, ItemOutcome } from './bulk-action.ts'

/** Whose: an account's; null: the operator's. */
export type BulkOwner = string | null

export interface NewBulkAction extends BulkAction {
  readonly idempotencyKey: string | null
  /** Of what was asked: the same key with something else is a mistake. */
  readonly digest: string
}

type BulkCreated =
  | { readonly outcome: 'created' }
  /** The key has made this one. */
  | { readonly outcome: 'key_reused'; readonly action: BulkAction; readonly digest: string }
  | { readonly outcome: 'too_many' }

export interface BulkLease {
  readonly id: string
  readonly leaseId: string
}

export type ItemEnd = Pick<BulkItem, 'place' | 'outcome' | 'madeId' | 'code' | 'message'>

interface ItemQuery {
  /** Those behind this place. */
  readonly after: number
  readonly limit: number
  /** null: whatever it is. */
  readonly outcome: ItemOutcome | null
}

export interface BulkStore {
  /** With all of its jobs, or not at all. `maxWorking`: of its owner. */
  create(action: NewBulkAction, items: readonly BulkItem[], maxWorking: number): Promise<BulkCreated>
  /** The newest first. */
  list(owner: BulkOwner, limit: number): Promise<readonly BulkAction[]>
  find(owner: BulkOwner, id: string): Promise<BulkAction | null>
  /** By place. The caller has found the action. */
  listItems(id: string, query: ItemQuery): Promise<readonly BulkItem[]>
  listPart(id: string, part: number): Promise<readonly BulkItem[]>
  /** Ends one that works; one that has ended stays as it is. null: there is none. */
  stop(owner: BulkOwner, id: string, at: Date, reason: BulkReason): Promise<BulkAction | null>
  /** Those at work that no process holds, the one first that was left alone for longest. */
  findDue(now: Date, limit: number): Promise<readonly BulkAction[]>
  /** null: another process has it, or it has ended. */
  take(lease: BulkLease, now: Date, heldUntil: Date): Promise<BulkAction | null>
  /** The next ones whose turn it is. */
  readWaiting(id: string, limit: number): Promise<readonly BulkItem[]>
  /** What became of some, and the lease goes on. false: the lease is lost, or the action was stopped; nothing was written. */
  note(lease: BulkLease, ends: readonly ItemEnd[], now: Date, heldUntil: Date): Promise<boolean>
  /** Gives the lease back. It is looked at again then. */
  putOff(lease: BulkLease, until: Date, reason: BulkReason | null): Promise<void>
  end(lease: BulkLease, at: Date, stoppedFor: BulkReason | null): Promise<void>
  /** Removes those that are past their time; returns how many. */
  sweep(now: Date, limit: number): Promise<number>
}
