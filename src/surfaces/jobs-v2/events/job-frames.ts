/**
 * What to tell about a job: turns its snapshots and previews into frames, each encoded once. Knows no reader and no socket.
 *
 * Order: status, then outputs as they are committed, each once; the terminal status last. Of a job that has ended a reader
 * gets the outputs that it lacks and the terminal status, and no state that is no longer true. Progress never falls, and
 * progress and previews come twice a second in the long run. When a new attempt has replaced one whose outputs were told, a reset comes
 * before its outputs. Later readers get the reset as well: they may have been told of the earlier outputs over another
 * connection.
 */
import type { Work } from '../../../../lib/waiting/turns.ts'
import type { Job, Output, Progress } from '../../../domain/jobs/job.ts'
import type { Preview } from '../../../domain/jobs/read/watch-job.ts'
import { isTerminal } from '../../../domain/jobs/transitions.ts'
import { encodeFrame, toPreviewFrame } from '../../kit/streams/sse.ts'
import { toJobErrorView, toOutputText, toProgressView, type ViewBase } from '../views/job-view.ts'

const STEP_OUTPUTS = 100
/** The contract allows two frames of each kind per second. */
const INTERVAL_MS = 500

export class JobFrames {
  readonly #base: ViewBase
  readonly #outputs = new Map<string, Output>()
  /** By attempt and id of the output, its JSON text, which may be made before its frame is sent. */
  readonly #texts = new Map<string, string>()
  /** A reset, where there was one, and the outputs since. */
  #outputFrames: Buffer[] = []
  /** How many frames came before these, about attempts that were replaced. */
  #staleFrames = 0
  #outputsReplaced = 0
  #steadyUntilMs: number
  readonly #progress: FramePacer<Progress>
  readonly #preview: FramePacer<Preview>
  #job: Job | null = null
  #shownValue = Number.NEGATIVE_INFINITY
  #statusFrame: Buffer | null = null

  constructor(base: ViewBase, now: () => number) {
    this.#base = base
    this.#progress = new FramePacer(now, toProgressFrame)
    this.#preview = new FramePacer(now, toPreviewFrame)
    this.#steadyUntilMs = base.contentLinks.steadyUntilMs()
  }

