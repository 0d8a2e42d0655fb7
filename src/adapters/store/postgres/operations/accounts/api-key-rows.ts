/** API keys at rest: their digests, their life, and a version that tells other processes what is new. */

import { WORKERS_ACCOUNT_ID } from '../../../../../domain/accounts/account.ts'
import type { StoredKey } from '../../../../../domain/accounts/keys/api-key.ts'
import type { VersionedKey } from '../../../../../domain/accounts/keys/key-store.ts'
import { KEY_COLUMNS, type KeyRow, toVersioned } from '../../../rows/api-key-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { lockVersions, nextVersion } from '../../database/versions.ts'

function toKey(row: KeyRow | undefined): StoredKey | null {
  return row === undefined ? null : toVersioned(row).key
}

const INSERT = statement(
  'apiKeys.insert',
  `INSERT INTO api_key (id, account_id, name, scopes, created_at, expires_at, digest, version)
   SELECT $1, $2, $3, $4, $5, $6, $7, ${nextVersion('api_key')}
   WHERE $2 = '${WORKERS_ACCOUNT_ID}' OR EXISTS (SELECT 1 FROM account_profile WHERE account_id = $2)`,
)

/** false: there is no such account. */
export async function insertApiKey(tx: Queryable, key: StoredKey): Promise<boolean> {
  const { id, accountId, name, scopes, createdAt, expiresAt, digest } = key
  const list = scopes === null ? null : JSON.stringify(scopes)
  await lockVersions(tx, 'api_key')
  const values = [id, accountId, name, list, createdAt.getTime(), expiresAt?.getTime() ?? null, digest]
  return (await tx.run(INSERT, values)) > 0
}

interface RotateInput {
  readonly keyId: string
  readonly digest: Uint8Array
  readonly previousUntil: Date
}

const ROTATE = statement<KeyRow>(
  'apiKeys.rotate',
  `UPDATE api_key SET previous_digest = digest, previous_until = $3, digest = $2, version = ${nextVersion('api_key')}
   WHERE id = $1 AND revoked_at IS NULL RETURNING ${KEY_COLUMNS}`,
)

export async function rotateApiKey(
  tx: Queryable,
  { keyId, digest, previousUntil }: RotateInput,
): Promise<StoredKey | null> {
  await lockVersions(tx, 'api_key')
  return toKey(await tx.get(ROTATE, [keyId, digest, previousUntil.getTime()]))
}

const REVOKE = statement<KeyRow>(
  'apiKeys.revoke',
  `UPDATE api_key SET revoked_at = coalesce(revoked_at, $2), version = ${nextVersion('api_key')} WHERE id = $1
   RETURNING ${KEY_COLUMNS}`,
)

export async function revokeApiKey(tx: Queryable, keyId: string, at: Date): Promise<StoredKey | null> {
  await lockVersions(tx, 'api_key')
  return toKey(await tx.get(REVOKE, [keyId, at.getTime()]))
}

// Processes report the uses of the same keys, each in an order of its own.
const TOUCH = statement(
  'apiKeys.touch',
  `WITH used AS MATERIALIZED (
     SELECT id, input.at FROM api_key
     JOIN (SELECT key_id, max(at) AS at FROM unnest($1::text[], $2::bigint[]) AS t (key_id, at) GROUP BY key_id) AS input ON key_id = id
     WHERE coalesce(last_used_at, 0) < input.at ORDER BY id FOR NO KEY UPDATE OF api_key
   )
   UPDATE api_key SET last_used_at = greatest(coalesce(last_used_at, 0), used.at) FROM used WHERE api_key.id = used.id`,
)

export async function touchApiKeys(
  db: Queryable,
  uses: readonly { readonly keyId: string; readonly at: Date }[],
): Promise<void> {
  await db.run(TOUCH, [uses.map(({ keyId }) => keyId), uses.map(({ at }) => at.getTime())])
}

const FIND = statement<KeyRow>('apiKeys.find', `SELECT ${KEY_COLUMNS} FROM api_key WHERE id = $1`)

export async function findApiKey(db: Queryable, keyId: string): Promise<StoredKey | null> {
  return toKey(await db.get(FIND, [keyId]))
}

const LIST = statement<KeyRow>(
  'apiKeys.list',
  `SELECT ${KEY_COLUMNS} FROM api_key WHERE account_id = $1 ORDER BY created_at, id`,
)

export async function listApiKeys(db: Queryable, accountId: string): Promise<StoredKey[]> {
  return (await db.all(LIST, [accountId])).map((row) => toVersioned(row).key)
}

const CHANGED = statement<KeyRow>(
  'apiKeys.changed',
  `SELECT ${KEY_COLUMNS} FROM api_key WHERE version > $1 ORDER BY version LIMIT $2`,
)

export async function listChangedApiKeys(db: Queryable, version: number, limit: number): Promise<VersionedKey[]> {
  return (await db.all(CHANGED, [version, limit])).map(toVersioned)
}
