/** What can go wrong between us and a bucket, and what the service says about it. */
import { ServiceError, storageUnavailable } from '../../../domain/errors.ts'
import { toStorageError as toDiskRefusal } from '../fs/file-ops.ts'

/** `status` null: no answer came. `code` is the service's own word, or what broke. */
export class S3Error extends Error {
  readonly status: number | null
  readonly code: string

  constructor(message: string, { status, code, cause }: S3ErrorOptions) {
    super(message, { cause })
    this.name = 'S3Error'
    this.status = status
    this.code = code
  }
}

interface S3ErrorOptions {
  readonly status: number | null
  readonly code: string
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
