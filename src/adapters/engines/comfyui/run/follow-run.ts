/**
 * Follows a submitted run to its end. Only the server's history and queue decide: in the history it is over, in the queue it
 * is not, in neither it is forgotten. The socket tells when to ask at once, and that something is still happening: silence
 * while the queue says `running` means first that the socket is dead, and in the end that a node hangs. A run that waits is
 * withdrawn when nothing before it moves. Every wait is bounded.
 */
import { performance } from 'node:perf_hooks'
import { createDoorbell, type Doorbell } from '../../../../../lib/doorbell.ts'
import { EngineLostError } from '../../../../domain/engine/engine-lost-error.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import { type Fitness, runningIn } from '../health/fitness.ts'
import type { ComfyApi, Queue } from '../wire/comfy-api.ts'
import { CallError } from '../wire/comfy-http.ts'
import type { EngineSocket } from '../wire/comfy-socket.ts'
import type { Hub } from '../wire/message-dispatcher.ts'
import { type HistoryEntry, readHistory } from './run-history.ts'
import { placeIn, type QueuePlace, type Stopper } from './stop-run.ts'

export type RunEnd =
  | { readonly kind: 'ended'; readonly entry: HistoryEntry }
  /** In neither queue nor history. */
  | { readonly kind: 'forgotten' }
  /** It was running, nothing happened for too long, and the interrupt took hold. */
  | { readonly kind: 'stalled' }
  /** It waited, nothing before it moved for too long, and it is not there any more. `idle`: nothing ran at all. */
  | { readonly kind: 'withdrawn'; readonly why: Standstill }
  /** It is still said to run, but its end was told long ago, or that of the thread that ran it: nobody will record it. */
  | { readonly kind: 'unrecorded' }

export type Standstill = 'idle' | 'still'

export interface FollowDeps {
  readonly api: ComfyApi
  readonly socket: EngineSocket
  readonly stopper: Stopper
  readonly hub: Pick<Hub, 'lastHeardAt'>
  readonly fitness: Pick<Fitness, 'isLeft' | 'freeze'>
  readonly bounds: ComfyBounds
  /** Aborted when the server's process is known to have ended. */
  readonly gone: AbortSignal
}

export interface Followed {
  readonly promptId: string
  readonly clientId: string
  /** Aborted to stop the run. */
  readonly stop: AbortSignal
  /** The server has told how it ended, or that the thread that ran it has. */
  isSaidToBeOver(): boolean
}

const NEVER = new AbortController().signal
const POLL_GROWTH = 1.5

export class RunFollower {
  readonly #deps: FollowDeps
  readonly #run: Followed
  readonly #bell: Doorbell = createDoorbell()
  #lastAnswerAt = performance.now()
  #firstRefusalAt: number | null = null
  #absentSince: number | null = null
  #place: QueuePlace = 'pending'
  #lastEventAt = performance.now()
  #renewals = 0
  #pollMs: number
  #stopSince: number | null = null
  #pressedAt = 0
  #isStalled = false
  #standstill: Standstill | null = null
  /** What runs while it waits, and since when that is the same. */
  #ahead: string | null = null
  #aheadSince = performance.now()
  #overSince: number | null = null
  #soon: NodeJS.Timeout | null = null
  #isOver = false

  constructor(deps: FollowDeps, run: Followed) {
    this.#deps = deps
    this.#run = run
    this.#pollMs = deps.bounds.pollFirstMs
  }

  /** Something of the run was heard. */
  heard(): void {
    this.#lastEventAt = performance.now()
    this.#renewals = 0
  }

  /** It may be over: ask now. */
  hint(): void {
    this.#bell.ring()
  }

