/** Accounts of the cloud and serverless kinds: the record beside the counters, and the balance of those that pay. */
import { MAX_MICROS } from '../../../../lib/text/usd.ts'
import type { AccountDirectory, EnforcedLimits } from '../../../domain/accounts/account-store.ts'
import { defineStore, durable, get, read, run, type Steps, together } from '../statements/operation.ts'
import { command, postgresOnly, query, selectFrom, toRows, type Words } from '../statements/statement.ts'
import { changedAfter, lockVersions, nextVersion } from '../statements/versions.ts'
import { accountProfile } from '../tables/accounts.ts'
import { encode, omit } from '../tables/table.ts'

const profile = omit(accountProfile, 'version')

const INSERT = command('accounts.insert', ({ either }) =>
  either(
    'INSERT INTO account (id, max_running, max_queued) VALUES (:id, :maxRunning, :maxQueued) ON CONFLICT (id) DO NOTHING',
    'INSERT INTO account (id, max_queued) VALUES (:id, :maxQueued) ON CONFLICT (id) DO NOTHING',
  ),
)
const INSERT_LOAD = command(
  'accounts.insertLoad',
  postgresOnly(
    'INSERT INTO account_load (account_id, max_running) VALUES (:id, :maxRunning) ON CONFLICT (account_id) DO NOTHING',
  ),
)
const INSERT_PROFILE = command(
  'accounts.insertProfile',
  `INSERT INTO account_profile (${profile.columns}, version)
   VALUES (:id, :name, :tier, :overrides, :status, :createdAt, ${nextVersion('account_profile')})`,
)
const REPLACE = command(
  'accounts.replace',
  `UPDATE account_profile SET name = :name, tier = :tier, overrides = :overrides, status = :status,
     version = ${nextVersion('account_profile')}
   WHERE account_id = :id AND version = coalesce(CAST(:version AS bigint), version)`,
)
const FIND = query('accounts.find', profile, selectFrom(accountProfile, 'WHERE account_id = :accountId', profile))
const changed = changedAfter(accountProfile)

type NewLimits = readonly (EnforcedLimits & { readonly accountId: string })[]

const limitRows = (words: Words) =>
  words.rows(':limits', {
    account_id: 'text',
    max_running: 'bigint',
    max_queued: 'bigint',
    share_percent: 'integer',
    floor: 'bigint',
  })

/** Only rows that change are locked, in the order of their ids: when a tier is changed these may be all accounts. */
function setChanged(
  words: Words,
  column: string,
  [table, key]: readonly [string, string],
  value = `input.${column}`,
): string {
  return `
    WITH changed AS MATERIALIZED (
      SELECT ${table}.${key} AS its_key, ${value} AS its_value FROM ${limitRows(words)} AS input JOIN ${table} ON ${table}.${key} = input.account_id
      WHERE ${table}.${column} <> ${value} ORDER BY ${table}.${key} ${words.lock('NO KEY UPDATE', table)}
    )
    UPDATE ${table} SET ${column} = its_value FROM changed WHERE ${table}.${key} = its_key`
}

const LIMIT_QUEUED = command('accounts.limitQueued', (words) => setChanged(words, 'max_queued', ['account', 'id']))
const LIMIT_RUNNING = command('accounts.limitRunning', (words) =>
  setChanged(words, 'max_running', words.dialect === 'sqlite' ? ['account', 'id'] : ['account_load', 'account_id']),
)
const SET_SHARES = command('accounts.setShares', (words) =>
  setChanged(words, 'share_percent', words.dialect === 'sqlite' ? ['account', 'id'] : ['account_load', 'account_id']),
)
const ADD_BALANCES = command(
  'accounts.addBalances',
  (words) => `
    INSERT INTO credit_account (account_id, floor)
    SELECT account_id, floor FROM ${limitRows(words)} AS input WHERE floor IS NOT NULL ORDER BY account_id
    ON CONFLICT (account_id) DO NOTHING`,
)
// Of an account that is no longer metered the entries stay, so the balance stays too; with the lowest floor it cannot run out any more.
const SET_FLOORS = command('accounts.setFloors', (words) =>
  setChanged(words, 'floor', ['credit_account', 'account_id'], `coalesce(input.floor, ${-MAX_MICROS})`),
)

function* enforce(all: NewLimits): Steps<void> {
  const limits = toRows(
    'limits',
    all.map(({ accountId, maxRunning, maxQueued, sharePercent = 100, creditFloor }) => ({
      ...{ account_id: accountId, max_running: maxRunning, max_queued: maxQueued, floor: creditFloor },
      share_percent: sharePercent,
    })),
  )
  yield* together(
    run(LIMIT_QUEUED, limits),
    run(LIMIT_RUNNING, limits),
    run(SET_SHARES, limits),
    run(ADD_BALANCES, limits),
    run(SET_FLOORS, limits),
  )
}

export const accountDirectory = defineStore<AccountDirectory>('directory', {
  create: durable(function* (account, limits) {
    const { id } = account
    yield* lockVersions('account_profile')
    if ((yield* run(INSERT, { id, ...limits })) === 0) return false
    yield* run(INSERT_LOAD, { id, ...limits })
    yield* run(INSERT_PROFILE, encode(profile, account))
    yield* enforce([{ accountId: id, ...limits }])
    return true
  }),
  replace: durable(function* (account, limits, version) {
    yield* lockVersions('account_profile')
    const values = { ...encode(profile, account), version: version ?? null }
    if ((yield* run(REPLACE, values)) === 0) return false
    yield* enforce([{ accountId: account.id, ...limits }])
    return true
  }),
  enforce: durable(
    function* (limits) {
      if (limits.length > 0) yield* enforce(limits)
    },
    { isEssential: true, isRepeatable: true },
  ),
  find: read(function* (accountId) {
    return (yield* get(FIND, { accountId })) ?? null
  }),
  changedAfter: read(function* (version, limit) {
    return (yield* changed(version, limit)).map(({ version, ...account }) => ({ account, version }))
  }),
})
