/**
 * The part of a run that keeps what nodes report: items become drafts, drafts become stored outputs, and those go to the
 * committer in the order of their report. It can be cut off, and then outputs that are not stored yet fail.
 */
import { EngineLostError } from '../../engine/engine-lost-error.ts'
import { toJobError } from '../end/end-of-run.ts'
import type { Job, JobError, Output } from '../job.ts'
import type { Lease } from '../job-store.ts'
import type { Reported } from '../run/apply-engine-event.ts'
import type { Committer } from '../run/committer.ts'
import type { RunDeps } from '../run/run-deps.ts'
import { toOutputDraft } from './output-draft.ts'
import { createIngest, mayPassLater, toIngestError } from './output-ingest.ts'

/** Why an output could not be kept. */
export interface OutputFault {
  readonly error: JobError
  /** The fault is not the job's: a later attempt, or another engine, may succeed. */
  readonly mayPass: boolean
  /** The engine could not hand it out. */
  readonly loss: EngineLostError | null
}

export interface RunOutputs {
  add(reported: readonly Reported[]): void
  /** Resolves when few enough outputs wait to be stored. */
  hasRoom(): Promise<void>
  /** Resolves when nothing is under way. */
  allStored(): Promise<void>
  /** What is still under way is given up. */
  cut(reason: string): void
  /** The run is over: the same, where as a rule nothing is under way. */
  end(): void
}

interface RunOutputsOptions {
  readonly job: Job
  readonly lease: Lease
  readonly earlier: readonly Output[]
  readonly committer: Pick<Committer, 'addOutput'>
  onFault(cause: unknown, fault: OutputFault): void
}

// One for all runs: an error that is made anew records where, which costs more than storing a short text.
const OVER = new Error('the run is over')

export function createRunOutputs(
  deps: RunDeps,
  { job, lease, earlier, committer, onFault }: RunOutputsOptions,
): RunOutputs {
  const { observer, outputRules } = deps
  const stop = new AbortController()
  const ingest = createIngest({
    storeBlob: (source, options) => deps.storeBlob(source, { ...options, lease, isOutput: true }),
    newId: deps.newId,
    limit: deps.ingestLimit,
    maxBytes: deps.limits.maxOutputBytes,
    storageLeft: async () => deps.storageLeft?.(job.accountId) ?? Number.POSITIVE_INFINITY,
    signal: stop.signal,
    earlier,
    onReady(output) {
      observer.outputStored({ jobId: job.id, type: output.type, sizeBytes: output.sizeBytes })
      committer.addOutput(output)
    },
    onError: (cause) => onFault(cause, toFault(cause)),
  })
  return {
    add(reported) {
      for (const each of reported) {
        const draft = toOutputDraft(each, outputRules)
        if (draft !== null) ingest.add(draft)
      }
    },
    hasRoom: () => ingest.hasRoom(),
    allStored: () => ingest.allStored(),
    cut: (reason) => stop.abort(new Error(reason)),
    end: () => stop.abort(OVER),
  }
}

export function toFault(cause: unknown): OutputFault {
  if (!(cause instanceof EngineLostError)) {
    return { error: toIngestError(cause), mayPass: mayPassLater(cause), loss: null }
  }
  const error = toJobError('output_unreadable', `an output could not be read from the engine: ${cause.message}`)
  return { error, mayPass: true, loss: cause }
}
