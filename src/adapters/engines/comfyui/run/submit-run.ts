/**
 * Submits a graph to the server under an id of our own. When no reply comes, queue and history are asked whether the server has
 * it: the graph is never posted again on a guess. It is posted again, for a while, only where the server certainly has not seen it.
 */
import { performance } from 'node:perf_hooks'
import { isJsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import { createBackoff, sleep } from '../../../../../lib/waiting/sleep.ts'
import type { EngineLostError } from '../../../../domain/engine/engine-lost-error.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import { silenceError } from '../health/fitness.ts'
import type { ComfyApi } from '../wire/comfy-api.ts'
import { CallError } from '../wire/comfy-http.ts'
import { hasNodeErrors } from './graph-refusal.ts'
import { lostByCall } from './run-endings.ts'
import { findInQueue } from './stop-run.ts'

export type Submitted =
  /** The id under which the server knows it: very old ones give their own. */
  | { readonly kind: 'accepted'; readonly promptId: string }
  /** `isQueued`: a part of it was accepted nevertheless and has to be stopped. */
  | { readonly kind: 'refused'; readonly body: JsonValue; readonly isQueued: boolean; readonly promptId: string }
  | { readonly kind: 'given_up' }

interface SubmitDeps {
  readonly api: ComfyApi
  readonly bounds: ComfyBounds
}

interface SubmitOptions {
  readonly promptId: string
  readonly body: string
  readonly stop: AbortSignal
  /** Aborted when the server has not answered anything for too long. */
  readonly silent: AbortSignal
}

const REFUSED = 400
// Answered before anything was done: by a server that is still starting, or by a proxy without a server behind it.
const NOT_NOW: ReadonlySet<number> = new Set([429, 503])
const RETRY = { firstMs: 100, maxMs: 2_000 }

/** Throws EngineLostError when the graph was certainly not accepted, or when that cannot be found out. */
export async function submitRun(deps: SubmitDeps, options: SubmitOptions): Promise<Submitted> {
  const { promptId, body, stop, silent } = options
  const backoff = createBackoff(RETRY)
  const beganAt = performance.now()
  while (true) {
    if (stop.aborted) return { kind: 'given_up' }
    try {
      return readAnswer(await deps.api.submit(body, { signal: silent }), promptId)
    } catch (error) {
      if (!(error instanceof CallError)) throw error
      if (silent.aborted) throw givenUp(deps, promptId)
      if (error.status === REFUSED) return { kind: 'refused', body: error.body, isQueued: false, promptId }
      const isUnseen = error.fault === 'unreachable' || (error.status !== null && NOT_NOW.has(error.status))
      if (!isUnseen || (await isKnown(deps, options))) return reconcile(deps, options, error)
      const limitMs = error.fault === 'unreachable' ? deps.bounds.refusedMs : deps.bounds.unreachableMs
      if (performance.now() - beganAt > limitMs) throw lost(error)
      await sleep(backoff.nextMs(), stop)
    }
  }
}

function readAnswer(answer: JsonValue, promptId: string): Submitted {
  const given = isJsonObject(answer) && typeof answer.prompt_id === 'string' ? answer.prompt_id : promptId
  if (hasNodeErrors(answer)) return { kind: 'refused', body: answer, isQueued: true, promptId: given }
  return { kind: 'accepted', promptId: given }
}

async function isKnown({ api }: SubmitDeps, { promptId, silent }: SubmitOptions): Promise<boolean> {
  try {
    return (
      (await api.history(promptId, { signal: silent })) !== null || (await findInQueue(api, promptId, silent)) !== null
    )
  } catch {
    return false
  }
}

/** The request may still be on its way, so it is looked for as long as a finished run may take to appear. */
async function reconcile(deps: SubmitDeps, options: SubmitOptions, cause: CallError): Promise<Submitted> {
  const { bounds, api } = deps
  const { promptId, silent } = options
  const until = performance.now() + Math.max(bounds.vanishedMs, bounds.pollFirstMs)
  do {
    if (await isKnown(deps, options)) return { kind: 'accepted', promptId }
    if (silent.aborted) throw givenUp(deps, promptId)
    await sleep(bounds.pollFirstMs)
  } while (performance.now() < until)
  // Should it arrive after all, it must not run.
  await api.deletePending(promptId).catch(() => {})
  throw lost(cause)
}

/** The withdrawal is not waited for: the server may never answer it. */
function givenUp(deps: SubmitDeps, promptId: string): EngineLostError {
  deps.api.deletePending(promptId).catch(() => {})
  return lost(silenceError(deps))
}

function lost(cause: CallError): EngineLostError {
  return lostByCall('the engine did not take the run', cause)
}
