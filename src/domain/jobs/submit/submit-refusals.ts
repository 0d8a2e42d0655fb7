/** Why a submit is refused, in the words that a single job, a batch and a dry run share. */
import type { Clock } from '../../../../lib/clock.ts'
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

/** `refuseClosed` throws the refusal that fits; where it does not, the pool was opened again meanwhile. */
export async function poolClosed(
  refuseClosed: ((pool: string) => Promise<void>) | undefined,
  pool: string,
): Promise<never> {
  await refuseClosed?.(pool)
  throw new ServiceError('deployment_not_ready', 'the deployment is being started; send the job again in a moment', {
    retryAfterSeconds: 1,
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

const DEFAULT_SECONDS = 5
const MAX_SECONDS = 60
// How much the newest gap counts: a burst of short jobs moves the estimate within a few jobs.
const NEWEST_SHARE = 0.2

interface RetryEstimate {
  /** A job has ended and made room. */
  finished(): void
  /** Whole seconds, at least 1: clients drop fractions and spin on 0. */
  retryAfterSeconds(): number
}

/** How soon a full queue is likely to have room again: about the time between two finished jobs, within bounds. */
export function createRetryEstimate(clock: Clock): RetryEstimate {
  let averageGapMs: number | null = null
  let lastEndMs: number | null = null
  return {
    finished() {
      const nowMs = clock.now().getTime()
      if (lastEndMs !== null) {
        const gapMs = Math.max(0, nowMs - lastEndMs)
        averageGapMs = averageGapMs === null ? gapMs : averageGapMs + NEWEST_SHARE * (gapMs - averageGapMs)
      }
      lastEndMs = nowMs
    },
    retryAfterSeconds() {
      if (averageGapMs === null) return DEFAULT_SECONDS
      return Math.min(MAX_SECONDS, Math.max(1, Math.ceil(averageGapMs / 1000)))
    },
  }
}
