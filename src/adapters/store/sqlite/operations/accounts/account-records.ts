/** Accounts of the cloud and serverless kinds: the record beside the counters, and the balance of those that pay. */
import type { DatabaseSync } from 'node:sqlite'
import { MAX_MICROS } from '../../../../../../lib/text/usd.ts'
import type { AccountRecord } from '../../../../../domain/accounts/account.ts'
import type { EnforcedLimits, VersionedAccount } from '../../../../../domain/accounts/account-store.ts'
import { PROFILE_COLUMNS, type ProfileRow, toVersionedAccount } from '../../../rows/account-row.ts'
import { prepareRows } from '../statement.ts'

interface AccountInput {
  readonly account: AccountRecord
  readonly limits: EnforcedLimits
}

interface ReplaceInput extends AccountInput {
  /** null: whatever it is. */
  readonly version: number | null
}

type EnforceInput = readonly (EnforcedLimits & { readonly accountId: string })[]

const NEXT_VERSION = '(SELECT coalesce(max(version), 0) + 1 FROM account_profile)'

export function prepareCreateAccount(database: DatabaseSync): (input: AccountInput) => boolean {
  const insertHot = database.prepare(`
    INSERT INTO account (id, max_running, max_queued) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING`)
  const insertProfile = database.prepare(`
    INSERT INTO account_profile (account_id, name, tier, overrides, status, created_at, version)
    VALUES (?, ?, ?, ?, ?, ?, ${NEXT_VERSION})`)
  const enforce = prepareEnforceOne(database)
  return ({ account, limits }) => {
    const { id, name, tier, overrides, status, createdAt } = account
    if (insertHot.run(id, limits.maxRunning, limits.maxQueued).changes === 0) return false
    insertProfile.run(id, name, tier, JSON.stringify(overrides), status, createdAt.getTime())
    enforce(id, limits)
    return true
  }
}

export function prepareReplaceAccount(database: DatabaseSync): (input: ReplaceInput) => boolean {
  const update = database.prepare(`
    UPDATE account_profile SET name = ?2, tier = ?3, overrides = ?4, status = ?5, version = ${NEXT_VERSION}
    WHERE account_id = ?1 AND version = coalesce(?6, version)`)
  const enforce = prepareEnforceOne(database)
  return ({ account, limits, version }) => {
    const { id, name, tier, overrides, status } = account
    if (update.run(id, name, tier, JSON.stringify(overrides), status, version).changes === 0) return false
    enforce(id, limits)
    return true
  }
}

export function prepareEnforceLimits(database: DatabaseSync): (input: EnforceInput) => void {
  const enforce = prepareEnforceOne(database)
  return (all) => {
    for (const { accountId, ...limits } of all) enforce(accountId, limits)
  }
}

function prepareEnforceOne(database: DatabaseSync): (accountId: string, limits: EnforcedLimits) => void {
  const limit = database.prepare(`
    UPDATE account SET max_running = ?2, max_queued = ?3 WHERE id = ?1 AND (max_running, max_queued) <> (?2, ?3)`)
  const meter = database.prepare(`
    INSERT INTO credit_account (account_id, floor) VALUES (?1, ?2)
    ON CONFLICT (account_id) DO UPDATE SET floor = excluded.floor WHERE floor <> excluded.floor`)
  // The entries stay, so the balance stays too; with this floor it cannot run out any more.
  const unmeter = database.prepare('UPDATE credit_account SET floor = ?2 WHERE account_id = ?1')
  return (accountId, { maxRunning, maxQueued, creditFloor }) => {
    limit.run(accountId, maxRunning, maxQueued)
    if (creditFloor === null) unmeter.run(accountId, -MAX_MICROS)
    else meter.run(accountId, creditFloor)
  }
}

export function prepareFindAccount(database: DatabaseSync): (accountId: string) => AccountRecord | null {
  const select = prepareRows<ProfileRow>(
    database,
    `SELECT ${PROFILE_COLUMNS} FROM account_profile WHERE account_id = ?`,
  )
  return (accountId) => {
    const row = select.get(accountId)
    return row === undefined ? null : toVersionedAccount(row).account
  }
}

export function prepareChangedAccounts(
  database: DatabaseSync,
): (query: { readonly version: number; readonly limit: number }) => VersionedAccount[] {
  const select = prepareRows<ProfileRow>(
    database,
    `SELECT ${PROFILE_COLUMNS} FROM account_profile WHERE version > ? ORDER BY version LIMIT ?`,
  )
  return ({ version, limit }) => select.all(version, limit).map(toVersionedAccount)
}
