/** Plain callbacks for metrics and traces. They are called after the fact, must not throw and must not wait. */
import type { Job, OutputType } from './job.ts'
import type { GpuUse } from './run/gpu-use.ts'
import type { JobStatus } from './transitions.ts'

export interface JobObserver {
  submitted(job: Job): void
  started(run: { readonly job: Job; readonly queueMs: number }): void
  /** Once per job, whoever ended it. `executionMs` is null for a job that never ran or ran in another process. */
  finished(end: {
    readonly jobId: string
    readonly accountId: string
    readonly status: JobStatus
    readonly code: string | null
    readonly executionMs: number | null
  }): void
  /** A server has computed an attempt at a job, however that ended. */
  computed(run: {
    readonly accountId: string
    readonly pool: string
    readonly engineId: string
    readonly gpu: GpuUse
  }): void
  /** The engine or the worker died under the job; it goes back to the queue or fails. */
  attemptLost(loss: { readonly jobId: string; readonly attempt: number }): void
  /** Another owner has the job now; what this one did is discarded. */
  leaseLost(loss: { readonly jobId: string }): void
  outputStored(output: { readonly jobId: string; readonly type: OutputType; readonly sizeBytes: number }): void
  /** A job that asked for an earlier result: it got one, there was none, or it cannot be answered with one. */
  reused(look: { readonly outcome: 'hit' | 'miss' | 'refused'; readonly savedMs: number }): void
  /** An engine ignored an interrupt for longer than the grace period. */
  engineStuck(run: { readonly jobId: string }): void
}

export const silentObserver: JobObserver = {
  submitted() {},
  started() {},
  finished() {},
  computed() {},
  attemptLost() {},
  leaseLost() {},
  outputStored() {},
  reused() {},
  engineStuck() {},
}

/** One observer that calls all of these, in order. */
export function combineObservers(...observers: readonly Partial<JobObserver>[]): JobObserver {
  const tell =
    <Name extends keyof JobObserver>(name: Name) =>
    (fact: Parameters<JobObserver[Name]>[0]) => {
      for (const observer of observers) (observer[name] as ((fact: unknown) => void) | undefined)?.call(observer, fact)
    }
  return {
    submitted: tell('submitted'),
    started: tell('started'),
    finished: tell('finished'),
    computed: tell('computed'),
    attemptLost: tell('attemptLost'),
    leaseLost: tell('leaseLost'),
    outputStored: tell('outputStored'),
    reused: tell('reused'),
    engineStuck: tell('engineStuck'),
  }
}
