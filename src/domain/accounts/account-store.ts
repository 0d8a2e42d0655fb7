import type { Account } from './account.ts'

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
