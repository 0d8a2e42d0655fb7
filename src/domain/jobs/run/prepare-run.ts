/**
 * Turns a claimed job into what an engine is given: its graph as the store has it, its files by the names that stand in the
 * graph (read when they are asked for) and its credentials. Says which jobs must not run at all.
 */
import type { Readable } from 'node:stream'
import type { Graph } from '../../../../engine/graph/graph.ts'
import { readGraph, readGraphSteps } from '../../../../engine/graph/graph-json.ts'
import { type JsonValue, keepNumber, parseLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { readJsonSteps } from '../../../../lib/json/read-json-steps.ts'
import type { Turns, Work } from '../../../../lib/waiting/turns.ts'
import type { EngineInput, EngineRun } from '../../engine/engine-port.ts'
import { ServiceError } from '../../errors.ts'
import { outlastOutage } from '../../outage.ts'
import { toJobError } from '../end/end-of-run.ts'
import type { JobError, JobInput } from '../job.ts'
import type { Claim, Lease } from '../job-store.ts'
import { type OutputFault, toFault } from '../outputs/run-outputs.ts'
import { joinExtraData } from '../submit/extra-data-keeper.ts'
import type { RunDeps, RunInputs } from './run-deps.ts'

interface PrepareDeps extends Pick<RunDeps, 'mustBeActive' | 'turns' | 'extraData' | 'blobs' | 'store' | 'log'> {
  /** Ends the wait for a store that is away. */
  readonly signal: AbortSignal
  onOutputFault(cause: unknown, fault: OutputFault): void
}

const CREDENTIALS_LOST =
  'the credentials of this job were kept in memory only and did not survive a restart; submit the job again'

/** `error`: the job must not run at all. Nobody pays for it. */
export async function prepareRun(
  claim: Claim,
  deps: PrepareDeps,
): Promise<{ readonly run: EngineRun } | { readonly error: JobError }> {
  const { job, workflow, inputs, needsExtraData, sealedExtraData, notes } = claim
  const lease = { jobId: job.id, leaseId: claim.leaseId }
  try {
    deps.mustBeActive?.(job.accountId)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return { error: toJobError(error.refusal, error.message) }
  }
  try {
    const graph = await readStoredGraph(workflow, deps.turns)
    const credentials = needsExtraData ? deps.extraData.take(job.id, sealedExtraData) : null
    if (needsExtraData && credentials === null) return { error: toJobError('credentials_lost', CREDENTIALS_LOST) }
    const run: EngineRun = {
      jobId: job.id,
      accountId: job.accountId,
      attempt: job.attempt,
      claimId: claim.leaseId,
      graph,
      graphText: workflow,
      inputs: new Map(inputs.map((input) => [input.name, toEngineInput(input, { ...deps, lease })])),
      extraData: joinExtraData(notes === null ? null : await readStoredJson(notes, deps.turns), credentials),
      reserveOutputNumbers: (folder, prefix, count) =>
        outlastOutage(
          () => deps.store.reserveOutputNumbers(job.accountId, folder, prefix, count, lease),
          deps.signal,
        ).catch((error: unknown) => {
          // To the engine this is a node that failed; the reason is ours.
          const fault = toFault(error)
          if (fault.mayPass) deps.onOutputFault(error, fault)
          throw error
        }),
    }
    return { run }
  } catch (error) {
    deps.log.error({ err: error }, 'a recorded job could not be prepared')
    return { error: toJobError('internal_error', 'the recorded workflow could not be read') }
  }
}

/** Bytes that are away with their storage are waited for. */
function toEngineInput(
  { hash, sizeBytes, contentType }: JobInput,
  { blobs, signal, lease }: { readonly blobs: RunInputs; readonly signal: AbortSignal; readonly lease: Lease },
): EngineInput {
  const { borrow } = blobs
  return {
    hash,
    sizeBytes,
    contentType,
    localPath: blobs.localPath(hash),
    ...(borrow && { borrow: (ending: AbortSignal) => outlastOutage(() => borrow(hash), ending) }),
    read: () => readBytes(() => blobs.open(hash, undefined, lease), signal),
  }
}

async function* readBytes(open: () => Promise<Readable>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  yield* (await outlastOutage(open, signal)) as AsyncIterable<Uint8Array>
}

const SMALL_LENGTH = 65_536
// It was read within the limits of a request when it was submitted.
const NO_LIMIT = Number.POSITIVE_INFINITY
const LIMITS = { maxDepth: NO_LIMIT, maxValues: NO_LIMIT, maxMembers: NO_LIMIT, maxLongDigits: NO_LIMIT }

/** A small graph is read at once, a large one in slices, so that other work on this thread does not wait for it. */
export function readStoredGraph(text: string, turns: Turns): Graph | Promise<Graph> {
  return text.length < SMALL_LENGTH ? readGraph(parseLosslessJson(text)) : turns.run(readSteps(text))
}

/** What was stored of `extra_data` was within the bounds of a body. */
export function readStoredJson(text: string, turns: Turns): JsonValue | Promise<JsonValue> {
  if (text.length < SMALL_LENGTH) return parseLosslessJson(text)
  return turns.run(readJsonSteps(Buffer.from(text), { readNumber: keepNumber, limits: LIMITS })) as Promise<JsonValue>
}

function* readSteps(text: string): Work<Graph> {
  const value = yield* readJsonSteps(Buffer.from(text), { readNumber: keepNumber, limits: LIMITS })
  return yield* readGraphSteps(value as JsonValue)
}
