/** Accounts of the cloud and serverless kinds: the record beside the counters, and the balance of those that pay. */
import { MAX_MICROS } from '../../../../../../lib/text/usd.ts'
import type { AccountRecord } from '../../../../../domain/accounts/account.ts'
import type { EnforcedLimits, VersionedAccount } from '../../../../../domain/accounts/account-store.ts'
import { PROFILE_COLUMNS, type ProfileRow, toVersionedAccount } from '../../../rows/account-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { lockVersions, nextVersion } from '../../database/versions.ts'

const INSERT_SUBMITS = statement(
  'accounts.insertSubmits',
  'INSERT INTO account (id, max_queued) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING',
)
const INSERT_LOAD = statement(
  'accounts.insertLoad',
  'INSERT INTO account_load (account_id, max_running) VALUES ($1, $2) ON CONFLICT (account_id) DO NOTHING',
)
const INSERT_PROFILE = statement(
  'accounts.insertProfile',
  `INSERT INTO account_profile (${PROFILE_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, ${nextVersion('account_profile')})`,
)

/** false: the id is taken. */
export async function createAccount(tx: Queryable, account: AccountRecord, limits: EnforcedLimits): Promise<boolean> {
  const { id, name, tier, overrides, status, createdAt } = account
  await lockVersions(tx, 'account_profile')
  if ((await tx.run(INSERT_SUBMITS, [id, limits.maxQueued])) === 0) return false
  await tx.run(INSERT_LOAD, [id, limits.maxRunning])
  await tx.run(INSERT_PROFILE, [id, name, tier, JSON.stringify(overrides), status, createdAt.getTime()])
  await enforceLimits(tx, [{ accountId: id, ...limits }])
  return true
}

const REPLACE = statement(
  'accounts.replace',
  `UPDATE account_profile SET name = $2, tier = $3, overrides = $4, status = $5, version = ${nextVersion('account_profile')}
   WHERE account_id = $1 AND version = coalesce($6::bigint, version)`,
)

/** false: there is no such account, or it has another version than the one that is named. */
export async function replaceAccount(
  tx: Queryable,
  account: AccountRecord,
  { limits, version }: { readonly limits: EnforcedLimits; readonly version: number | undefined },
): Promise<boolean> {
  const { id, name, tier, overrides, status } = account
  await lockVersions(tx, 'account_profile')
  if ((await tx.run(REPLACE, [id, name, tier, JSON.stringify(overrides), status, version ?? null])) === 0) return false
  await enforceLimits(tx, [{ accountId: id, ...limits }])
  return true
}

// Only rows that change are locked, in the order of their ids: when a tier is changed these may be all accounts.
const LIMIT_SUBMITS = statement(
  'accounts.limitSubmits',
  `WITH changed AS MATERIALIZED (
     SELECT id, input.max_queued FROM account JOIN unnest($1::text[], $2::bigint[]) AS input (account_id, max_queued) ON id = account_id
     WHERE account.max_queued <> input.max_queued ORDER BY id FOR NO KEY UPDATE OF account
   )
   UPDATE account SET max_queued = changed.max_queued FROM changed WHERE account.id = changed.id`,
)
const LIMIT_LOAD = statement(
  'accounts.limitLoad',
  `WITH changed AS MATERIALIZED (
     SELECT account_id, input.max_running FROM account_load JOIN unnest($1::text[], $2::bigint[]) AS input (account_id, max_running)
     USING (account_id)
     WHERE account_load.max_running <> input.max_running ORDER BY account_id FOR NO KEY UPDATE OF account_load
   )
   UPDATE account_load SET max_running = changed.max_running FROM changed WHERE account_load.account_id = changed.account_id`,
)
const ADD_BALANCES = statement(
  'accounts.addBalances',
  `INSERT INTO credit_account (account_id, floor)
   SELECT account_id, floor FROM unnest($1::text[], $2::bigint[]) AS input (account_id, floor)
   WHERE floor IS NOT NULL ORDER BY account_id
   ON CONFLICT (account_id) DO NOTHING`,
)
// Of an account that is no longer metered the entries stay, so the balance stays too; with the lowest floor it cannot run out any more.
const SET_FLOORS = statement(
  'accounts.setFloors',
  `WITH changed AS MATERIALIZED (
     SELECT account_id, coalesce(input.floor, ${-MAX_MICROS}) AS floor
     FROM credit_account JOIN unnest($1::text[], $2::bigint[]) AS input (account_id, floor) USING (account_id)
     WHERE credit_account.floor <> coalesce(input.floor, ${-MAX_MICROS}) ORDER BY account_id FOR NO KEY UPDATE OF credit_account
   )
   UPDATE credit_account SET floor = changed.floor FROM changed WHERE credit_account.account_id = changed.account_id`,
)

/** Each account is named once. */
export async function enforceLimits(
  tx: Queryable,
  limits: readonly (EnforcedLimits & { readonly accountId: string })[],
): Promise<void> {
  const ids = limits.map(({ accountId }) => accountId)
  const floors = limits.map(({ creditFloor }) => creditFloor)
  await Promise.all([
    tx.run(LIMIT_SUBMITS, [ids, limits.map(({ maxQueued }) => maxQueued)]),
    tx.run(LIMIT_LOAD, [ids, limits.map(({ maxRunning }) => maxRunning)]),
    tx.run(ADD_BALANCES, [ids, floors]),
    tx.run(SET_FLOORS, [ids, floors]),
  ])
}

const FIND = statement<ProfileRow>(
  'accounts.find',
  `SELECT ${PROFILE_COLUMNS} FROM account_profile WHERE account_id = $1`,
)

export async function findAccount(db: Queryable, accountId: string): Promise<AccountRecord | null> {
  const row = await db.get(FIND, [accountId])
  return row === undefined ? null : toVersionedAccount(row).account
}

const CHANGED = statement<ProfileRow>(
  'accounts.changed',
  `SELECT ${PROFILE_COLUMNS} FROM account_profile WHERE version > $1 ORDER BY version LIMIT $2`,
)

export async function listChangedAccounts(db: Queryable, version: number, limit: number): Promise<VersionedAccount[]> {
  return (await db.all(CHANGED, [version, limit])).map(toVersionedAccount)
}
