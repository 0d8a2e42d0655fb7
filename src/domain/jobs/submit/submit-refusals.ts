/** Why a submit is refused, in the words that a single job, a batch and a dry run share. */
import { MAX_MICROS } from '../../../../lib/text/usd.ts'
import type { PoolPrice } from '../../credits/prices.ts'
import { ServiceError } from '../../errors.ts'

export function shuttingDown(retryAfterSeconds: number): ServiceError {
  return new ServiceError('shutting_down', 'the service is shutting down; send the job again in a moment', {
    retryAfterSeconds,
  })
}

export function queueFull(retryAfterSeconds: number): ServiceError {
  return new ServiceError('queue_full', 'the queue is full; send the job again later', {
    retryAfterSeconds: Math.max(1, Math.ceil(retryAfterSeconds)),
  })
}

export function insufficientCredits(price: PoolPrice | null, jobs = 1): ServiceError {
  const message =
    jobs === 1
      ? 'the account has not enough credits to run this job; add some'
      : `the account has not enough credits to run these ${jobs} jobs; add some`
  const required = Math.min(MAX_MICROS, jobs * (price?.holdMicros ?? 0))
  return new ServiceError('insufficient_credits', message, { details: { required_micros: required } })
}
