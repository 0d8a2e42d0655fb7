/**
 * How often a request to the storage is tried. Each has a few tries with growing, jittered pauses; all together have a budget of
 * retries that successes fill up again, so that storage in trouble is not asked several times as much as storage in health.
 */
import { type Backoff, createBackoff } from '../../../../lib/waiting/backoff.ts'
import { sleep } from '../../../../lib/waiting/sleep.ts'
import { mayPass } from './s3-error.ts'

export interface Patience {
  /** The answer of the first try that succeeds; else the last error. */
  run<Result>(operation: () => Promise<Result>, signal?: AbortSignal): Promise<Result>
  /** Whether one more request may be spent on something that is already under way; if so, it is. */
  spend(): boolean
  /** The pauses between such requests. */
  newBackoff(): Backoff
}

export interface PatienceOptions {
  readonly maxTries?: number
  readonly firstPauseMs?: number
  readonly maxPauseMs?: number
  /** No try begins later than this after the first. */
  readonly maxTimeMs?: number
  readonly budget?: number
  readonly random?: () => number
  /** In milliseconds; never goes back. */
  readonly now?: () => number
}

const PER_SUCCESS = 0.1

export function createPatience(options: PatienceOptions = {}): Patience {
  const { maxTries = 4, firstPauseMs = 100, maxPauseMs = 1600, maxTimeMs = 15_000, budget = 50 } = options
  const { random = Math.random, now = () => performance.now() } = options
  let left = budget

  function spend(): boolean {
    if (left < 1) return false
    left -= 1
    return true
  }

  const newBackoff = () => createBackoff({ firstMs: firstPauseMs, maxMs: maxPauseMs, random })

  return {
    spend,
    newBackoff,
    async run(operation, signal) {
      const backoff = newBackoff()
      const begunAt = now()
      for (let tries = 1; ; tries++) {
        try {
          const result = await operation()
          left = Math.min(budget, left + PER_SUCCESS)
          return result
        } catch (error) {
          const isLast = tries >= maxTries || now() - begunAt > maxTimeMs || isOver(signal)
          if (isLast || !mayPass(error) || !spend()) throw error
          await sleep(backoff.nextMs(), signal)
          if (isOver(signal)) throw error
        }
      }
    },
  }
}

function isOver(signal: AbortSignal | undefined): boolean {
  return signal?.aborted ?? false
}
