/**
 * How an attempt ends, given what the engine said and what we did to it. The engine's own outcome counts first: a run that
 * finished before an interrupt took hold is finished. Pure; whoever asks carries it out.
 */

import type { JobError } from '../job.ts'
import type { RunOutcome } from '../run/apply-engine-event.ts'
import { isHeld, type JobStatus, statesBefore } from '../transitions.ts'

/** Why the worker interrupted the run. */
export type StopCause =
  | { readonly cause: 'cancel' }
  | { readonly cause: 'timeout'; readonly limitMs: number }
  /** Going on makes no sense: an output could not be kept. `mayPass`: a later attempt may have more luck. */
  | { readonly cause: 'failed'; readonly error: JobError; readonly mayPass: boolean }

export interface RunFacts {
  readonly outcome: RunOutcome | null
  readonly stop: StopCause | null
  /** The engine broke off without an outcome, for this reason; null: it did not. */
  readonly lossReason: string | null
  /** It broke off because of another run. */
  readonly isBlameless: boolean
  /** The engine was lost before the run began there. */
  readonly isUntouched: boolean
  /** What failed may have been the engine: the job is tried once more. */
  readonly deservesSecondChance: boolean
  readonly attempt: number
  readonly maxAttempts: number
}

export type RunVerdict =
  | {
      readonly verdict: 'finish'
      readonly status: 'succeeded' | 'failed' | 'canceled'
      readonly from: readonly JobStatus[]
      readonly error: JobError | null
    }
  /** The attempt is spent, not the job. */
  | { readonly verdict: 'requeue' }
  /** Nothing was done, so nothing is spent: the job waits again as if it had not been taken. */
  | { readonly verdict: 'return' }

export function decideEnd(facts: RunFacts): RunVerdict {
  const { outcome, stop, lossReason, attempt, maxAttempts } = facts
  if (stop?.cause === 'failed') {
    return stop.mayPass && attempt < maxAttempts ? { verdict: 'requeue' } : fail(stop.error)
  }
  if (outcome?.kind === 'succeeded') {
    return { verdict: 'finish', status: 'succeeded', from: statesBefore('succeeded'), error: null }
  }
  if (outcome?.kind === 'failed') {
    const isWorthIt = facts.deservesSecondChance && stop === null && attempt < maxAttempts
    return isWorthIt ? { verdict: 'requeue' } : fail(outcome.error)
  }
  if (stop?.cause === 'cancel') {
    return { verdict: 'finish', status: 'canceled', from: ['canceling'], error: null }
  }
  if (stop?.cause === 'timeout') {
    return fail(toJobError('timeout', `the run took longer than ${Math.round(stop.limitMs / 1000)} s and was stopped`))
  }
  if (lossReason === null) return fail(toJobError('interrupted', 'the engine stopped the run without being asked'))
  if (facts.isBlameless || facts.isUntouched) return { verdict: 'return' }
  if (attempt < maxAttempts) return { verdict: 'requeue' }
  return fail(
    toJobError(
      'engine_lost',
      `the engine was lost in each of ${attempt} attempts to run this job; the last time, ${lossReason}`,
    ),
  )
}

export function toJobError(code: string, message: string): JobError {
  return { code, message, nodeId: null, classType: null, traceback: null }
}

function fail(error: JobError): RunVerdict {
  return { verdict: 'finish', status: 'failed', from: statesBefore('failed').filter(isHeld), error }
}
