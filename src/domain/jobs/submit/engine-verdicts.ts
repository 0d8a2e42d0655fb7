/**
 * Lets a submit answer with the engine's own refusal of its graph. Some classes check their inputs by rules that only their engine
 * knows; when an engine has a free slot, it accepts or refuses the graph a moment after it got it, and a refusal can still be the
 * answer to the submit. Every wait is bounded: after it the submit is accepted, and a later refusal fails the job.
 */

import type { GraphRefusal } from '../../../../engine/graph/validate/validation-result.ts'
import { uptimeMs } from '../../../../lib/waiting/uptime.ts'

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
