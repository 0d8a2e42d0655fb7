/**
 * The one writer of a running job. Changes gather while a commit is under way or until the next one is due, so outputs and
 * progress are written together, and a short job needs no commit but its last. Order is kept: outputs are
 * written in the order in which they were added, and always before or with the end.
 */

import { uptimeMs } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { sleep } from '../../../../lib/waiting/sleep.ts'
import { type Refusal, ServiceError } from '../../errors.ts'
import type { JobLog, Output, Progress } from '../job.ts'
import type { CommitOutcome, RunChange } from '../job-store.ts'
import { toJobError } from './run-moves.ts'

export interface CommitPace {
  /** Progress is written at most this often. */
  readonly progressEveryMs: number
  /** The first progress of a run comes earlier, but not so early that a short job pays for it. */
  readonly firstProgressMs: number
  /** How long an output waits for others, to be written together with them. */
  readonly outputLingerMs: number
}

interface CommitterDeps {
  readonly pace: CommitPace
  readonly log: Log
  /** Outputs are written with the end and not before it. */
  readonly holdsOutputs?: boolean
  send(change: RunChange): Promise<CommitOutcome>
  readState(): { readonly progress: Progress; readonly outputsReused: boolean }
  /** After every commit but the last. `isDetail`: it wrote only how far the run is. */
  onOutcome(outcome: CommitOutcome, isDetail: boolean): void
  /** Whether trying again after this error can still succeed. */
  mayRetry(error: unknown): boolean
}

type Finish = NonNullable<RunChange['finish']>

interface WrittenEnd {
  readonly outcome: CommitOutcome
  readonly finish: Finish
}

export type EndChange = RunChange & { readonly finish: Finish }

const RETRY_MS = 500
/** After so many tries a refusal that is no outage counts as the last word. */
const MAX_TRIES = 20
// They pass, however often they come.
const PASSING: ReadonlySet<Refusal> = new Set([
  ...(['store_unavailable', 'storage_full', 'rate_limited', 'overloaded', 'shutting_down'] as const),
])
// The same write will never be taken.
const FINAL: ReadonlySet<Refusal> = new Set([
  ...(['invalid_request', 'invalid_field', 'forbidden', 'payload_too_large', 'hash_mismatch'] as const),
])
const LINGER_MS_PER_OUTPUT = 0.05
// Large outputs take longer than this to be stored, and those who watch want to see the first of them.
const END_LINGER_MS = 1000

export class Committer {
  readonly #deps: CommitterDeps
  #outputs: Output[] = []
  #writtenOutputs = 0
  #hasProgress = false
  #isClosed = false
  #inFlight: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  #timerAtMs = 0
  /** null: nothing has been heard of the run. */
  #progressAtMs: number | null = null
  #endExpectedAtMs = 0

  constructor(deps: CommitterDeps) {
    this.#deps = deps
  }

  addOutput(output: Output): void {
    this.#outputs.push(output)
    this.#schedule()
  }

  /** What has not been written yet, in order. */
  get waiting(): readonly Output[] {
    return this.#outputs
  }

