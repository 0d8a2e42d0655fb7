import { createBackoff, sleep } from '../../lib/waiting/sleep.ts'

/**
 * Every way in which the service refuses, as one closed set without any HTTP in it. Each surface maps it once to its own
 * statuses and words. Whatever is thrown and is not a ServiceError is a defect: the surface answers with its generic failure.
 */
export type Refusal =
  | 'invalid_request' // the request itself is malformed: JSON, header, query, a closed object's unknown key
  | 'invalid_field' // well-formed, but one named field has a value that is not allowed
  | 'invalid_metadata_filter'
  | 'invalid_cursor' // no cursor of ours, or not for this list
  | 'metadata_invalid'
  | 'unauthorized'
  | 'forbidden'
  | 'forbidden_origin'
  | 'forbidden_host'
  | 'not_found'
  | 'wrong_method' // the address exists, and takes others
  | 'blob_not_found'
  | 'output_unavailable'
  | 'hash_mismatch'
  | 'asset_in_use'
  | 'weights_conflict' // a file of weights, or an upload of one, is not as the request takes it to be
  | 'offset_mismatch' // an upload goes on from another place than the caller thinks
  | 'upload_locked' // another request is sending to this upload; it passes
  | 'checksum_mismatch' // a piece of an upload was damaged on its way
  | 'unsupported_version' // of a protocol
  | 'unsupported_media_type'
  | 'payload_too_large'
  | 'range_not_satisfiable'
  | 'invalid_workflow'
  | 'workflow_format_ui'
  | 'missing_asset'
  | 'invalid_input' // inputs of a call of an endpoint, all that are wrong
  | 'breaking_change' // a new version of an endpoint would break those who call it
  | 'revision_mismatch' // it was changed since the caller read it
  | 'not_waiting' // a job runs or has ended; only one that waits can be moved
  | 'endpoint_stopped' // its owner must start it again
  | 'batch_refused' // some of many that were to be accepted together cannot be
  | 'idempotency_key_reuse'
  | 'queue_full'
  | 'run_limit' // so many jobs at a time, or in a period, as the owner of an endpoint allows: it passes
  | 'spend_limit' // the owner's budget for the period does not cover one more job
  | 'rate_limited'
  | 'too_many_streams'
  | 'storage_full' // the disk has no room; nothing was kept
  | 'store_unavailable' // the database, or the storage of bytes, does not answer; it passes, and whether a write was made may be unknown
  | 'insufficient_credits'
  | 'subscription_inactive' // the account may not run anything until its subscription is active again
  | 'deployment_not_ready' // it can still become ready: retry
  | 'deployment_stopped' // only an operator can start it again
  | 'refused_by_policy' // the operator's hook does not allow it; the message is the hook's
  | 'check_unavailable' // the operator's hook has to be asked first, and gives no answer; it may pass
  | 'link_invalid' // a signed address that is expired, altered or made for something else
  | 'overloaded' // more is being sent at once than the service holds in memory; it passes within seconds
  | 'shutting_down' // the process drains and takes no new work

/** Facts for programs. A surface that shows them spells the names its own way and passes the values on unchanged. */
export type RefusalDetails = Readonly<Record<string, unknown>>

interface RefusalOptions {
  readonly details?: RefusalDetails
  readonly retryAfterSeconds?: number
  readonly cause?: unknown
}

/** A refusal on its way to a surface. `message` is safe to show to the caller. */
export class ServiceError extends Error {
  readonly refusal: Refusal
  readonly details: RefusalDetails | null
  readonly retryAfterSeconds: number | null

  constructor(refusal: Refusal, message: string, options: RefusalOptions = {}) {
    super(message, { cause: options.cause })
    this.name = 'ServiceError'
    this.refusal = refusal
    this.details = options.details ?? null
    this.retryAfterSeconds = options.retryAfterSeconds ?? null
  }
}

/** One named field has a value that is not allowed. The message is a sentence that begins with the field: `limit must be …`. */
export function invalidField(field: string, problem: string, details: RefusalDetails = {}): ServiceError {
  return new ServiceError('invalid_field', `${field} ${problem}`, { details: { field, ...details } })
}

// About the time that a database takes to start again after a crash.
const OUTAGE_RETRY_SECONDS = 2

/** What an adapter throws while its database is away. The message names no machine; the cause is for the log. */
export function storeUnavailable(cause: unknown): ServiceError {
  return new ServiceError('store_unavailable', 'the database does not answer at the moment; send the request again', {
    retryAfterSeconds: OUTAGE_RETRY_SECONDS,
    cause,
  })
}

/** The same for the storage of bytes. */
export function storageUnavailable(cause: unknown): ServiceError {
  return new ServiceError(
    'store_unavailable',
    'the storage of files does not answer at the moment; send the request again',
    {
      retryAfterSeconds: OUTAGE_RETRY_SECONDS,
      cause,
    },
  )
}

export function isStoreAway(error: unknown): boolean {
  return error instanceof ServiceError && error.refusal === 'store_unavailable'
}

// What background work does while the store is away: it waits and tries again. Requests do not come here; they are
// refused with `store_unavailable`, and their callers decide.

// Long enough that a database that starts again is not flooded, short enough that work goes on soon after.
const FIRST_MS = 250
const MAX_MS = 4000

/**
 * The result of an operation that may be repeated, once the store is there to answer it. Any other failure ends the wait; so
 * does the signal, with the last refusal.
 */
export async function outlastOutage<Result>(operation: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
  const backoff = createBackoff({ firstMs: FIRST_MS, maxMs: MAX_MS })
  while (true) {
    try {
      return await operation()
    } catch (error) {
      if (!isStoreAway(error) || signal.aborted) throw error
      await sleep(backoff.nextMs(), signal)
      if (signal.aborted) throw error
    }
  }
}
