/**
 * An idempotency key is single use within its account for 24 hours. It is claimed in the same transaction as the record it
 * creates, so a refusal before that transaction leaves it free. A key that was used is refused; only a batch that is sent again with
 * the same bytes is answered once more.
 */
import { ServiceError } from '../errors.ts'

const KEY_LIFETIME_MS = 24 * 60 * 60 * 1000
const KEY_MAX_LENGTH = 255

export interface KeyClaim {
  readonly key: string
  readonly claimedAt: Date
  readonly expiresAt: Date
}

/** What an earlier claim of the same key created. */
export interface KeyHolder {
  readonly jobId: string | null
  readonly assetId: string | null
  /** Left out: it was no batch. */
  readonly batchId?: string | null
}

export interface IdempotencyStore {
  findKey(accountId: string, key: string, now: Date): Promise<KeyHolder | null>
  /** Removes keys past their life; returns how many. */
  sweepKeys(now: Date): Promise<number>
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are exactly what is refused
const CONTROL = /[\x00-\x1f\x7f]/

/**
 * The key of a request, or null when it has none. Hand in all values of the header: a client that repeats it does not know
 * which key it uses, and joined values would silently be a third one.
 */
export function readIdempotencyKey(header: string | readonly string[] | undefined): string | null {
  if (header === undefined) return null
  const values = typeof header === 'string' ? [header] : header
  const [key] = values
  if (key === undefined) return null
  if (values.length > 1) throw refuse('Idempotency-Key may be sent only once')
  if (key.trim() === '' || key.length > KEY_MAX_LENGTH) {
    throw refuse(`Idempotency-Key must have 1 to ${KEY_MAX_LENGTH} characters`)
  }
  if (CONTROL.test(key)) throw refuse('Idempotency-Key must not contain control characters')
  return key
}

function refuse(message: string): ServiceError {
  return new ServiceError('invalid_request', message, { details: { header: 'Idempotency-Key' } })
}

export function toKeyClaim(key: string | null, now: Date): KeyClaim | null {
  return key === null ? null : { key, claimedAt: now, expiresAt: new Date(now.getTime() + KEY_LIFETIME_MS) }
}

/** Names what the first use of the key has made, so that the caller can go on with that. */
export function keyReuse({ assetId, jobId, batchId = null }: KeyHolder): ServiceError {
  const details = {
    ...(assetId !== null && { assetId }),
    ...(jobId !== null && { jobId }),
    ...(batchId !== null && { batchId }),
  }
  return new ServiceError('idempotency_key_reuse', 'this Idempotency-Key has been used already; nothing was done', {
    details,
  })
}
