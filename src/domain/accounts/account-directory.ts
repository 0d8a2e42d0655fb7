/** The accounts of the cloud and serverless kinds, as the store keeps them: the record, and the limits that the queue enforces. */
import type { AccountRecord } from './account.ts'

/** What an account's tier and overrides come down to inside the store. */
export interface EnforcedLimits {
  readonly maxRunning: number
  readonly maxQueued: number
  /** null: not metered. An account that once was metered keeps its ledger and may then owe without bound. */
  readonly creditFloor: number | null
}

export interface VersionedAccount {
  readonly account: AccountRecord
  /** Grows with every change of any account. */
  readonly version: number
}

export interface AccountDirectory {
  /** false: the id is taken. */
  create(account: AccountRecord, limits: EnforcedLimits): Promise<boolean>
  /** Replaces everything but `createdAt`; false: there is no such account. */
  replace(account: AccountRecord, limits: EnforcedLimits): Promise<boolean>
  /** Changes limits alone, where a tier was changed. */
  enforce(limits: readonly (EnforcedLimits & { readonly accountId: string })[]): Promise<void>
  find(accountId: string): Promise<AccountRecord | null>
  /** Accounts whose version is above `version`, in the order of their changes. */
  changedAfter(version: number, limit: number): Promise<readonly VersionedAccount[]>
}
