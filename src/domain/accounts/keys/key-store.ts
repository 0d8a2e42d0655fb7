import type { StoredKey } from './api-key.ts'

export interface VersionedKey {
  readonly key: StoredKey
  /** Grows with every change of any key, its last use excepted, in the order in which the changes become readable. */
  readonly version: number
}

interface NewSecret {
  readonly keyId: string
  readonly digest: Uint8Array
  /** Until when the secret so far counts as well. */
  readonly previousUntil: Date
}

/** API keys at rest. Secrets never get here, only their digests. */
export interface KeyStore {
  /** false: there is no such account. Keys of workers need none. */
  insert(key: StoredKey): Promise<boolean>
  /** The key with its new secret; null when it is unknown or revoked. */
  rotate(secret: NewSecret): Promise<StoredKey | null>
  /** The key as it is then; null when it is unknown. Revoking twice keeps the first moment. */
  revoke(keyId: string, at: Date): Promise<StoredKey | null>
  touch(uses: readonly { readonly keyId: string; readonly at: Date }[]): Promise<void>
  find(keyId: string): Promise<StoredKey | null>
  /** Oldest first, revoked and expired ones included. */
  list(accountId: string): Promise<readonly StoredKey[]>
  /** Keys whose version is above `version`, in the order of their changes. */
  changedAfter(version: number, limit: number): Promise<readonly VersionedKey[]>
}
