/**
 * Why a server that answers must not be given work. Prompts of ours may still be on it although no run follows them any more:
 * attempts that were given up, prompts of an earlier process, a node that cannot be interrupted. Those that wait are withdrawn
 * and those that run are interrupted, again and again, until none is left. And the queue of a server may stand still behind one
 * prompt for too long: then it gets no work until that prompt is gone.
 */
import { performance } from 'node:perf_hooks'
import type { ComfyBounds } from '../comfy-bounds.ts'
import { positionIn, type Stopper } from '../run/stop-run.ts'
import type { ComfyApi, Queue, QueueEntry } from '../wire/comfy-api.ts'
import { CallError } from '../wire/comfy-http.ts'

interface FitnessDeps {
  readonly api: Pick<ComfyApi, 'queue' | 'forgetHistory'>
  readonly bounds: Pick<ComfyBounds, 'vanishedMs' | 'stopGraceMs'>
  readonly stopper: Stopper
  /** Tells by their ids which prompts belong to runs that have not ended, as the store has them now; left out: none are kept. */
  findKept?(): Promise<(promptId: string) => boolean>
  /** Tells by the client id that a prompt was posted with whether a process of this service posted it that is gone. */
  findOrphanRule(): Promise<(clientId: string) => boolean>
  onChange(): void
  /** An abandoned prompt runs on although it was interrupted for long enough. */
  onStubborn(): void
  onAdopted(count: number): void
}

interface AbandonedPrompt {
  readonly since: number
  /** One absence proves nothing: a prompt whose submit got no answer may arrive after the queue was read. */
  absentSince: number | null
}

const ABANDONED = 'a run of ours that was given up is still there'
const STANDS_STILL = 'its queue stands still: the same prompt runs for too long'

export class Fitness {
  readonly #deps: FitnessDeps
  readonly #abandoned = new Map<string, AbandonedPrompt>()
  /** What ran when the queue was found to stand still. */
  #stuckBehind: string | null = null
  #isStubborn = false
  /** Prompts of ours on the server that nobody follows here, and that may be adopted. */
  readonly #awaited = new Set<string>()

  constructor(deps: FitnessDeps) {
    this.#deps = deps
  }

  /** The reason, for an operator; null: it may be given work. */
  unfit(): string | null {
    if (this.#abandoned.size > 0) return ABANDONED
    return this.#stuckBehind === null ? null : STANDS_STILL
  }

  /** How many prompts of ours are on the server that nobody follows yet. */
  awaited(): number {
    return this.#awaited.size
  }

  /** A run follows this prompt from now on. */
  follow(promptId: string): void {
    if (this.#awaited.delete(promptId)) this.#deps.onChange()
  }

  /** The run that followed this prompt lost it to somebody else, or to nobody: the store knows whether it may go on. */
  doubt(promptId: string): void {
    this.#awaited.add(promptId)
    this.#deps.onChange()
  }

  /** No run follows this prompt any more. It may be on the server, or still arrive there. */
  abandon(promptId: string): void {
    this.#changing(() => this.#add(promptId))
  }

  isAbandoned(promptId: string): boolean {
    return this.#abandoned.has(promptId)
  }

  /** The queue has not moved for too long: no work until something else runs there. */
  markStandstill(queue: Queue): void {
    this.#changing(() => {
      this.#stuckBehind = runningIn(queue)
    })
  }

