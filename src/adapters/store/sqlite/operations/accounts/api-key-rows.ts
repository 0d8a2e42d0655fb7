/** API keys at rest: their digests, their life, and a version that tells other processes what is new. */

import type { DatabaseSync } from 'node:sqlite'
import { WORKERS_ACCOUNT_ID } from '../../../../../domain/accounts/account.ts'
import type { StoredKey } from '../../../../../domain/accounts/keys/api-key.ts'
import type { VersionedKey } from '../../../../../domain/accounts/keys/key-store.ts'
import { KEY_COLUMNS, type KeyRow, toVersioned } from '../../../rows/api-key-row.ts'
import { prepareRows } from '../statement.ts'

const NEXT_VERSION = '(SELECT coalesce(max(version), 0) + 1 FROM api_key)'

export function prepareInsertApiKey(database: DatabaseSync): (key: StoredKey) => boolean {
  const exists = prepareRows<[number]>(database, 'SELECT 1 FROM account_profile WHERE account_id = ?')
  const insert = database.prepare(`
    INSERT INTO api_key (id, account_id, name, scopes, created_at, expires_at, digest, version)
    VALUES (?, ?, ?, ?, ?, ?, ?, ${NEXT_VERSION})`)
  return ({ id, accountId, name, scopes, createdAt, expiresAt, digest }) => {
    if (accountId !== WORKERS_ACCOUNT_ID && exists.get(accountId) === undefined) return false
    const list = scopes === null ? null : JSON.stringify(scopes)
    insert.run(id, accountId, name, list, createdAt.getTime(), expiresAt?.getTime() ?? null, digest)
    return true
  }
}

interface RotateInput {
  readonly keyId: string
  readonly digest: Uint8Array
  readonly previousUntil: number
}

export function prepareRotateApiKey(database: DatabaseSync): (input: RotateInput) => StoredKey | null {
  const update = prepareRows<KeyRow>(
    database,
    `UPDATE api_key SET previous_digest = digest, previous_until = ?3, digest = ?2, version = ${NEXT_VERSION}
     WHERE id = ?1 AND revoked_at IS NULL RETURNING ${KEY_COLUMNS}`,
  )
  return ({ keyId, digest, previousUntil }) => {
    const row = update.get(keyId, digest, previousUntil)
    return row === undefined ? null : toVersioned(row).key
  }
}

export function prepareRevokeApiKey(
  database: DatabaseSync,
): (input: { readonly keyId: string; readonly at: number }) => StoredKey | null {
  const update = prepareRows<KeyRow>(
    database,
    `UPDATE api_key SET revoked_at = coalesce(revoked_at, ?2), version = ${NEXT_VERSION} WHERE id = ?1
     RETURNING ${KEY_COLUMNS}`,
  )
  return ({ keyId, at }) => {
    const row = update.get(keyId, at)
    return row === undefined ? null : toVersioned(row).key
  }
}

export function prepareTouchApiKeys(
  database: DatabaseSync,
): (uses: readonly { readonly keyId: string; readonly at: number }[]) => void {
  const update = database.prepare(`
    UPDATE api_key SET last_used_at = max(coalesce(last_used_at, 0), ?2) WHERE id = ?1`)
  return (uses) => {
    for (const { keyId, at } of uses) update.run(keyId, at)
  }
}

export function prepareFindApiKey(database: DatabaseSync): (keyId: string) => StoredKey | null {
  const select = prepareRows<KeyRow>(database, `SELECT ${KEY_COLUMNS} FROM api_key WHERE id = ?`)
  return (keyId) => {
    const row = select.get(keyId)
    return row === undefined ? null : toVersioned(row).key
  }
}

export function prepareListApiKeys(database: DatabaseSync): (accountId: string) => StoredKey[] {
  const select = prepareRows<KeyRow>(
    database,
    `SELECT ${KEY_COLUMNS} FROM api_key WHERE account_id = ? ORDER BY created_at, id`,
  )
  return (accountId) => select.all(accountId).map((row) => toVersioned(row).key)
}

export function prepareChangedApiKeys(
  database: DatabaseSync,
): (query: { readonly version: number; readonly limit: number }) => VersionedKey[] {
  const select = prepareRows<KeyRow>(
    database,
    `SELECT ${KEY_COLUMNS} FROM api_key WHERE version > ? ORDER BY version LIMIT ?`,
  )
  return ({ version, limit }) => select.all(version, limit).map(toVersioned)
}
