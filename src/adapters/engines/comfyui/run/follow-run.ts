/**
 * Follows a submitted run to its end. The server's history and queue decide: a run in the history is over, one in the queue is not, one
 * in neither is forgotten. The socket says when to ask at once, and shows that something is still happening: silence while the queue
 * says `running` is first taken for a dead socket, and in the end for a node that hangs. A run that waits is withdrawn when nothing
 * before it moves. Results that only the socket brings are waited for after the end. Every wait is bounded.
 */
import { performance } from 'node:perf_hooks'
import { createDoorbell, type Doorbell } from '../../../../../lib/waiting/sleep.ts'
import { EngineLostError } from '../../../../domain/engine/engine-lost-error.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import type { Fitness } from '../health/fitness.ts'
import type { ComfyApi, Queue } from '../wire/comfy-api.ts'
import { CallError } from '../wire/comfy-http.ts'
import type { EngineSocket } from '../wire/comfy-socket.ts'
import type { MessageDispatcher } from '../wire/message-dispatcher.ts'
import { QueueWatch } from './queue-watch.ts'
import { type HistoryEntry, lostByCall, readHistory, type Standstill } from './run-endings.ts'
import { positionIn, type QueuePosition, type Stopper } from './stop-run.ts'

type RunEnd =
  | { readonly kind: 'ended'; readonly entry: HistoryEntry }
  /** In neither queue nor history. */
  | { readonly kind: 'forgotten' }
  /** It was running, nothing happened for too long, and the interrupt ended it. */
  | { readonly kind: 'stalled' }
  /** It waited, nothing before it moved for too long, and it was removed from the queue. */
  | { readonly kind: 'withdrawn'; readonly why: Standstill }
  /** The queue still says `running`, but its end was told long ago, or its thread has died: it will never be in the history. */
  | { readonly kind: 'unrecorded' }

export interface FollowDeps {
  readonly api: ComfyApi
  readonly socket: EngineSocket
  readonly stopper: Stopper
  readonly dispatcher: Pick<MessageDispatcher, 'lastHeardAt'>
  readonly fitness: Pick<Fitness, 'isAbandoned' | 'markStandstill'>
  readonly bounds: ComfyBounds
  /** Aborted, with the reason as a text, when the server's process is known to have ended or the engine is closed for good. */
  readonly gone: AbortSignal
}

interface Followed {
  readonly promptId: string
  readonly clientId: string
  /** Aborted to stop the run. */
  readonly stop: AbortSignal
  /** The server has told how the run ended, or that the thread which ran it has died. */
  isSaidToBeOver(): boolean
  /** Whether the socket may still bring results of the run that exist nowhere else: it has not told its last message. */
  mayHaveMore(): boolean
  /** Whether another engine could run it now. */
  hasOther(): boolean
  /** A success that the socket has told in full, for a server that cannot be asked; null: it has not. */
  findToldEnd(): HistoryEntry | null
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
  #position: QueuePosition = 'pending'
  #lastEventAt = performance.now()
  #renewals = 0
  #pollMs: number
  #stopSince: number | null = null
  #stopAskedAt = 0
  #isStalled = false
  #standstill: Standstill | null = null
  readonly #queueWatch: QueueWatch
  #overSince: number | null = null
  #soon: NodeJS.Timeout | null = null
  #isOver = false

  constructor(deps: FollowDeps, run: Followed) {
    this.#deps = deps
    this.#run = run
    this.#pollMs = deps.bounds.pollFirstMs
    this.#queueWatch = new QueueWatch({ ...deps, sinceMs: performance.now() })
  }

  /** A message of the run came. */
  heard(): void {
    this.#lastEventAt = performance.now()
    this.#renewals = 0
  }

  /** The run may be over: ask now. */
  hint(): void {
    this.#bell.ring()
  }

  /** Something has changed that a message of its own tells of too, usually a moment later: ask if none comes. */
  hintSoon(): void {
    if (this.#isOver) return
    this.#soon ??= setTimeout(() => {
      this.#soon = null
      this.hint()
    }, this.#deps.bounds.endLagMs)
  }

