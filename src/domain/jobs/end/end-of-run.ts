/**
 * How an attempt ends, given what the engine said and what we did to it. The engine's own outcome counts first: a run that
 * finished before an interrupt took hold is finished. Pure: the run carries the verdict out.
 */
import type { Graph } from '../../../../engine/graph/graph.ts'
import { EngineLostError } from '../../engine/engine-lost-error.ts'
import type { FindWeights } from '../../engine/weights/missing-weights.ts'
import { isWeights } from '../../workflows/needs.ts'
import type { JobError } from '../job.ts'
import type { RunOutcome } from '../run/apply-engine-event.ts'
import type { RunEndStatus } from '../transitions.ts'

/** Why the worker interrupted the run. */
export type StopCause =
  | { readonly cause: 'cancel' }
  | { readonly cause: 'timeout'; readonly limitMs: number }
  /** An output could not be kept, so the job cannot succeed. `mayPass`: a later attempt may. */
  | { readonly cause: 'failed'; readonly error: JobError; readonly mayPass: boolean }

/** Why the engine cannot bring the run to an end. */
export interface EngineLoss {
  readonly reason: string
  /** The engine needs a restart before it can run anything. */
  readonly isUnfit: boolean
  /** Another run took the engine down. */
  readonly isBlameless: boolean
  /** The engine was lost before the run began there. */
  readonly isUntouched: boolean
}

export interface RunFacts {
  readonly outcome: RunOutcome | null
  readonly stop: StopCause | null
  /** null: the engine was there to the end. */
  readonly loss: EngineLoss | null
  /** The failure may not be the job's fault: it runs once more, as a new attempt or for free. null: it does not. */
  readonly again: 'spent' | 'free' | null
  readonly attempt: number
  readonly maxAttempts: number
}

export type RunVerdict =
  | { readonly verdict: 'finish'; readonly status: RunEndStatus; readonly error: JobError | null }
  /** The attempt is spent, and the job goes back to the queue. */
  | { readonly verdict: 'requeue' }
  /** The job goes back to the queue without having spent an attempt. */
  | { readonly verdict: 'return' }

export function decideEnd(facts: RunFacts): RunVerdict {
  const { outcome, stop, loss, attempt, maxAttempts } = facts
  if (stop?.cause === 'failed') {
    if (stop.mayPass && facts.again === 'free') return { verdict: 'return' }
    return stop.mayPass && attempt < maxAttempts ? { verdict: 'requeue' } : toFailure(stop.error)
  }
  if (outcome?.kind === 'succeeded') return { verdict: 'finish', status: 'succeeded', error: null }
  if (outcome?.kind === 'failed') {
    if (facts.again === 'free' && stop === null) return { verdict: 'return' }
    const isRetried = facts.again === 'spent' && stop === null && attempt < maxAttempts
    return isRetried ? { verdict: 'requeue' } : toFailure(outcome.error)
  }
  if (stop?.cause === 'cancel') return { verdict: 'finish', status: 'canceled', error: null }
  if (stop?.cause === 'timeout') {
    return toFailure(
      toJobError('timeout', `the run took longer than ${Math.round(stop.limitMs / 1000)} s and was stopped`),
    )
  }
  if (loss === null) return toFailure(toJobError('interrupted', 'the engine stopped the run without being asked'))
  if (loss.isBlameless || loss.isUntouched) return { verdict: 'return' }
  if (attempt < maxAttempts) return { verdict: 'requeue' }
  return toFailure(
    toJobError(
      'engine_lost',
      `the engine was lost in each of ${attempt} attempts to run this job; the last time, ${loss.reason}`,
    ),
  )
}

export function toJobError(code: string, message: string): JobError {
  return { code, message, nodeId: null, classType: null, traceback: null }
}

/** The verdict over a run that cannot begin, go on or end well. */
export function toFailure(error: JobError): RunVerdict {
  return { verdict: 'finish', status: 'failed', error }
}

/** `cause`: what the iterator of a run, or the reading of a file it reported, has thrown. */
export function toEngineLoss(cause: unknown): EngineLoss {
  if (!(cause instanceof EngineLostError)) {
    return { reason: 'the engine broke off', isUnfit: false, isBlameless: false, isUntouched: false }
  }
  const { message, isUnfit, isBlameless, isUntouched } = cause
  return { reason: message, isUnfit, isBlameless, isUntouched }
}

/** Says of a run that did not find its weights which file is missing, in which folder, and which engines have it. Pure. */
interface FailedRun {
  readonly graph: Graph
  readonly engineId: string
  readonly findWeights: FindWeights
}

const MISSING_WEIGHTS = 'missing_weights'
const MAX_NAMED = 4

/** Any other error, and one whose node names no weights, is given back as it is. */
export function explainMissing(error: JobError, { graph, engineId, findWeights }: FailedRun): JobError {
  if (error.code !== MISSING_WEIGHTS || error.nodeId === null) return error
  const node = graph.get(error.nodeId)
  const named = Object.entries(node?.inputs ?? {}).flatMap(([input, value]) =>
    typeof value === 'string' && isWeights(value) ? [{ input, name: value }] : [],
  )
  if (node === undefined || named.length === 0) return error
  // A node may load several files; the engine says which one it lacks, as a rule.
  const told = named.filter(({ name }) => error.message.includes(name))
  const words = (told.length > 0 ? told : named).slice(0, MAX_NAMED).map(({ input, name }) => {
    const { folder, engines } = findWeights({ classType: node.classType, input, name })
    const others = engines.filter((id) => id !== engineId)
    const where = others.length === 0 ? 'no other engine has it' : `it is on ${others.slice(0, MAX_NAMED).join(', ')}`
    return `${folder === null ? '' : `${folder}/`}${name} is not on engine ${engineId}; ${where}`
  })
  return { ...error, message: `${words.join('. ')}. The engine said: ${error.message}` }
}
