import type { Account, AccountRecord } from './account.ts'

/** The live counters of an account. They must always equal the rows they count. */
export interface AccountUse {
  readonly running: number
  readonly queued: number
}

export interface AccountStore {
  /** Creates the account or updates its limits; its counters stay. */
  put(account: Account): Promise<void>
  findUse(accountId: string): Promise<AccountUse | null>
  /** Recomputes every counter from the rows and returns how many were wrong. */
  repairCounters(): Promise<number>
}

/** What an account's tier and overrides come down to inside the store: the limits that the queue enforces. */
export interface EnforcedLimits {
  readonly maxRunning: number
  readonly maxQueued: number
  /** Left out: 100. */
  readonly sharePercent?: number
  /** null: not metered. An account that once was metered keeps its ledger and may then owe without bound. */
  readonly creditFloor: number | null
}

export interface VersionedAccount {
  readonly account: AccountRecord
  /** Grows with every change of any account, in the order in which the changes become readable. */
  readonly version: number
}

/** The accounts of the cloud and serverless kinds. */
export interface AccountDirectory {
  /** false: the id is taken. */
  create(account: AccountRecord, limits: EnforcedLimits): Promise<boolean>
  /**
   * Replaces everything but `createdAt`; false: there is no such account. With a version only while the account has that one:
   * somebody else may have changed it since it was read.
   */
  replace(account: AccountRecord, limits: EnforcedLimits, version?: number): Promise<boolean>
  /** Changes only limits: their tier was changed. */
  enforce(limits: readonly (EnforcedLimits & { readonly accountId: string })[]): Promise<void>
  find(accountId: string): Promise<AccountRecord | null>
  /** Accounts whose version is above `version`, in the order of their changes. */
  changedAfter(version: number, limit: number): Promise<readonly VersionedAccount[]>
}