  /** What a newer snapshot adds, in order; ends with the terminal status when the job has ended. */
  take(next: Job): readonly Buffer[] {
    // An end counts even with a lower version: a crash of the store may have undone progress that was already sent.
    if (this.hasEnded() || (this.#job !== null && next.version < this.#job.version && !isTerminal(next.status)))
      return []
    const before = this.#job
    this.#job = next
    const outputs = this.#takeOutputs(next)
    this.#takeProgress(next, before)
    if (before?.status === next.status && before.queuePosition === next.queuePosition) return outputs
    const frame = this.#toStatus(next)
    this.#statusFrame = frame
    return isTerminal(next.status) ? [...outputs, ...asList(this.#progress.take()), frame] : [frame, ...outputs]
  }

  hasEnded(): boolean {
    return this.#job !== null && isTerminal(this.#job.status)
  }

  /** Makes the frames of a snapshot's outputs, of which there may be thousands, before it is taken. */
  *prepare(job: Job): Work<void> {
    for (const [index, output] of job.outputs.entries()) {
      this.#textOf(output, job)
      if (index % STEP_OUTPUTS === STEP_OUTPUTS - 1) yield
    }
  }

  /** The record is gone for good: the only end that fits, unless the job had one. */
  takeGone(): readonly Buffer[] {
    return this.#job === null ? [] : this.take({ ...this.#job, status: 'expired', queuePosition: null })
  }

  offerPreview(preview: Preview): void {
    this.#preview.offer(preview)
  }

  /** Frames of progress and preview that are due. */
  due(): readonly Buffer[] {
    return this.hasEnded() ? [] : [...asList(this.#progress.take()), ...asList(this.#preview.take())]
  }

  /** When frames that wait are due; null: none wait. */
  dueInMs(): number | null {
    const waits = this.hasEnded()
      ? []
      : [this.#progress.dueInMs(), this.#preview.dueInMs()].filter((wait) => wait !== null)
    return waits.length === 0 ? null : Math.min(...waits)
  }

  /** How many frames about outputs there were: a reader that is up to date has been sent as many. */
  outputFrameCount(): number {
    return this.#staleFrames + this.#outputFrames.length
  }

  /** What brings a reader up to date that was given the first `given` of them. */
  present(given: number): readonly Buffer[] {
    this.#renewLinks()
    const status = asList(this.#statusFrame)
    const missing = this.#outputFrames.slice(Math.max(0, given - this.#staleFrames))
    if (this.hasEnded()) return [...missing, ...status]
    return [...status, ...asList(this.#progress.newest()), ...asList(this.#preview.newest()), ...missing]
  }

  #textOf(output: Output, of: Job): string {
    // An output that is made again keeps its id.
    const key = `${of.outputsReplaced} ${output.assetId}`
    const known = this.#texts.get(key)
    if (known !== undefined) return known
    const text = toOutputText(output, of, this.#base)
    this.#texts.set(key, text)
    return text
  }

  #toStatus(of: Job): Buffer {
    return toStatusFrame(of, isTerminal(of.status) ? of.outputs.map((output) => this.#textOf(output, of)) : [])
  }

  #takeOutputs(next: Job): readonly Buffer[] {
    const reset = this.#takeReset(next)
    const fresh = next.outputs.filter((output) => !this.#outputs.has(output.assetId))
    const frames = [...reset, ...fresh.map((output) => toOutputFrame(this.#textOf(output, next)))]
    for (const output of fresh) this.#outputs.set(output.assetId, output)
    this.#outputFrames.push(...frames)
    return frames
  }

  #takeReset(next: Job): readonly Buffer[] {
    if (next.outputsReplaced === this.#outputsReplaced) return []
    this.#outputsReplaced = next.outputsReplaced
    this.#outputs.clear()
    this.#staleFrames += this.#outputFrames.length
    this.#outputFrames = []
    return [toOutputsResetFrame(next)]
  }

  #takeProgress(next: Job, before: Job | null): void {
    if (next.progress === null || next.progress === before?.progress || next.progress.value < this.#shownValue) return
    this.#shownValue = next.progress.value
    this.#progress.offer(next.progress)
  }

  /** Signed addresses expire: a reader that joins a long job late must get fresh ones. */
  #renewLinks(): void {
    const untilMs = this.#base.contentLinks.steadyUntilMs()
    if (this.#job === null || untilMs === this.#steadyUntilMs) return
    const current = this.#job
    this.#steadyUntilMs = untilMs
    this.#texts.clear()
    const reset = this.#outputsReplaced > 0 ? [toOutputsResetFrame(current)] : []
    this.#outputFrames = [
      ...reset,
      ...Array.from(this.#outputs.values(), (output) => toOutputFrame(this.#textOf(output, current))),
    ]
    if (this.hasEnded()) this.#statusFrame = this.#toStatus(current)
  }
}

function asList(frame: Buffer | null): readonly Buffer[] {
  return frame === null ? [] : [frame]
}

// Event frames in the words of the wire, each made into bytes once for all its readers. Pure.

/** A terminal status carries outputs, each as JSON text, and error, so that a reader needs no further request. */
function toStatusFrame(job: Job, outputs: readonly string[]): Buffer {
  return encodeFrame('status', toStatusText(job, outputs))
}

function toStatusText(job: Job, outputs: readonly string[]): string {
  if (job.status === 'queued') return JSON.stringify({ status: job.status, queue_position: job.queuePosition })
  if (!isTerminal(job.status)) return JSON.stringify({ status: job.status })
  const error = job.error === null ? null : toJobErrorView(job.error)
  const list = outputs.join(',')
  return `{"status":"${job.status}","queue_position":null,"outputs":[${list}],"error":${JSON.stringify(error)}}`
}

/** A new attempt began: outputs that were told before this frame no longer count. */
function toOutputsResetFrame({ outputsReplaced }: Job): Buffer {
  return encodeFrame('outputs_reset', JSON.stringify({ outputs_replaced: outputsReplaced }))
}

function toProgressFrame(progress: Progress): Buffer {
  return encodeFrame('progress', JSON.stringify(toProgressView(progress)))
}

function toOutputFrame(text: string): Buffer {
  return encodeFrame('output', text)
}

/**
 * Keeps the newest value of a kind and lets two frames of it pass per second. After a rest two may pass at once: with a fixed pause
 * between frames one that came late would hold up all that follow it, for as long as they come twice a second. Only what passes is
 * encoded.
 */
export class FramePacer<Value> {
  readonly #now: () => number
  readonly #encode: (value: Value) => Buffer
  #unencoded: Value | undefined
  #frame: Buffer | null = null
  #isWaiting = false
  /** Until when all that passed has used its time. */
  #usedUntil = Number.NEGATIVE_INFINITY

  constructor(now: () => number, encode: (value: Value) => Buffer) {
    this.#now = now
    this.#encode = encode
  }

  offer(value: Value): void {
    this.#unencoded = value
    this.#isWaiting = true
  }

  /** The frame that may go out now, or null. */
  take(): Buffer | null {
    if (this.dueInMs() !== 0) return null
    this.#isWaiting = false
    this.#usedUntil = Math.max(this.#now(), this.#usedUntil) + INTERVAL_MS
    return this.newest()
  }

  /** When the frame that waits may go out; null: none waits. */
  dueInMs(): number | null {
    return this.#isWaiting ? Math.max(0, this.#usedUntil - INTERVAL_MS - this.#now()) : null
  }

  /** The newest frame, sent or not, for a reader that has seen none. */
  newest(): Buffer | null {
    if (this.#unencoded !== undefined) this.#frame = this.#encode(this.#unencoded)
    this.#unencoded = undefined
    return this.#frame
  }
}