  progressed(): void {
    if (this.#hasProgress) return
    this.#hasProgress = true
    this.#progressAtMs ??= uptimeMs() + this.#deps.pace.firstProgressMs
    this.#schedule()
  }

  /** The engine has computed everything: what there is to write waits for the end, unless that takes long. */
  expectEnd(): void {
    this.#endExpectedAtMs = uptimeMs() + END_LINGER_MS
    if (this.#timer === null) return
    clearTimeout(this.#timer)
    this.#timer = null
    this.#schedule()
  }

  /**
   * Answers with the end that was written: an end that the store will never take is replaced by a failure that says so. `settle` has the
   * last word on what is written.
   */
  async finish(
    finish: Finish,
    jobLog: JobLog | null,
    settle: (change: EndChange) => EndChange = (change) => change,
  ): Promise<WrittenEnd> {
    this.#close()
    if (this.#inFlight !== null) await this.#inFlight
    const change = this.#takeChange(this.#outputs)
    return this.#sendEnd(settle({ ...change, ...(jobLog !== null && { log: jobLog }), finish }))
  }

  /** From here on nothing is written. */
  stop(): void {
    this.#close()
  }

  /** Watchers read the whole job after each commit: the more outputs it has, the more of them are written together. */
  #lingerMs(): number {
    return this.#deps.pace.outputLingerMs + this.#writtenOutputs * LINGER_MS_PER_OUTPUT
  }

  #schedule(): void {
    const hasOutputs = this.#ready().length > 0
    if (this.#isClosed || this.#inFlight !== null || !(hasOutputs || this.#hasProgress)) return
    const nowMs = uptimeMs()
    const soonMs = hasOutputs ? nowMs + this.#lingerMs() : Math.max(nowMs, this.#progressAtMs ?? nowMs)
    const dueMs = Math.max(soonMs, this.#endExpectedAtMs)
    if (this.#timer !== null) {
      if (this.#timerAtMs <= dueMs) return
      clearTimeout(this.#timer)
    }
    this.#timerAtMs = dueMs
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#inFlight = this.#flush()
    }, dueMs - nowMs)
  }

  async #flush(): Promise<void> {
    const { onOutcome, send, log } = this.#deps
    const change = this.#takeChange()
    try {
      onOutcome(await send(change), change.outputs === undefined)
    } catch (error) {
      log.warn({ err: error }, 'a change of a running job could not be written; it is tried again')
      this.#outputs = [...(change.outputs ?? []), ...this.#outputs]
      this.#hasProgress = true
      await sleep(RETRY_MS)
    }
    this.#inFlight = null
    this.#schedule()
  }

  /** Those that may be written before the end. */
  #ready(): readonly Output[] {
    return this.#deps.holdsOutputs === true ? [] : this.#outputs
  }

  #takeChange(outputs: readonly Output[] = this.#ready()): RunChange {
    const { progress, outputsReused } = this.#deps.readState()
    const change: RunChange = {
      progress,
      ...(outputsReused && { outputsReused }),
      ...(outputs.length > 0 && { outputs }),
    }
    this.#writtenOutputs += outputs.length
    if (outputs.length > 0) this.#outputs = []
    this.#hasProgress = false
    this.#progressAtMs = uptimeMs() + this.#deps.pace.progressEveryMs
    return change
  }

  #close(): void {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  /** Sends the end until it is taken, or can no longer be. */
  async #sendEnd(first: EndChange): Promise<WrittenEnd> {
    const { log, send, mayRetry } = this.#deps
    let change = first
    for (let tries = 1; ; tries++) {
      try {
        return { outcome: await send(change), finish: change.finish }
      } catch (error) {
        const lost = { outcome: { outcome: 'lost' }, finish: change.finish } as const
        if (!mayRetry(error)) return lost
        if (isHopeless(error, tries)) {
          log.error({ err: error }, 'the end of a job is refused for good')
          if (change !== first) return lost
          change = { finish: withoutResults(first.finish, error) }
          tries = 0
        } else {
          log.warn({ err: error }, 'the end of a job could not be written; it is tried again')
          await sleep(RETRY_MS)
        }
      }
    }
  }
}

/** A store of this process refuses nothing for good; a service that was joined does. */
function isHopeless(error: unknown, tries: number): boolean {
  if (!(error instanceof ServiceError) || PASSING.has(error.refusal)) return false
  return FINAL.has(error.refusal) || tries >= MAX_TRIES
}

/** The same end without what may have been refused. Nobody is told of a success whose results are missing. */
function withoutResults(finish: Finish, error: unknown): Finish {
  const bare = { ...finish, record: null, resultKey: null }
  if (finish.status !== 'succeeded') return { ...bare, error: finish.error && { ...finish.error, traceback: null } }
  const why = error instanceof ServiceError ? error.message : 'they could not be written'
  return { ...bare, status: 'failed', error: toJobError('output_unavailable', `the results were refused: ${why}`) }
}