  /** A new process is behind the address: it has none of the abandoned prompts. */
  startAnew(): void {
    this.#changing(() => {
      this.#abandoned.clear()
      this.#awaited.clear()
      this.#stuckBehind = null
      this.#isStubborn = false
    })
  }

  /** Counts what an earlier process of this service left on the server, and nobody may adopt, as abandoned. Throws CallError. */
  async adoptOrphans(): Promise<void> {
    const { api, findOrphanRule, findKept, onAdopted } = this.#deps
    // The queue first: whoever posts a prompt lives then, and is seen alive behind it.
    const { running, pending } = await api.queue({})
    const isOrphan = await findOrphanRule()
    const orphans = [...running, ...pending].filter(({ clientId }) => clientId !== null && isOrphan(clientId))
    const left = orphans.filter(({ promptId }) => !this.#abandoned.has(promptId))
    if (left.length === 0) return
    const isKept = (await findKept?.()) ?? (() => false)
    for (const { promptId } of left) if (isKept(promptId)) this.#awaited.add(promptId)
    const found = left.filter(({ promptId }) => !this.#awaited.has(promptId))
    if (found.length < left.length) this.#deps.onChange()
    if (found.length === 0) return
    this.#changing(() => {
      for (const { promptId } of found) this.#add(promptId)
    })
    onAdopted(found.length)
  }

  /** Stops abandoned prompts and sees whether the queue moves. Asks the server only if it is unfit. Throws CallError. */
  async check(): Promise<void> {
    if (this.unfit() === null && this.#awaited.size === 0) return
    const queue = await this.#deps.api.queue({})
    await this.#checkAwaited(queue)
    await this.#stopAbandoned(queue)
    await this.#forgetGone(queue)
  }

  /** Those that have ended are no longer awaited, and those whose runs have ended otherwise are given up. */
  async #checkAwaited(queue: Queue): Promise<void> {
    if (this.#awaited.size === 0) return
    const isKept = (await this.#deps.findKept?.()) ?? (() => false)
    for (const promptId of [...this.#awaited]) {
      const isThere = positionIn(queue, promptId) !== null
      if (isThere && isKept(promptId)) continue
      this.follow(promptId)
      if (isThere) this.abandon(promptId)
    }
  }

  /** Reports when the answer to `unfit` has changed. */
  #changing(act: () => void): void {
    const before = this.unfit()
    act()
    if (this.unfit() !== before) this.#deps.onChange()
  }

  #add(promptId: string): void {
    if (!this.#abandoned.has(promptId)) this.#abandoned.set(promptId, { since: performance.now(), absentSince: null })
  }

  /** Those that have been absent for long enough. */
  #findGone(queue: Queue): string[] {
    const now = performance.now()
    return [...this.#abandoned].flatMap(([promptId, prompt]) => {
      if (positionIn(queue, promptId) !== null) prompt.absentSince = null
      else prompt.absentSince ??= now
      return prompt.absentSince !== null && now - prompt.absentSince >= this.#deps.bounds.vanishedMs ? [promptId] : []
    })
  }

  async #forgetGone(queue: Queue): Promise<void> {
    const gone = this.#findGone(queue)
    // Before anything else runs there: a repeated attempt has the same prompt id, and must not find the end of this one.
    if (gone.length > 0) await this.#deps.api.forgetHistory(gone)
    this.#changing(() => {
      for (const promptId of gone) this.#abandoned.delete(promptId)
      if (this.#abandoned.size === 0) this.#isStubborn = false
      if (this.#stuckBehind !== null && this.#stuckBehind !== runningIn(queue)) this.#stuckBehind = null
    })
  }

  async #stopAbandoned({ running, pending }: Queue): Promise<void> {
    const { stopper, bounds, onStubborn } = this.#deps
    const isOurs = ({ promptId }: QueueEntry) => this.#abandoned.has(promptId)
    // Those that wait first: ending the one that runs would start the next.
    for (const { promptId } of pending.filter(isOurs)) await stopper.stop(promptId, 'pending')
    for (const { promptId } of running.filter(isOurs)) await stopper.stop(promptId, 'running')
    const now = performance.now()
    const isLate = ({ promptId }: QueueEntry) =>
      now - (this.#abandoned.get(promptId)?.since ?? now) > bounds.stopGraceMs
    if (this.#isStubborn || !running.some(isLate)) return
    this.#isStubborn = true
    onStubborn()
  }
}

/** The prompts that run, as one text to compare. */
export function runningIn({ running }: Queue): string {
  return running
    .map(({ promptId }) => promptId)
    .toSorted()
    .join(' ')
}

/**
 * Whether a server still answers while one long call to it is under way: a submit, an upload, a file. Such a call may rightly be
 * silent for a minute, but a server that lost its power is silent for ever. So a small question is asked beside the call, and
 * when it gets no answer for as long as a run may go without one, the call is given up.
 */
interface LivenessWatch extends Disposable {
  /** Aborted when the server has answered nothing for too long. */
  readonly silent: AbortSignal
}

interface LivenessDeps {
  readonly api: Pick<ComfyApi, 'queueRemaining'>
  readonly bounds: Pick<ComfyBounds, 'pollMaxMs' | 'unreachableMs'>
}

export function watchLiveness({ api, bounds }: LivenessDeps): LivenessWatch {
  const silent = new AbortController()
  const over = new AbortController()

  async function ask(): Promise<boolean> {
    try {
      await api.queueRemaining({ signal: over.signal })
      return true
    } catch (error) {
      // A bad answer is an answer.
      return error instanceof CallError && (error.fault === 'status' || error.fault === 'malformed')
    }
  }

  let answeredAt = performance.now()
  // A timer alone, as long as there is nothing to ask: nearly every call is over by then.
  let timer = setTimeout(look, bounds.pollMaxMs)

  async function look(): Promise<void> {
    const isAnswered = await ask()
    if (over.signal.aborted) return
    if (isAnswered) answeredAt = performance.now()
    else if (performance.now() - answeredAt >= bounds.unreachableMs) return silent.abort()
    timer = setTimeout(look, bounds.pollMaxMs)
  }

  return {
    silent: silent.signal,
    [Symbol.dispose]() {
      clearTimeout(timer)
      over.abort(null)
    },
  }
}

export function silenceError({ bounds }: Pick<LivenessDeps, 'bounds'>): CallError {
  return new CallError('timeout', `nothing was answered for ${Math.round(bounds.unreachableMs / 1000)} s`)
}
