/** What can go wrong between us and a bucket, and what the service says about it. */
import { ServiceError, storageUnavailable } from '../../../domain/errors.ts'
import { toStorageError as toDiskRefusal } from '../fs/file-ops.ts'

/** `status` null: no answer came. `code` is the service's own word, or what broke. */
export class S3Error extends Error {
  readonly status: number | null
  readonly code: string
  /** Where the bucket is, as far as the answer says; null: it does not. */
  readonly region: string | null
  /** By the clock of the storage; null: it does not say. */
  readonly answeredAt: Date | null

  constructor(message: string, { status, code, region = null, answeredAt = null, cause }: S3ErrorOptions) {
    super(message, { cause })
    this.name = 'S3Error'
    this.status = status
    this.code = code
    this.region = region
    this.answeredAt = answeredAt
  }
}

interface S3ErrorOptions {
  readonly status: number | null
  readonly code: string
  readonly region?: string | null
  readonly answeredAt?: Date | null
  readonly cause?: unknown
}

// Bytes that were damaged or cut on their way to the service; what stood in between is another one the next time.
const DAMAGED_ON_THE_WAY = ['BadDigest', 'XAmzContentSHA256Mismatch', 'XAmzContentChecksumMismatch', 'IncompleteBody']
const PASSING = new Set([...DAMAGED_ON_THE_WAY, 'RequestTimeout', 'SlowDown', 'InternalError', 'ServiceUnavailable'])
const FULL = new Set(['QuotaExceeded', 'XMinioStorageFull', 'XMinioAdminBucketQuotaExceeded', 'InsufficientCapacity'])
const NO_ROOM = 507
const TOO_MANY = 429

/** Whether the same request may succeed a moment later. */
export function mayPass(error: unknown): boolean {
  if (!(error instanceof S3Error)) return false
  // Who waited in vain for a connection has waited long enough.
  if (error.status === null) return error.code !== 'aborted' && error.code !== 'busy'
  if (FULL.has(error.code) || error.status === NO_ROOM) return false
  return error.status >= 500 || error.status === TOO_MANY || PASSING.has(error.code)
}

export function isNotFound(error: unknown): boolean {
  return error instanceof S3Error && error.status === 404 && error.code !== 'NoSuchBucket'
}

const PASSED_KEYS = ['ExpiredToken', 'ExpiredTokenException', 'TokenRefreshRequired', 'InvalidToken']

/** Whether newer keys may be taken where these were not. The answer to a HEAD has no word for why it refuses keys of a session. */
export function isAboutKeys(error: unknown, isOfSession: boolean): boolean {
  return hasS3Code(error, ...PASSED_KEYS, 'InvalidAccessKeyId', ...(isOfSession ? ['400'] : []))
}

export function hasS3Code(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof S3Error && codes.includes(error.code)
}

/**
 * What callers are told. Keys that are refused and a bucket that is gone count as storage that is away: nobody but the operator
 * can mend them, the log says what they are, and nothing is lost meanwhile. Files of this machine have no more room than its disk.
 * Whatever else is thrown stays as it is.
 */
export function toStorageError(error: unknown): unknown {
  if (!(error instanceof S3Error)) return toDiskRefusal(error)
  if (error.code === 'aborted') return error
  if (FULL.has(error.code) || error.status === NO_ROOM) {
    return new ServiceError('storage_full', 'the storage is full; nothing was kept', { cause: error })
  }
  const isClosedToUs = error.status === 401 || error.status === 403 || error.code === 'NoSuchBucket'
  return mayPass(error) || isClosedToUs || error.code === 'busy' ? storageUnavailable(error) : error
}

/** What the operator has to change before the bucket can be used. */
interface BucketMistake {
  readonly fault: string
  readonly remedy: string
}

const GIVE_KEYS =
  'set ATELIER_BLOBS_KEYS to id:secret (or id:secret:token), or name a file of them with keys=<file> in blobs'
const MISTAKES: Readonly<Record<string, BucketMistake>> = {
  InvalidAccessKeyId: { fault: 'the storage does not know the key id', remedy: GIVE_KEYS },
  SignatureDoesNotMatch: { fault: 'the secret does not belong to the key id', remedy: GIVE_KEYS },
  NoSuchBucket: { fault: 'there is no such bucket', remedy: 'create it, or correct the name or the endpoint' },
  InvalidBucketName: { fault: 'the storage takes no bucket of this name', remedy: 'correct it' },
  RequestTimeTooSkewed: { fault: 'the clock of this machine is wrong', remedy: 'set it' },
  no_keys: {
    fault: 'no keys were found: not in the environment or a profile, nor by a web identity, a container or the machine',
    remedy: `${GIVE_KEYS}, or give this process a role`,
  },
}
const WRONG_REGION = ['AuthorizationHeaderMalformed', 'PermanentRedirect', 'TemporaryRedirect', '301', '307']

/** null: it may pass by itself, or is none of the storage. */
export function toMistake(error: unknown): BucketMistake | null {
  if (!(error instanceof S3Error)) return null
  const { code, message, region, status } = error
  if (Object.hasOwn(MISTAKES, code)) return MISTAKES[code]
  if (code === 'keys_refused') return { fault: message, remedy: 'correct the role, the token file or the profile' }
  if (PASSED_KEYS.includes(code))
    return { fault: 'the session of the keys is over, or its token is wrong', remedy: GIVE_KEYS }
  if (WRONG_REGION.includes(code))
    return { fault: 'the bucket is in another region', remedy: `set region=${region ?? '<where it is>'} in blobs` }
  if (status !== 401 && status !== 403) return null
  return {
    fault: `the keys are not allowed to use it (${code})`,
    remedy: 'let them get, put, delete and list below the prefix',
  }
}
