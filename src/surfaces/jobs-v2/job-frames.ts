/**
 * What to tell about a job: turns its snapshots and previews into frames, each encoded once. Knows no reader and no socket.
 *
 * Order: status, then outputs as they are committed, each once; the terminal status last. Progress never falls, and progress
 * and previews come at most twice a second.
 */
import type { Job, Output } from '../../domain/jobs/job.ts'
import { isTerminal } from '../../domain/jobs/transitions.ts'
import type { Preview } from '../../domain/jobs/watch-job.ts'
import type { Work } from '../../lib/turns.ts'
import { toOutputFrame, toPreviewFrame, toProgressFrame, toReplayedStatusFrame, toStatusFrame } from './event-view.ts'
import { toOutputText, type ViewBase } from './job-view.ts'
import { createPacer } from './pacer.ts'

export interface JobFrames {
  /** Makes the frames of a snapshot's outputs, of which there may be thousands, before it is taken. */
  prepare(job: Job): Work<void>
  /** What a newer snapshot adds, in order; ends with the terminal status when the job has ended. */
  take(job: Job): readonly Buffer[]
  /** The record is gone for good: the only end that fits, unless the job had one. */
  takeGone(): readonly Buffer[]
  offerPreview(preview: Preview): void
  /** Progress and preview whose turn has come. */
  due(): readonly Buffer[]
  isWaiting(): boolean
  hasEnded(): boolean
  /** How many outputs there are: a reader that was told everything has been given as many. */
  outputCount(): number
  /** What brings a reader up to date that was given the first `outputsGiven` outputs. */
  present(outputsGiven: number, isFirst: boolean): readonly Buffer[]
}

const STEP_OUTPUTS = 100

export function createJobFrames(base: ViewBase, now: () => number): JobFrames {
  const outputs = new Map<string, Output>()
  /** By the id of the output: as JSON text, made before it is told or with it. */
  const texts = new Map<string, string>()
  let outputFrames: Buffer[] = []
  let steadyUntilMs = base.contentLinks.steadyUntilMs()
  const progress = createPacer(now)
  const preview = createPacer(now)
  let job: Job | null = null
  let shownValue = Number.NEGATIVE_INFINITY
  let statusFrame: Buffer | null = null

  function textOf(output: Output, of: Job): string {
    const known = texts.get(output.assetId)
    if (known !== undefined) return known
    const text = toOutputText(output, of, base)
    texts.set(output.assetId, text)
    return text
  }

  function* prepare(next: Job): Work<void> {
    for (const [index, output] of next.outputs.entries()) {
      textOf(output, next)
      if (index % STEP_OUTPUTS === STEP_OUTPUTS - 1) yield
    }
  }

  function toStatus(of: Job): Buffer {
    return toStatusFrame(of, isTerminal(of.status) ? of.outputs.map((output) => textOf(output, of)) : [])
  }

  function takeOutputs(next: Job): readonly Buffer[] {
    const fresh = next.outputs.filter((output) => !outputs.has(output.assetId))
    const frames = fresh.map((output) => toOutputFrame(textOf(output, next)))
    for (const output of fresh) outputs.set(output.assetId, output)
    outputFrames.push(...frames)
    return frames
  }

  function takeProgress(next: Job, before: Job | null): void {
    if (next.progress === null || next.progress === before?.progress || next.progress.value < shownValue) return
    shownValue = next.progress.value
    progress.offer(toProgressFrame(next.progress))
  }

  function take(next: Job): readonly Buffer[] {
    if (hasEnded() || (job !== null && next.version < job.version)) return []
    const before = job
    job = next
    const outputs = takeOutputs(next)
    takeProgress(next, before)
    if (before?.status === next.status && before.queuePosition === next.queuePosition) return outputs
    const frame = toStatus(next)
    statusFrame = frame
    return isTerminal(next.status) ? [...outputs, ...asList(progress.take()), frame] : [frame, ...outputs]
  }

  /** Signed addresses age: whoever joins a long job late must not be given old ones. */
  function renewLinks(): void {
    const untilMs = base.contentLinks.steadyUntilMs()
    if (job === null || untilMs === steadyUntilMs) return
    const current = job
    steadyUntilMs = untilMs
    texts.clear()
    outputFrames = Array.from(outputs.values(), (output) => toOutputFrame(textOf(output, current)))
    if (hasEnded()) statusFrame = toStatus(current)
  }

  function hasEnded(): boolean {
    return job !== null && isTerminal(job.status)
  }

  return {
    prepare,
    take,
    takeGone: () => (job === null ? [] : take({ ...job, status: 'expired', queuePosition: null })),
    offerPreview: (next) => preview.offer(toPreviewFrame(next)),
    due: () => (hasEnded() ? [] : [...asList(progress.take()), ...asList(preview.take())]),
    isWaiting: () => !hasEnded() && (progress.isWaiting() || preview.isWaiting()),
    hasEnded,
    outputCount: () => outputFrames.length,
    present(outputsGiven, isFirst) {
      renewLinks()
      const status = asList(statusFrame)
      const missing = outputFrames.slice(outputsGiven)
      if (!hasEnded()) return [...status, ...asList(progress.newest()), ...asList(preview.newest()), ...missing]
      return isFirst && missing.length > 0 ? [toReplayedStatusFrame(), ...missing, ...status] : [...missing, ...status]
    },
  }
}

function asList(frame: Buffer | null): readonly Buffer[] {
  return frame === null ? [] : [frame]
}
