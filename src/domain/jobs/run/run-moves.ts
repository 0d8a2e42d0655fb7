/**
 * The states of a run and the moves between them. A run is one attempt at a job under one lease:
 *
 *   preparing --engine_started--> executing --engine_silent, grace_over--> storing --decided--> ending
 *       |                             |                                       |                   |
 *       |-- decided --> ending        |                                       |                   | end_refused
 *       |                             |                                       |                   v
 *       '- lease_lost, lease_returned, run_left (in any phase before `ending`) ----'-------------> discarded
 *
 * `moveRun` is pure: it returns the next state and the effects that the owner of the run has to carry out, in that order.
 * A move that does not count in the present phase changes nothing, so callers may report what happens as it happens.
 */
import type { Graph } from '../../../../engine/graph/graph.ts'
import { EngineLostError } from '../../engine/engine-lost-error.ts'
import type { FindWeights } from '../../engine/weights/missing-weights.ts'
import { isWeights } from '../../workflows/needs.ts'
import type { JobError } from '../job.ts'
import type { RunEndStatus } from '../transitions.ts'
import type { RunOutcome } from './apply-engine-event.ts'

export type RunPhase =
  | 'preparing' // the recorded job is read; the engine has not been asked yet
  | 'executing' // the engine runs the graph
  | 'storing' // the engine has ended or was given up; outputs that it reported are still being stored
  | 'ending' // the verdict stands and is being written; nothing changes it any more
  | 'discarded' // nothing of this attempt counts: somebody else has the job, or will have it

type RunEngineState =
  | 'unasked'
  | 'running'
  | 'silent' // its events have ended
  | 'stuck' // given up: it ignored an interrupt, or is unfit until it is restarted; what it still says is ignored

type RunOutputsState =
  | 'open'
  | 'cut' // what is not stored yet is given up
  | 'incomplete' // something was given up after the run was told to stop, so the run cannot count as succeeded

export interface RunState {
  readonly phase: RunPhase
  readonly engine: RunEngineState
  readonly outputs: RunOutputsState
  /** Why we told the run to stop; null: we did not. */
  readonly stop: StopCause | null
  readonly loss: EngineLoss | null
  /** False once the lease is known to be lost or given back: a last write that failed is not repeated then. */
  readonly holdsLease: boolean
}

export type RunMove =
  | { readonly move: 'engine_started' }
  /** The engine's events have ended, with an outcome or without one. */
  | { readonly move: 'engine_silent' }
  | { readonly move: 'engine_lost'; readonly loss: EngineLoss }
  /** A cancel, the time limit, or outputs beyond the limit. */
  | { readonly move: 'stop'; readonly stop: StopCause }
  | {
      readonly move: 'output_failed'
      readonly stop: Extract<StopCause, { cause: 'failed' }>
      /** The engine could not hand it out; null: the fault is elsewhere. */
      readonly loss: EngineLoss | null
      /** For our log. */
      readonly cause: unknown
    }
  /** The engine had its time to react to an interrupt. */
  | { readonly move: 'grace_over' }
  /** Outputs had their time to be stored after the engine ended. */
  | { readonly move: 'storing_overdue' }
  | { readonly move: 'lease_lost' }
  | { readonly move: 'lease_returned' }
  /** The run is left to whoever adopts it. */
  | { readonly move: 'run_left' }
  | { readonly move: 'decided' }
  /** The store did not take the end: the lease was lost by then. */
  | { readonly move: 'end_refused' }

export type RunEffect =
  /** Abort the engine's signal and report `grace_over` when the grace period has passed. At most once in a run. */
  | { readonly effect: 'interrupt' }
  | { readonly effect: 'cut_outputs'; readonly reason: string }
  /** Whoever has the run now may still need it: an engine that goes on with it is told nothing, any other is interrupted. At most once. */
  | { readonly effect: 'let_go' }
  /** No more progress and outputs are written. */
  | { readonly effect: 'stop_writing' }
  /** Tell the slot at once: the engine must not be offered again before the job is back in the queue. */
  | { readonly effect: 'pause_engine'; readonly reason: string }
  /** Do not wait for the engine any longer. */
  | { readonly effect: 'give_up_engine' }
  | { readonly effect: 'log_output_fault'; readonly cause: unknown }
  | { readonly effect: 'observe_lease_lost' }

export interface RunStep {
  readonly state: RunState
  readonly effects: readonly RunEffect[]
}

export const START: RunState = {
  phase: 'preparing',
  engine: 'unasked',
  outputs: 'open',
  stop: null,
  loss: null,
  holdsLease: true,
}

const BEFORE_THE_END: readonly RunPhase[] = ['preparing', 'executing', 'storing']
const ALWAYS: readonly RunPhase[] = [...BEFORE_THE_END, 'ending', 'discarded']

/** In which phases each move counts. */
const COUNTS_IN: Record<RunMove['move'], readonly RunPhase[]> = {
  engine_started: ['preparing'],
  engine_silent: ALWAYS,
  engine_lost: ['executing'],
  stop: BEFORE_THE_END,
  output_failed: ['executing', 'storing'],
  grace_over: ALWAYS,
  storing_overdue: ['storing'],
  lease_lost: ALWAYS,
  lease_returned: ALWAYS,
  run_left: BEFORE_THE_END,
  decided: BEFORE_THE_END,
  end_refused: ['ending'],
}

