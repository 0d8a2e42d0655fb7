import { ServiceError } from '../errors.ts'
import { KEY_LIFETIME_MS, type KeyClaim, type KeyHolder } from './key-record.ts'

export function toKeyClaim(key: string | null, now: Date): KeyClaim | null {
  return key === null ? null : { key, claimedAt: now, expiresAt: new Date(now.getTime() + KEY_LIFETIME_MS) }
}

/** Names what the first use of the key has made, so that the caller can go on with that. */
export function keyReuse({ assetId, jobId }: KeyHolder): ServiceError {
  const details = { ...(assetId !== null && { asset_id: assetId }), ...(jobId !== null && { job_id: jobId }) }
  return new ServiceError('idempotency_key_reuse', 'this Idempotency-Key has been used already; nothing was done', {
    details,
  })
}
