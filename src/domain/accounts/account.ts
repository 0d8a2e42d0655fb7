import type { LimitOverrides } from './limits/tiers.ts'

/** What the queue enforces for whoever owns jobs. The local kind has exactly one, implicit account. */
export interface Account {
  readonly id: string
  readonly maxRunning: number
  readonly maxQueued: number
  /** Of the engines' time beside others, in percent of an ordinary account; left out: 100. */
  readonly sharePercent?: number
}

export const LOCAL_ACCOUNT_ID = 'local'

/** The account of the keys of joined workers. No real account can have this id, so they own nothing. */
export const WORKERS_ACCOUNT_ID = '$workers'

/** `suspended`: every credential of the account is refused; jobs that run go on. */
export type AccountStatus = 'active' | 'suspended'

/** An account of the cloud and serverless kinds, as an operator sees it. */
export interface AccountRecord {
  readonly id: string
  readonly name: string
  readonly tier: string
  /** Limits of this account alone, in place of its tier's. */
  readonly overrides: LimitOverrides
  readonly status: AccountStatus
  readonly createdAt: Date
}

export const ACCOUNT_NAME_MAX_LENGTH = 200
const ACCOUNT_ID = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Small letters, digits and dashes: fit for addresses, file names and log lines. */
export function isAccountId(text: string): boolean {
  return ACCOUNT_ID.test(text) && text !== LOCAL_ACCOUNT_ID
}
