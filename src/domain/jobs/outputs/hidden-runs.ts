/**
 * Runs of endpoints of other accounts. Their callers see what went in, how far it is and what came out; the workflow, and all that tells
 * of it, stays with its owner. What is stored of such a run is the same as of any other, but for its outputs: those are stored
 * without what generators write into files.
 */
import { applyPatches } from '../../../../lib/files/blank-metadata/patches.ts'
import type { NewId } from '../../../../lib/ids.ts'
import { findBlanks } from '../../assets/blank-content.ts'
import type { BlobStore } from '../../assets/blob-store.ts'
import { outlastOutage } from '../../errors.ts'
import type { LiveEvent } from '../../events/live-event.ts'
import type { Job, JobError, Output, Progress } from '../job.ts'
import { isOfOther } from '../submit/job-labels.ts'
import { type JudgeRequest, type OutputCheck, toWithheld } from './check-outputs.ts'

const FAILURES: Readonly<Record<string, string>> = {
  out_of_memory: 'There was not enough memory for this. Try something smaller.',
  worker_lost: 'The run was lost on its way. Try it again.',
  engine_lost: 'The run was lost on its way. Try it again.',
  interrupted: 'The run was stopped. Try it again.',
}
// What the operator says is meant for whoever ran it.
const TOLD: ReadonlySet<string> = new Set(['refused_by_policy', 'check_unavailable'])

/** Why a run failed, without a word of nodes, files and weights; null: only that it failed can be told. */
export function toSafeMessage({ code, message }: Pick<JobError, 'code' | 'message'>): string | null {
  if (TOLD.has(code)) return message
  return Object.hasOwn(FAILURES, code) ? (FAILURES[code] ?? null) : null
}

const FAILED = 'The run failed. Try other inputs, or tell the owner of the endpoint.'

type Told = Pick<Job, 'metadata' | 'error' | 'progress'>

/** As its caller may see it. */
export function toToldJob<Known extends Told>(job: Known): Known {
  if (!isOfOther(job.metadata)) return job
  const { error, progress } = job
  return {
    ...job,
    error: error === null ? null : toToldError(error),
    progress: progress === null ? null : toToldProgress(progress),
  }
}

export function toToldError({ code, message }: JobError): JobError {
  return { code, message: toSafeMessage({ code, message }) ?? FAILED, nodeId: null, classType: null, traceback: null }
}

function toToldProgress(progress: Progress): Progress {
  return { ...progress, currentNode: null, currentNodeClass: null, message: null }
}

/** What is heard of a run whose outputs are held back. null: nobody hears this one. */
export function toHeldEvent(event: LiveEvent, metadata: Job['metadata']): LiveEvent | null {
  return isOfOther(metadata) ? toToldEvent(event) : toWithheld(event)
}

/** When it begins and ends, and nothing of what is between. null: nobody hears this one. */
function toToldEvent(event: LiveEvent): LiveEvent | null {
  switch (event.type) {
    case 'started':
    case 'succeeded':
    case 'interrupted':
      return event
    case 'failed': {
      const { code, message } = event.failure
      const failure = { ...toToldError({ ...event.failure, code, message }), exceptionType: 'Error' }
      return { type: 'failed', failure }
    }
    default:
      return null
  }
}

interface HiddenRunsDeps {
  readonly blobs: Pick<BlobStore, 'open'>
  readonly newId: NewId
}

/** `check` with runs of other accounts' endpoints among those that it covers. null: it covers no others. */
export function withHiddenRuns(check: OutputCheck | null, { blobs, newId }: HiddenRunsDeps): OutputCheck {
  const isChecked = (metadata: Job['metadata']) => check?.covers(metadata) === true

  /** null: what it hides, nobody here can tell. */
  async function clean(output: Output, { store, signal }: JudgeRequest): Promise<Output | null> {
    const { contentType, sizeBytes, hash } = output
    const open = (range?: Parameters<BlobStore['open']>[1]) => blobs.open(hash, range)
    const patches = await findBlanks({ contentType, sizeBytes, open })
    if (patches === null || patches.length === 0) return patches === null ? null : output
    const stored = await outlastOutage(
      async () => store(applyPatches(await open(), patches), { maxBytes: sizeBytes, signal }),
      signal,
    )
    return { ...output, ...stored, assetId: newId() }
  }

  return {
    covers: (metadata) => isOfOther(metadata) || isChecked(metadata),
    keyOf(metadata) {
      const key = check?.keyOf(metadata) ?? null
      return isOfOther(metadata) ? `${key ?? ''} blanked` : key
    },
    async judge(request) {
      const { job, outputs } = request
      const verdict =
        check?.covers(job.metadata) === true
          ? await check.judge(request)
          : ({ verdict: 'hand_out', outputs, changedNodes: new Set<string>(), note: null } as const)
      if (!isOfOther(job.metadata) || verdict.verdict !== 'hand_out') return verdict
      const cleaned: Output[] = []
      for (const output of verdict.outputs) {
        const kept = await clean(output, request)
        if (kept !== null) cleaned.push(kept)
      }
      const changedNodes = new Set(outputs.map(({ nodeId }) => nodeId))
      const left = verdict.outputs.length - cleaned.length
      return { ...verdict, outputs: cleaned, changedNodes, note: left === 0 ? verdict.note : leftOut(left) }
    },
  }
}

function leftOut(count: number): string {
  return `${count} of the files are of a kind that may hold the workflow, and were left out`
}
