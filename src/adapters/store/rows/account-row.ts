/** The record of an account as both stores select it. */
import type { AccountStatus } from '../../../domain/accounts/account.ts'
import type { VersionedAccount } from '../../../domain/accounts/account-store.ts'
import type { LimitOverrides } from '../../../domain/accounts/limits/tiers.ts'

export const PROFILE_COLUMNS = 'account_id, name, tier, overrides, status, created_at, version'

export type ProfileRow = [
  id: string,
  name: string,
  tier: string,
  overrides: string,
  status: AccountStatus,
  createdAt: number,
  version: number,
]

export function toVersionedAccount([
  id,
  name,
  tier,
  overrides,
  status,
  createdAt,
  version,
]: ProfileRow): VersionedAccount {
  const limits = JSON.parse(overrides) as LimitOverrides
  return { account: { id, name, tier, overrides: limits, status, createdAt: new Date(createdAt) }, version }
}
