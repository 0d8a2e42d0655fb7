/** Why a submit is refused, in the words that a single job, a batch and a dry run share. */

import type { GraphRefusal } from '../../../../engine/graph/validate/validation-result.ts'
import { type Clock, uptimeMs } from '../../../../lib/clock.ts'
import { MAX_MICROS, writeUsd } from '../../../../lib/text/usd.ts'
import { type BudgetExcess, sayBudget } from '../../credits/budgets/budget.ts'
import type { PoolPrice } from '../../credits/prices.ts'
import { type Refusal, ServiceError } from '../../errors.ts'
import type { RunExcess } from '../limits/run-limits.ts'

const PASSING: ReadonlySet<Refusal> = new Set([
  ...(['queue_full', 'run_limit', 'rate_limited', 'storage_full', 'store_unavailable'] as const),
  ...(['deployment_not_ready', 'check_unavailable', 'overloaded', 'shutting_down'] as const),
])
const LATER: ReadonlySet<Refusal> = new Set(['insufficient_credits', 'spend_limit', 'subscription_inactive'])

/** Whether the same submit may go well in a moment. */
export function isPassing(refusal: Refusal): boolean {
  return PASSING.has(refusal)
}

/** Whether it may go well when there are credits again, or a budget begins anew. */
export function isForLater(refusal: Refusal): boolean {
  return LATER.has(refusal)
}

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

export function insufficientCredits(price: PoolPrice | null, jobs = 1, budget?: BudgetExcess): ServiceError {
  const message =
    budget !== undefined
      ? sayBudget(budget)
      : jobs === 1
        ? 'the account has not enough credits to run this job; add some'
        : `the account has not enough credits to run these ${jobs} jobs; add some`
  const required = Math.min(MAX_MICROS, jobs * (price?.holdMicros ?? 0))
  return new ServiceError('insufficient_credits', message, { details: { required_micros: required } })
}

/** `soonSeconds`: in which time a job is likely to end. */
export function outOfBounds(
  { name, limit, period, most, until }: RunExcess,
  now: Date,
  soonSeconds: number,
): ServiceError {
  const details = {
    limit,
    period,
    [limit === 'spend' ? 'maxUsd' : 'maximum']: limit === 'spend' ? writeUsd(most) : most,
  }
  const seconds = until === null ? null : Math.max(1, Math.ceil((until.getTime() - now.getTime()) / 1000))
  const options = {
    details: { ...details, until: until?.toISOString() ?? null },
    ...(limit === 'in_flight' && { retryAfterSeconds: soonSeconds }),
    ...(seconds !== null && { retryAfterSeconds: seconds }),
  }
  const again = until === null ? '' : `; the next one begins at ${until.toISOString()}`
  const span = period === 'ever' ? 'in all' : `in one ${period}`
  switch (limit) {
    case 'in_flight':
      return new ServiceError('run_limit', `${name} takes ${most} at a time; send it again when one has ended`, options)
    case 'runs':
      return new ServiceError('run_limit', `${name} takes ${most} runs ${span}${again}`, options)
    case 'spend':
      return new ServiceError(
        'spend_limit',
        `${name} may spend $${writeUsd(most)} ${span}, which does not cover this run${again}`,
        options,
      )
  }
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

// Lets a submit answer with the engine's own refusal of its graph. Some classes check their inputs by rules that only their engine
// knows; when an engine has a free slot, it accepts or refuses the graph a moment after it got it, and a refusal can still be the
// answer to the submit. Every wait is bounded: after it the submit is accepted, and a later refusal fails the job.

export interface Expectation extends Disposable {
  /** Call it once the job is recorded. null: the engine accepted the graph, or did not answer in time. */
  answer(): Promise<GraphRefusal | null>
}

export interface EngineVerdicts {
  /**
   * Call it before the job is recorded: an engine may answer before the submit knows that the job was recorded. `isRoomComing`: no slot
   * for it is free, but one is about to be.
   */
  expect(jobId: string, isRoomComing: () => boolean): Expectation
  /** True: the submit still waits, and from now on for as long as it takes until `refused` or `settled`. */
  hold(jobId: string): boolean
  /** An engine has been chosen for the job and is being asked. */
  asked(jobId: string): void
  /** No refusal will follow: the engine runs the graph, or the attempt is over. */
  settled(jobId: string): void
  refused(jobId: string, refusal: GraphRefusal): void
}

interface VerdictBounds {
  /** How long the recorded job may wait for an engine with a free slot, which takes it at once unless its account is at a limit. */
  readonly claimWithinMs: number
  /** How long for one that is done with its latest run: it may first have to free memory, and a busy machine to write that run's end. */
  readonly roomWithinMs: number
  /** How long the engine may take; files of the job are brought to it first. */
  readonly answerWithinMs: number
}

const BOUNDS: VerdictBounds = { claimWithinMs: 1_000, roomWithinMs: 5_000, answerWithinMs: 5_000 }

interface Waiting {
  /** undefined: the job is not recorded yet, or its withdrawal is under way. */
  timer: NodeJS.Timeout | undefined
  isAsked: boolean
  resolve(refusal: GraphRefusal | null): void
}

export function createEngineVerdicts(bounds: VerdictBounds = BOUNDS): EngineVerdicts {
  const waiting = new Map<string, Waiting>()

  function settle(jobId: string, refusal: GraphRefusal | null): void {
    const entry = waiting.get(jobId)
    if (entry === undefined) return
    waiting.delete(jobId)
    clearTimeout(entry.timer)
    entry.resolve(refusal)
  }

  return {
    expect(jobId, isRoomComing) {
      const { promise, resolve } = Promise.withResolvers<GraphRefusal | null>()
      const entry: Waiting = { resolve, timer: undefined, isAsked: false }
      waiting.set(jobId, entry)
      return {
        answer() {
          const untilMs = uptimeMs() + bounds.roomWithinMs
          const wait = () => {
            entry.timer = setTimeout(() => {
              if (isRoomComing() && uptimeMs() < untilMs) wait()
              else settle(jobId, null)
            }, bounds.claimWithinMs)
          }
          if (!entry.isAsked && waiting.has(jobId)) wait()
          return promise
        },
        [Symbol.dispose]: () => settle(jobId, null),
      }
    },
    hold(jobId) {
      clearTimeout(waiting.get(jobId)?.timer)
      return waiting.has(jobId)
    },
    asked(jobId) {
      const entry = waiting.get(jobId)
      if (entry === undefined) return
      clearTimeout(entry.timer)
      entry.isAsked = true
      entry.timer = setTimeout(() => settle(jobId, null), bounds.answerWithinMs)
    },
    settled: (jobId) => settle(jobId, null),
    refused: settle,
  }
}