export function moveRun(state: RunState, move: RunMove): RunStep {
  return COUNTS_IN[move.move].includes(state.phase) ? apply(state, move) : to(state)
}

function apply(state: RunState, move: RunMove): RunStep {
  switch (move.move) {
    case 'engine_started':
      return to({ ...state, phase: 'executing', engine: 'running' })
    case 'engine_silent':
      return leaveEngine({ ...state, engine: state.engine === 'stuck' ? 'stuck' : 'silent' })
    case 'engine_lost':
      return isDeaf(state) ? to(state) : loseEngine(state, move.loss)
    case 'stop':
      return interruptFor(state, move.stop)
    case 'output_failed':
      return failOutput(state, move)
    case 'grace_over':
      return giveUpEngine(state)
    case 'storing_overdue':
      return cut(state, 'storing outputs took too long')
    case 'lease_lost': {
      const step = discard(state, 'let_go')
      return BEFORE_THE_END.includes(state.phase) ? also(step, { effect: 'observe_lease_lost' }) : step
    }
    case 'lease_returned':
      return discard(state, 'interrupt')
    case 'run_left':
      return discard(state, 'let_go')
    case 'decided':
      return to({ ...state, phase: 'ending' })
    case 'end_refused':
      return to({ ...state, phase: 'discarded', holdsLease: false }, { effect: 'observe_lease_lost' })
  }
}

/** Whether what the engine says is ignored. */
export function isDeaf({ phase, engine }: RunState): boolean {
  return phase === 'discarded' || engine === 'stuck'
}

function leaveEngine(state: RunState): RunStep {
  if (state.phase !== 'executing') return to(state)
  const storing: RunState = { ...state, phase: 'storing' }
  return storing.loss === null ? to(storing) : cut(storing, 'the engine is gone')
}

function giveUpEngine(state: RunState): RunStep {
  const engine = state.engine === 'running' ? 'stuck' : state.engine
  return also(chain(cut({ ...state, engine }, 'the run was stopped'), leaveEngine), { effect: 'give_up_engine' })
}

function loseEngine(state: RunState, loss: EngineLoss): RunStep {
  const lost: RunState = { ...state, loss, engine: loss.isUnfit ? 'stuck' : state.engine }
  // A thread that another run took down has been replaced: there is nothing to wait for.
  return loss.isBlameless ? to(lost) : to(lost, { effect: 'pause_engine', reason: loss.reason })
}

function failOutput(state: RunState, { stop, loss, cause }: Extract<RunMove, { move: 'output_failed' }>): RunStep {
  // Files of an engine that is gone cannot be read either: the loss alone decides how the run ends.
  if (state.loss !== null) return to(state)
  if (state.stop !== null && state.outputs !== 'open') return to({ ...state, outputs: 'incomplete' })
  const logged = to(state, { effect: 'log_output_fault', cause })
  const lost = loss === null ? logged : chain(logged, (before) => loseEngine(before, loss))
  return chain(lost, (before) => interruptFor(before, stop))
}

function interruptFor(state: RunState, stop: StopCause): RunStep {
  // The first reason counts. Only an output that cannot be kept replaces a cancel or a limit: the job cannot succeed any more.
  const isOutranked = state.stop !== null && (stop.cause !== 'failed' || state.stop.cause === 'failed')
  return isOutranked ? to(state) : to({ ...state, stop }, ...interruptOnce(state))
}

function discard(state: RunState, effect: 'let_go' | 'interrupt'): RunStep {
  if (!BEFORE_THE_END.includes(state.phase)) return to({ ...state, holdsLease: false })
  const discarded: RunState = { ...state, phase: 'discarded', holdsLease: false }
  const quiet = to(discarded, { effect: 'stop_writing' })
  return also(
    chain(quiet, (before) => cut(before, 'the run no longer counts')),
    ...(state.stop === null ? [{ effect }] : []),
  )
}

/** A run is interrupted when it is told to stop or when it is discarded, whichever comes first. */
function interruptOnce(before: RunState): readonly RunEffect[] {
  return before.stop === null ? [{ effect: 'interrupt' }] : []
}

function cut(state: RunState, reason: string): RunStep {
  const outputs = state.outputs === 'open' ? 'cut' : state.outputs
  return to({ ...state, outputs }, { effect: 'cut_outputs', reason })
}

function to(state: RunState, ...effects: readonly RunEffect[]): RunStep {
  return { state, effects }
}

function also({ state, effects }: RunStep, ...more: readonly RunEffect[]): RunStep {
  return { state, effects: [...effects, ...more] }
}

function chain(before: RunStep, next: (state: RunState) => RunStep): RunStep {
  const { state, effects } = next(before.state)
  return { state, effects: [...before.effects, ...effects] }
}

// How an attempt ends, given what the engine said and what we did to it. The engine's own outcome counts first: a run that
// finished before an interrupt took hold is finished. Pure: the run carries the verdict out.

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