  /** Its nodes are over. The history gets its entry a moment later, and mostly that is heard as well. */
  hintSoon(): void {
    if (!this.#isOver) this.#soon ??= setTimeout(() => this.hint(), this.#deps.bounds.endLagMs)
  }

  /** Throws EngineLostError. */
  async follow(): Promise<RunEnd> {
    const { gone } = this.#deps
    const onGone = () => this.#bell.ring()
    gone.addEventListener('abort', onGone)
    try {
      while (true) {
        await this.#bell.wait(this.#waitMs(), this.#isStopping() ? NEVER : this.#run.stop)
        if (gone.aborted) throw new EngineLostError('engine_unreachable', 'the process of the engine has ended')
        const end = await this.#ask()
        if (end !== null) return end.kind === 'ended' ? end : (this.#toStopped() ?? end)
        if (this.#isUnrecorded()) return { kind: 'unrecorded' }
        if (this.#isStopping()) await this.#press()
        else this.#watchSilence()
      }
    } finally {
      gone.removeEventListener('abort', onGone)
      this.#isOver = true
      if (this.#soon !== null) clearTimeout(this.#soon)
    }
  }

  get isWithdrawn(): boolean {
    return this.#standstill !== null
  }

  get isStalled(): boolean {
    return this.#isStalled
  }

  #isStopping(): boolean {
    return this.#run.stop.aborted || this.#isStalled || this.#standstill !== null
  }

  /** What became of a run that is nowhere because we stopped it; null: we did not. */
  #toStopped(): RunEnd | null {
    if (this.#isStalled) return { kind: 'stalled' }
    return this.#standstill === null ? null : { kind: 'withdrawn', why: this.#standstill }
  }

  #isUnrecorded(): boolean {
    const now = performance.now()
    this.#overSince = this.#place === 'running' && this.#run.isSaidToBeOver() ? (this.#overSince ?? now) : null
    return this.#overSince !== null && now - this.#overSince > this.#deps.bounds.idleMs
  }

  #waitMs(): number {
    const { bounds } = this.#deps
    if (this.#absentSince !== null) return bounds.pollFirstMs
    if (this.#isStopping()) return this.#stopSince === null ? 0 : bounds.pollFirstMs
    const waitMs = this.#pollMs
    this.#pollMs = Math.min(bounds.pollMaxMs, this.#pollMs * POLL_GROWTH)
    return waitMs
  }

  async #ask(): Promise<RunEnd | null> {
    const { api } = this.#deps
    const { promptId } = this.#run
    try {
      const raw = await api.history(promptId, {})
      if (raw !== null) return { kind: 'ended', entry: readHistory(raw) }
      const before = this.#place
      const queue = await api.queue({})
      this.#place = placeIn(queue, promptId)
      this.#answered()
      if (this.#place === 'pending') this.#watchQueue(queue)
      if (this.#place === 'running' && before !== 'running') this.heard()
      return this.#place === null ? this.#missing() : this.#present()
    } catch (error) {
      this.#judge(error)
      return null
    }
  }

  #answered(): void {
    this.#lastAnswerAt = performance.now()
    this.#firstRefusalAt = null
  }

  #present(): null {
    this.#absentSince = null
    return null
  }

  /**
   * It may have ended between the two questions, and old servers write the history late. A run that was told to stop and is
   * nowhere has stopped: then a second look is enough.
   */
  #missing(): RunEnd | null {
    const { vanishedMs, pollFirstMs } = this.#deps.bounds
    const now = performance.now()
    this.#absentSince ??= now
    const enoughMs = this.#stopSince === null ? vanishedMs : Math.min(vanishedMs, pollFirstMs)
    return now > this.#absentSince && now - this.#absentSince >= enoughMs ? { kind: 'forgotten' } : null
  }

  #judge(error: unknown): void {
    const { unreachableMs, refusedMs } = this.#deps.bounds
    if (!(error instanceof CallError)) throw error
    const now = performance.now()
    const isRefused = error.fault === 'unreachable'
    this.#firstRefusalAt = isRefused ? (this.#firstRefusalAt ?? now) : null
    const isGone = this.#firstRefusalAt !== null && now - this.#firstRefusalAt >= refusedMs
    if (!isGone && now - this.#lastAnswerAt < unreachableMs) return
    const code = error.fault === 'status' || error.fault === 'malformed' ? 'engine_overloaded' : 'engine_unreachable'
    throw new EngineLostError(code, `the engine was lost in the middle of a run: ${error.message}`, { cause: error })
  }

  async #press(): Promise<void> {
    const { bounds, stopper } = this.#deps
    const now = performance.now()
    this.#stopSince ??= now
    if (now - this.#stopSince > bounds.stopGraceMs) {
      throw new EngineLostError('engine_stuck', 'the engine ignored an interrupt', { isUnfit: true })
    }
    if (now - this.#pressedAt < bounds.interruptEveryMs) return
    this.#pressedAt = now
    await stopper.press(this.#run.promptId, this.#place).catch((error) => this.#judge(error))
  }

  /** Waiting is in order while what runs before it changes, or is a run of ours that something is heard of. */
  #watchQueue(queue: Queue): void {
    const { bounds, hub, fitness } = this.#deps
    const now = performance.now()
    const ahead = runningIn(queue)
    if (ahead !== this.#ahead) this.#aheadSince = now
    this.#ahead = ahead
    const heardAt = queue.running.map(({ promptId }) => hub.lastHeardAt(promptId) ?? 0)
    this.#aheadSince = Math.max(this.#aheadSince, ...heardAt)
    const isIdle = queue.running.every(({ promptId }) => fitness.isLeft(promptId))
    const limitMs = isIdle ? bounds.idleMs : bounds.queueStillMs
    if (this.#standstill !== null || limitMs === null || now - this.#aheadSince < limitMs) return
    this.#standstill = isIdle ? 'idle' : 'still'
    if (!isIdle) fitness.freeze(queue)
  }

  #watchSilence(): void {
    const { bounds, socket } = this.#deps
    if (this.#place !== 'running') return
    const silentMs = performance.now() - this.#lastEventAt
    // Without a socket that works, silence says little about the run: it gets twice the time, for no wait is without end.
    const patience = socket.isHeard(this.#run.clientId) ? 1 : 2
    if (bounds.stallMs !== null && silentMs > patience * bounds.stallMs) this.#isStalled = true
    else if (silentMs > bounds.socketSilenceMs * 2 ** this.#renewals) {
      this.#renewals++
      socket.renew()
    }
  }
}
