/** An API key as both stores select it, and the way back to the key and the version that tells what is new. */
import type { VersionedKey } from '../../../domain/accounts/keys/key-store.ts'
import { toDate } from './row-date.ts'

export type KeyRow = [
  id: string,
  accountId: string,
  name: string,
  scopes: string | null,
  createdAt: number,
  expiresAt: number | null,
  revokedAt: number | null,
  lastUsedAt: number | null,
  digest: Uint8Array,
  previousDigest: Uint8Array | null,
  previousUntil: number | null,
  version: number,
]

export const KEY_COLUMNS = `id, account_id, name, scopes, created_at, expires_at, revoked_at, last_used_at, digest, previous_digest,
  previous_until, version`

export function toVersioned(row: KeyRow): VersionedKey {
  const [id, accountId, name, scopes, createdAt, expiresAt, revokedAt, lastUsedAt, digest, ...rest] = row
  const [previousDigest, previousUntil, version] = rest
  return {
    key: {
      ...{ id, accountId, name },
      // Bytes of their own: keys are kept in memory, and a part of what the connection received would keep all of it.
      digest: new Uint8Array(digest),
      previousDigest: previousDigest === null ? null : new Uint8Array(previousDigest),
      scopes: scopes === null ? null : (JSON.parse(scopes) as string[]),
      createdAt: new Date(createdAt),
      expiresAt: toDate(expiresAt),
      revokedAt: toDate(revokedAt),
      lastUsedAt: toDate(lastUsedAt),
      previousUntil: toDate(previousUntil),
    },
    version,
  }
}
