/**
 * An idempotency key is single use within its account for 24 hours. It is claimed in the same transaction as the record it
 * creates, so a refusal before that transaction leaves it free. Bodies are never compared and nothing is replayed.
 */
export const KEY_LIFETIME_MS = 24 * 60 * 60 * 1000
export const KEY_MAX_LENGTH = 255

export interface KeyClaim {
  readonly key: string
  readonly claimedAt: Date
  readonly expiresAt: Date
}

/** What an earlier claim of the same key created. */
export interface KeyHolder {
  readonly jobId: string | null
  readonly assetId: string | null
}

export interface IdempotencyStore {
  findKey(accountId: string, key: string, now: Date): Promise<KeyHolder | null>
  /** Removes keys past their life; returns how many. */
  sweepKeys(now: Date): Promise<number>
}