  /** Throws EngineLostError. */
  async follow(): Promise<RunEnd> {
    const { gone } = this.#deps
    const onGone = () => this.#bell.ring()
    gone.addEventListener('abort', onGone)
    try {
      while (true) {
        await this.#bell.wait(this.#waitMs(), this.#isStopping() ? NEVER : this.#run.stop)
        if (gone.aborted) throw new EngineLostError('engine_unreachable', String(gone.reason))
        const end = await this.#ask()
        if (end?.kind === 'ended') await this.#drain()
        if (end !== null) return end.kind === 'ended' ? end : (this.#toStopped() ?? end)
        if (this.#isUnrecorded()) return { kind: 'unrecorded' }
        // A run that was left meanwhile is not ours to stop.
        if (gone.aborted) continue
        if (this.#isStopping()) await this.#stopAgain()
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

  /** The end of a run that is in neither queue nor history because we stopped it; null: we did not. */
  #toStopped(): RunEnd | null {
    if (this.#isStalled) return { kind: 'stalled' }
    return this.#standstill === null ? null : { kind: 'withdrawn', why: this.#standstill }
  }

  #isUnrecorded(): boolean {
    const now = performance.now()
    this.#overSince = this.#position === 'running' && this.#run.isSaidToBeOver() ? (this.#overSince ?? now) : null
    return this.#overSince !== null && now - this.#overSince > this.#deps.bounds.idleMs
  }

  #waitMs(): number {
    const { bounds } = this.#deps
    if (this.#firstRefusalAt !== null) return Math.min(bounds.refusedMs, bounds.pollMaxMs)
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
      const before = this.#position
      const queue = await api.queue({})
      this.#position = positionIn(queue, promptId)
      this.#answered()
      if (this.#position === 'pending') this.#watchQueue(queue)
      if (this.#position === 'running' && before !== 'running') this.heard()
      return this.#position === null ? this.#missing() : this.#present()
    } catch (error) {
      const entry = error instanceof CallError ? this.#run.findToldEnd() : null
      if (entry !== null) return { kind: 'ended', entry }
      this.#judge(error)
      return null
    }
  }

  /** The history may tell the end while frames of the run still wait in the socket: as long as bytes come, they are waited for. */
  async #drain(): Promise<void> {
    const { socket, gone, bounds } = this.#deps
    const beganAt = performance.now()
    let received = socket.receivedBytes()
    let receivedAt = beganAt
    while (this.#run.mayHaveMore() && socket.state() === 'open' && !this.#run.stop.aborted && !gone.aborted) {
      const now = performance.now()
      if (socket.receivedBytes() !== received) receivedAt = now
      if (now - receivedAt > bounds.drainQuietMs || now - beganAt > bounds.drainMs) return
      received = socket.receivedBytes()
      await this.#bell.wait(bounds.pollFirstMs, this.#run.stop)
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
   * It may have ended between the two questions, and old servers write the history late. A run that was told to stop and is in
   * neither has stopped: then asking a second time is enough.
   */
  #missing(): RunEnd | null {
    const { vanishedMs, pollFirstMs } = this.#deps.bounds
    const now = performance.now()
    this.#absentSince ??= now
    const enoughMs = this.#stopSince === null ? vanishedMs : Math.min(vanishedMs, pollFirstMs)
    return now > this.#absentSince && now - this.#absentSince >= enoughMs ? { kind: 'forgotten' } : null
  }

  #judge(error: unknown): void {
    const { unreachableMs, refusedMs, cutMs } = this.#deps.bounds
    if (!(error instanceof CallError)) throw error
    const now = performance.now()
    const isRefused = error.fault === 'unreachable'
    this.#firstRefusalAt = isRefused ? (this.#firstRefusalAt ?? now) : null
    const isGone = this.#firstRefusalAt !== null && now - this.#firstRefusalAt >= refusedMs
    // A server that is cut off goes on with what it runs: where nobody else could run it, that is waited for.
    const mayReturn = !isRefused && !this.#isStopping() && !this.#run.hasOther()
    if (!isGone && now - this.#lastAnswerAt < (mayReturn ? cutMs : unreachableMs)) return
    throw lostByCall('the engine was lost in the middle of a run', error)
  }

  async #stopAgain(): Promise<void> {
    const { bounds, stopper } = this.#deps
    const now = performance.now()
    this.#stopSince ??= now
    if (now - this.#stopSince > bounds.stopGraceMs) {
      throw new EngineLostError('engine_stuck', 'the engine ignored an interrupt', { isUnfit: true })
    }
    if (now - this.#stopAskedAt < bounds.interruptEveryMs) return
    this.#stopAskedAt = now
    await stopper.stop(this.#run.promptId, this.#position).catch((error) => this.#judge(error))
  }

  #watchQueue(queue: Queue): void {
    if (this.#standstill !== null) return
    this.#standstill = this.#queueWatch.look(queue, performance.now())
    if (this.#standstill === 'still') this.#deps.fitness.markStandstill(queue)
  }

  #watchSilence(): void {
    const { bounds, socket } = this.#deps
    if (this.#position !== 'running') return
    const silentMs = performance.now() - this.#lastEventAt
    // Without a working socket, silence says little about the run: it gets twice the time, but not for ever.
    const patience = socket.isHeard(this.#run.clientId) ? 1 : 2
    if (bounds.stallMs !== null && silentMs > patience * bounds.stallMs) this.#isStalled = true
    else if (silentMs > bounds.socketSilenceMs * 2 ** this.#renewals) {
      this.#renewals++
      socket.renew()
    }
  }
}
