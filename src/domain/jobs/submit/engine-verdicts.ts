/**
 * Lets a submit hear what the engine says to its graph. Some classes judge what they are given by rules that only their engine
 * knows; when an engine has room, its word comes a moment after the hand-over, and a refusal can still be the answer to the
 * submit. Every wait is short: whoever hears nothing in time goes on, and the job tells the rest.
 */
import type { GraphRefusal } from '../../../../engine/graph/validate/validation-result.ts'

export interface Expectation extends Disposable {
  /** null: the engine took the graph, or nothing was heard in time. */
  answer(): Promise<GraphRefusal | null>
}

export interface EngineVerdicts {
  /** Begins before the job is recorded: an engine may have answered before the submit hears that it was. */
  expect(jobId: string): Expectation
  /** True: the submit still waits, and from now on for as long as it takes until `refused` or `settled`. */
  hold(jobId: string): boolean
  /** An engine has been chosen for the job and is being asked. */
  asked(jobId: string): void
  /** Nothing more is to be expected: the engine runs it, or the attempt is over. */
  settled(jobId: string): void
  refused(jobId: string, refusal: GraphRefusal): void
}

export interface VerdictBounds {
  /** How long the job may wait for its engine. An engine with room takes it at once, unless its account is at a limit. */
  readonly claimWithinMs: number
  /** How long the engine may take; files of the job are brought to it first. */
  readonly answerWithinMs: number
}

const BOUNDS: VerdictBounds = { claimWithinMs: 500, answerWithinMs: 5_000 }

interface Waiting {
  timer: NodeJS.Timeout
  resolve(refusal: GraphRefusal | null): void
}

export function createEngineVerdicts({ claimWithinMs, answerWithinMs }: VerdictBounds = BOUNDS): EngineVerdicts {
  const waiting = new Map<string, Waiting>()

  function settle(jobId: string, refusal: GraphRefusal | null): void {
    const entry = waiting.get(jobId)
    if (entry === undefined) return
    waiting.delete(jobId)
    clearTimeout(entry.timer)
    entry.resolve(refusal)
  }

  return {
    expect(jobId) {
      const { promise, resolve } = Promise.withResolvers<GraphRefusal | null>()
      waiting.set(jobId, { resolve, timer: setTimeout(() => settle(jobId, null), claimWithinMs) })
      return { answer: () => promise, [Symbol.dispose]: () => settle(jobId, null) }
    },
    hold(jobId) {
      clearTimeout(waiting.get(jobId)?.timer)
      return waiting.has(jobId)
    },
    asked(jobId) {
      const entry = waiting.get(jobId)
      if (entry === undefined) return
      clearTimeout(entry.timer)
      entry.timer = setTimeout(() => settle(jobId, null), answerWithinMs)
    },
    settled: (jobId) => settle(jobId, null),
    refused: settle,
  }
}
