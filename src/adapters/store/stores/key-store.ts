/** API keys at rest: their digests, their life, and a version that tells other processes what is new. */
import { WORKERS_ACCOUNT_ID } from '../../../domain/accounts/account.ts'
import type { KeyStore } from '../../../domain/accounts/keys/key-store.ts'
import { all, defineStore, durable, get, read, relaxed, run } from '../statements/operation.ts'
import { command, query, selectFrom, toRows } from '../statements/statement.ts'
import { changedAfter, lockVersions, nextVersion } from '../statements/versions.ts'
import { apiKey } from '../tables/accounts.ts'
import { encode, omit } from '../tables/table.ts'

const stored = omit(apiKey, 'version')
const created = omit(stored, 'revokedAt', 'lastUsedAt', 'previousDigest', 'previousUntil')

const INSERT = command(
  'keys.insert',
  `INSERT INTO api_key (${created.columns}, version)
   SELECT :id, :accountId, :name, :scopes, :createdAt, :expiresAt, :digest, :endpoints, ${nextVersion('api_key')}
   WHERE :accountId = '${WORKERS_ACCOUNT_ID}' OR EXISTS (SELECT 1 FROM account_profile WHERE account_id = :accountId)`,
)
const ROTATE = query(
  'keys.rotate',
  stored,
  `UPDATE api_key SET previous_digest = digest, previous_until = :previousUntil, digest = :digest, version = ${nextVersion('api_key')}
   WHERE id = :keyId AND revoked_at IS NULL RETURNING ${stored.columns}`,
)
const REVOKE = query(
  'keys.revoke',
  stored,
  `UPDATE api_key SET revoked_at = coalesce(revoked_at, :at), version = ${nextVersion('api_key')} WHERE id = :keyId
   RETURNING ${stored.columns}`,
)
// Processes report the uses of the same keys, each in an order of its own.
const TOUCH = command(
  'keys.touch',
  (words) => `
    WITH used AS MATERIALIZED (
      SELECT id, input.at FROM (
        SELECT key_id, max(at) AS at FROM ${words.rows(':uses', { key_id: 'text', at: 'bigint' })} AS used GROUP BY key_id
      ) AS input JOIN api_key ON id = key_id
      WHERE coalesce(last_used_at, 0) < input.at ORDER BY id ${words.lock('NO KEY UPDATE', 'api_key')}
    )
    UPDATE api_key SET last_used_at = ${words.greatest('coalesce(last_used_at, 0)', 'used.at')} FROM used WHERE api_key.id = used.id`,
)
const FIND = query('keys.find', stored, selectFrom(apiKey, 'WHERE id = :keyId', stored))
const LIST = query(
  'keys.list',
  stored,
  selectFrom(apiKey, 'WHERE account_id = :accountId ORDER BY created_at, id', stored),
)
const changed = changedAfter(apiKey)

export const keyStore = defineStore<KeyStore>('apiKeys', {
  insert: durable(function* (key) {
    yield* lockVersions('api_key')
    return (yield* run(INSERT, encode(created, key))) > 0
  }),
  rotate: durable(function* ({ keyId, digest, previousUntil }) {
    yield* lockVersions('api_key')
    return (yield* get(ROTATE, { keyId, digest, previousUntil })) ?? null
  }),
  revoke: durable(
    function* (keyId, at) {
      yield* lockVersions('api_key')
      return (yield* get(REVOKE, { keyId, at })) ?? null
    },
    { isEssential: true },
  ),
  touch: relaxed(function* (uses) {
    if (uses.length > 0)
      yield* run(
        TOUCH,
        toRows(
          'uses',
          uses.map(({ keyId, at }) => ({ key_id: keyId, at })),
        ),
      )
  }),
  find: read(function* (keyId) {
    return (yield* get(FIND, { keyId })) ?? null
  }),
  list: read(function* (accountId) {
    return yield* all(LIST, { accountId })
  }),
  changedAfter: read(function* (version, limit) {
    return (yield* changed(version, limit)).map(({ version, ...key }) => ({ key, version }))
  }),
})
