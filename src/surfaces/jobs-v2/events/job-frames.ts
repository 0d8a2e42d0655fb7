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

interface JobFrames {
  /** Makes the frames of a snapshot's outputs, of which there may be thousands, before it is taken. */
  prepare(job: Job): Work<void>
  /** What a newer snapshot adds, in order; ends with the terminal status when the job has ended. */
  take(job: Job): readonly Buffer[]
  /** The record is gone for good: the only end that fits, unless the job had one. */
  takeGone(): readonly Buffer[]
  offerPreview(preview: Preview): void
  /** Frames of progress and preview that are due. */
  due(): readonly Buffer[]
  /** When frames that wait are due; null: none wait. */
  dueInMs(): number | null
  hasEnded(): boolean
  /** How many frames about outputs there were: a reader that is up to date has been sent as many. */
  outputFrameCount(): number
  /** What brings a reader up to date that was given the first `given` of them. */
  present(given: number): readonly Buffer[]
}

const STEP_OUTPUTS = 100

export function createJobFrames(base: ViewBase, now: () => number): JobFrames {
  const outputs = new Map<string, Output>()
  /** By attempt and id of the output, its JSON text, which may be made before its frame is sent. */
  const texts = new Map<string, string>()
  /** A reset, where there was one, and the outputs since. */
  let outputFrames: Buffer[] = []
  /** How many frames came before these, about attempts that were replaced. */
  let staleFrames = 0
  let outputsReplaced = 0
  let steadyUntilMs = base.contentLinks.steadyUntilMs()
  const progress = createFramePacer(now, toProgressFrame)
  const preview = createFramePacer(now, toPreviewFrame)
  let job: Job | null = null
  let shownValue = Number.NEGATIVE_INFINITY
  let statusFrame: Buffer | null = null

  function textOf(output: Output, of: Job): string {
    // An output that is made again keeps its id.
    const key = `${of.outputsReplaced} ${output.assetId}`
    const known = texts.get(key)
    if (known !== undefined) return known
    const text = toOutputText(output, of, base)
    texts.set(key, text)
    return text
  }

  function toStatus(of: Job): Buffer {
    return toStatusFrame(of, isTerminal(of.status) ? of.outputs.map((output) => textOf(output, of)) : [])
  }

  function takeOutputs(next: Job): readonly Buffer[] {
    const reset = takeReset(next)
    const fresh = next.outputs.filter((output) => !outputs.has(output.assetId))
    const frames = [...reset, ...fresh.map((output) => toOutputFrame(textOf(output, next)))]
    for (const output of fresh) outputs.set(output.assetId, output)
    outputFrames.push(...frames)
    return frames
  }

  function takeReset(next: Job): readonly Buffer[] {
    if (next.outputsReplaced === outputsReplaced) return []
    outputsReplaced = next.outputsReplaced
    outputs.clear()
    staleFrames += outputFrames.length
    outputFrames = []
    return [toOutputsResetFrame(next)]
  }

  function takeProgress(next: Job, before: Job | null): void {
    if (next.progress === null || next.progress === before?.progress || next.progress.value < shownValue) return
    shownValue = next.progress.value
    progress.offer(next.progress)
  }

  function take(next: Job): readonly Buffer[] {
    // An end counts even with a lower version: a crash of the store may have undone progress that was already sent.
    if (hasEnded() || (job !== null && next.version < job.version && !isTerminal(next.status))) return []
    const before = job
    job = next
    const outputs = takeOutputs(next)
    takeProgress(next, before)
    if (before?.status === next.status && before.queuePosition === next.queuePosition) return outputs
    const frame = toStatus(next)
    statusFrame = frame
    return isTerminal(next.status) ? [...outputs, ...asList(progress.take()), frame] : [frame, ...outputs]
  }

  /** Signed addresses expire: a reader that joins a long job late must get fresh ones. */
  function renewLinks(): void {
    const untilMs = base.contentLinks.steadyUntilMs()
    if (job === null || untilMs === steadyUntilMs) return
    const current = job
    steadyUntilMs = untilMs
    texts.clear()
    const reset = outputsReplaced > 0 ? [toOutputsResetFrame(current)] : []
    outputFrames = [...reset, ...Array.from(outputs.values(), (output) => toOutputFrame(textOf(output, current)))]
    if (hasEnded()) statusFrame = toStatus(current)
  }

  function hasEnded(): boolean {
    return job !== null && isTerminal(job.status)
  }

  return {
    prepare: (next) => makeTexts(next, textOf),
    take,
    takeGone: () => (job === null ? [] : take({ ...job, status: 'expired', queuePosition: null })),
    offerPreview: preview.offer,
    due: () => (hasEnded() ? [] : [...asList(progress.take()), ...asList(preview.take())]),
    dueInMs() {
      const waits = hasEnded() ? [] : [progress.dueInMs(), preview.dueInMs()].filter((wait) => wait !== null)
      return waits.length === 0 ? null : Math.min(...waits)
    },
    hasEnded,
    outputFrameCount: () => staleFrames + outputFrames.length,
    present(given) {
      renewLinks()
      const status = asList(statusFrame)
      const missing = outputFrames.slice(Math.max(0, given - staleFrames))
      if (hasEnded()) return [...missing, ...status]
      return [...status, ...asList(progress.newest()), ...asList(preview.newest()), ...missing]
    },
  }
}

function asList(frame: Buffer | null): readonly Buffer[] {
  return frame === null ? [] : [frame]
}

function* makeTexts(job: Job, textOf: (output: Output, of: Job) => string): Work<void> {
  for (const [index, output] of job.outputs.entries()) {
    textOf(output, job)
    if (index % STEP_OUTPUTS === STEP_OUTPUTS - 1) yield
  }
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
interface FramePacer<Value> {
  offer(value: Value): void
  /** The frame that may go out now, or null. */
  take(): Buffer | null
  /** When the frame that waits may go out; null: none waits. */
  dueInMs(): number | null
  /** The newest frame, sent or not, for a reader that has seen none. */
  newest(): Buffer | null
}

/** The contract allows two of each kind per second. */
const INTERVAL_MS = 500

export function createFramePacer<Value>(now: () => number, encode: (value: Value) => Buffer): FramePacer<Value> {
  let unencoded: Value | undefined
  let frame: Buffer | null = null
  let waiting = false
  /** Until when all that passed has used its time. */
  let usedUntil = Number.NEGATIVE_INFINITY

  function newest(): Buffer | null {
    if (unencoded !== undefined) frame = encode(unencoded)
    unencoded = undefined
    return frame
  }

  const dueInMs = () => (waiting ? Math.max(0, usedUntil - INTERVAL_MS - now()) : null)

  return {
    offer(value) {
      unencoded = value
      waiting = true
    },
    take() {
      if (dueInMs() !== 0) return null
      waiting = false
      usedUntil = Math.max(now(), usedUntil) + INTERVAL_MS
      return newest()
    },
    dueInMs,
    newest,
  }
}
