/**
 * Folds the engine's events of one attempt into progress, log, reported items and, at the end, an outcome.
 * It decides nothing about leases, cancels or storage. Engines may repeat themselves: a repeated report brings nothing new,
 * and whatever follows the outcome is ignored. States of one attempt share what they count, so only the newest may be used.
 */
import type { Graph } from '../../../../engine/graph/graph.ts'
import type {
  EngineEvent,
  EngineFailure,
  NodeRef,
  NodeReport,
  ReportedItem,
} from '../../../../engine/graph/run-event.ts'
import { keepHead, keepTail } from '../../../../lib/text/cut-text.ts'
import type { JobError, Progress } from '../job.ts'
import { appendLog, EMPTY_LOG, type LogTail } from './record/log-lines.ts'
import { copyHead, toJsonText } from './record/run-record.ts'

/** One item of a node's report, with its key and index there. */
export interface Reported {
  readonly nodeId: string
  readonly key: string
  readonly index: number
  readonly item: ReportedItem
}

export type RunOutcome =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed'; readonly error: JobError }
  | { readonly kind: 'interrupted' }

export interface RunFold {
  readonly progress: ProgressState
  readonly log: LogTail
  readonly outputsReused: boolean
  /** Some of what was reported is an earlier run's: its files remember the graph and the notes of that run. */
  readonly hasOldReport: boolean
  /** What the latest event reported; empty after every other event. */
  readonly fresh: readonly Reported[]
  readonly reportedCount: number
  readonly seenReports: Set<string>
  readonly outcome: RunOutcome | null
}

interface StartOptions {
  readonly graph: Graph
  readonly earlierProgress: Progress | null
  /** By node, how long it will take; null or left out: nodes and sampling steps are counted. */
  readonly expectedMs?: ReadonlyMap<string, number> | null
}

const NOTHING: readonly Reported[] = []
// A message is read by people and a traceback by developers; an engine that prints megabytes must not fill the job row.
const MESSAGE_MAX_BYTES = 16_384
const TRACEBACK_MAX_BYTES = 65_536
const NAME_MAX_LENGTH = 512
const SIGNATURE_VALUE_LENGTH = 256

export function startFold({ graph, earlierProgress, expectedMs = null }: StartOptions): RunFold {
  return {
    progress: startProgress(graph, earlierProgress, expectedMs),
    log: EMPTY_LOG,
    outputsReused: false,
    hasOldReport: false,
    fresh: NOTHING,
    reportedCount: 0,
    seenReports: new Set(),
    outcome: null,
  }
}

export function applyEngineEvent(before: RunFold, event: EngineEvent): RunFold {
  if (before.outcome !== null) return before.fresh === NOTHING ? before : { ...before, fresh: NOTHING }
  const state = before.fresh === NOTHING ? before : { ...before, fresh: NOTHING }
  switch (event.type) {
    case 'started':
      return { ...state, progress: countNodes(state.progress, event.nodesTotal) }
    case 'cached':
      if (event.nodeIds.length === 0) return state
      return { ...state, outputsReused: true, progress: skipCached(state.progress, event.nodeIds) }
    case 'node_started':
      return { ...state, progress: nodeStarted(state.progress, event) }
    case 'node_progress':
      return { ...state, progress: nodeStepped(state.progress, event, event) }
    case 'node_finished':
      return { ...state, progress: nodeFinished(state.progress, event) }
    case 'node_report':
      return applyReport(state, event.displayNodeId, event)
    case 'node_blocked':
      // A blocked branch is no failure: the run goes on and may succeed. Its author finds the reason in the log.
      return { ...state, log: appendLog(state.log, `[${event.displayNodeId}] Execution Blocked: ${event.message}\n`) }
    case 'log':
      return { ...state, log: appendLog(state.log, event.text) }
    case 'preview':
    case 'node_text':
      return state
    case 'succeeded':
      return { ...state, outcome: { kind: 'succeeded' }, progress: completeProgress(state.progress) }
    case 'failed':
      if (event.failure.exceptionType === 'ExecutionBlocked') return state
      return { ...state, outcome: { kind: 'failed', error: toJobError(event.failure) } }
    case 'interrupted':
      return { ...state, outcome: { kind: 'interrupted' } }
  }
}

function applyReport(
  state: RunFold,
  nodeId: string,
  event: { readonly nodeId: string; readonly report: NodeReport; readonly cached: boolean },
): RunFold {
  const fresh: Reported[] = []
  let signature = event.nodeId
  for (const [key, items] of Object.entries(event.report)) {
    signature += `\n${key}`
    for (const [index, item] of items.entries()) {
      fresh.push({ nodeId, key, index, item })
      signature += `\t${signItem(item)}`
    }
  }
  if (state.seenReports.has(signature)) return state
  state.seenReports.add(signature)
  return {
    ...state,
    fresh,
    reportedCount: state.reportedCount + fresh.length,
    outputsReused: state.outputsReused || event.cached,
    hasOldReport: state.hasOldReport || event.cached,
  }
}

function signItem(item: ReportedItem): string {
  if (item.kind === 'file') return `${item.folder}/${item.subfolder}/${item.filename}`
  const text = typeof item.value === 'string' ? item.value : toJsonText(item.value)
  return `${text.length}:${copyHead(text, SIGNATURE_VALUE_LENGTH)}`
}

function toJobError(failure: EngineFailure): JobError {
  return {
    code: failure.code.slice(0, NAME_MAX_LENGTH),
    message: keepHead(failure.message, MESSAGE_MAX_BYTES),
    nodeId: failure.nodeId?.slice(0, NAME_MAX_LENGTH) ?? null,
    classType: failure.classType?.slice(0, NAME_MAX_LENGTH) ?? null,
    // The innermost frame stands last.
    traceback: failure.traceback === null ? null : keepTail(failure.traceback, TRACEBACK_MAX_BYTES),
  }
}

/**
 * The overall progress of a job, folded from what the engine says. Nodes weigh what they took before (node-times.ts). Where that is
 * not known, every node weighs 1 and a sampler weighs its steps, so a graph of three nodes with fifty sampling steps stands at 22/52
 * after the first node and step 21. The value never falls in
 * the life of a job, also not when a later attempt begins anew: clients drop lower values.
 */
interface ActiveNode {
  readonly displayNodeId: string
  readonly classType: string
  readonly value: number
  /** 0 until the node has reported steps. */
  readonly max: number
}

/**
 * States of one run share their collections, which grow with it: only the newest state may be read or carried on. A graph has
 * up to 20,000 nodes, and an event must cost the same whatever came before it.
 */
interface ProgressState {
  /** The highest value shown so far, earlier attempts included. */
  readonly value: number
  /** As the engine counted them, cached ones included. */
  readonly reachable: number
  readonly cached: Set<string>
  readonly done: Set<string>
  /** In the order of their latest news, the newest last. */
  readonly active: Map<string, ActiveNode>
  /** Nodes that weigh more than 1, and those whose time is expected. */
  readonly weights: Map<string, number>
  /** What nodes weigh beyond 1, in sum: of all that are not cached, and of those that are done. */
  readonly extraWeight: number
  readonly extraDone: number
  /** What active nodes have reached by their steps, in sum. */
  readonly activeReached: number
  readonly complete: boolean
}

// A sampler's steps tell how long it takes compared with other nodes; an absurd number must not reduce all others to nothing.
const MAX_WEIGHT = 1000
const SAMPLER = /sampler/i
const MESSAGE_MAX_LENGTH = 200

/** `earlier` is what readers have already seen of this job, from an attempt before this one. */
function startProgress(
  graph: Graph,
  earlier: Progress | null,
  expectedMs: ReadonlyMap<string, number> | null,
): ProgressState {
  const weights = new Map<string, number>()
  let extraWeight = 0
  for (const [nodeId, ms] of expectedMs ?? []) {
    weights.set(nodeId, Math.max(1, ms))
    extraWeight += Math.max(1, ms) - 1
  }
  for (const [nodeId, node] of expectedMs === null ? graph : []) {
    const steps = node.inputs['steps']
    if (!SAMPLER.test(node.classType) || typeof steps !== 'number' || !(steps > 1)) continue
    weights.set(nodeId, toWeight(steps))
    extraWeight += toWeight(steps) - 1
  }
  return {
    value: earlier?.value ?? 0,
    reachable: 0,
    cached: new Set(),
    done: new Set(),
    active: new Map(),
    weights,
    extraWeight,
    extraDone: 0,
    activeReached: 0,
    complete: false,
  }
}

function countNodes(state: ProgressState, reachable: number): ProgressState {
  return raise({ ...state, reachable: Math.max(0, Math.floor(reachable)) })
}

function skipCached(state: ProgressState, nodeIds: readonly string[]): ProgressState {
  let { extraWeight, extraDone } = state
  for (const nodeId of nodeIds) {
    if (state.cached.has(nodeId)) continue
    state.cached.add(nodeId)
    extraWeight -= extraOf(state, nodeId)
    if (state.done.has(nodeId)) extraDone -= extraOf(state, nodeId)
  }
  return raise({ ...state, extraWeight, extraDone })
}

function nodeStarted(state: ProgressState, node: NodeRef): ProgressState {
  if (isSettled(state, node)) return state
  return withActive(state, node, { displayNodeId: node.displayNodeId, classType: node.classType, value: 0, max: 0 })
}

function nodeStepped(state: ProgressState, node: NodeRef, step: { value: number; max: number }): ProgressState {
  if (isSettled(state, node) || !(step.max > 0) || !Number.isFinite(step.max) || !(step.value >= 0)) return state
  const value = Math.min(step.value, step.max)
  const active = { displayNodeId: node.displayNodeId, classType: node.classType, value, max: step.max }
  const mayWeigh = step.max > 1 && SAMPLER.test(node.classType) && !state.weights.has(node.nodeId)
  if (!mayWeigh) return withActive(state, node, active)
  const before = withoutActive(state, node)
  state.weights.set(node.nodeId, toWeight(step.max))
  return withActive({ ...before, extraWeight: state.extraWeight + toWeight(step.max) - 1 }, node, active)
}

function nodeFinished(state: ProgressState, node: NodeRef): ProgressState {
  if (isSettled(state, node)) return state
  state.done.add(node.nodeId)
  return raise({ ...withoutActive(state, node), extraDone: state.extraDone + extraOf(state, node.nodeId) })
}

/** A run may succeed without some of its nodes: nothing is left to be done all the same. */
function completeProgress(state: ProgressState): ProgressState {
  return { ...state, value: 1, active: new Map(), activeReached: 0, complete: true }
}

export function toProgress(state: ProgressState): Progress {
  const nodesTotal = countTotal(state)
  const current = [...state.active.values()].at(-1) ?? null
  const hasSteps = current !== null && current.max > 0
  const step = hasSteps ? Math.floor(current.value) : null
  const steps = hasSteps ? Math.ceil(current.max) : null
  return {
    value: state.value,
    nodesDone: state.complete ? nodesTotal : state.done.size,
    nodesTotal,
    currentNode: current?.displayNodeId ?? null,
    currentNodeClass: current?.classType ?? null,
    step,
    steps,
    message: current === null ? null : toMessage(current.classType, step, steps),
  }
}

function toMessage(classType: string, step: number | null, steps: number | null): string {
  const name = classType.slice(0, MESSAGE_MAX_LENGTH)
  return step === null ? name : `${name} ${step}/${steps}`
}

/** Cached and finished nodes have nothing more to say; an engine may repeat itself. */
function isSettled(state: ProgressState, node: NodeRef): boolean {
  return state.done.has(node.nodeId) || state.cached.has(node.nodeId)
}

function withActive(state: ProgressState, node: NodeRef, news: ActiveNode): ProgressState {
  const before = withoutActive(state, node)
  before.active.set(node.nodeId, news)
  return raise({ ...before, activeReached: before.activeReached + reachedBy(state, node.nodeId, news) })
}

function withoutActive(state: ProgressState, { nodeId }: NodeRef): ProgressState {
  const known = state.active.get(nodeId)
  if (known === undefined) return state
  state.active.delete(nodeId)
  // Without active nodes the sum is exactly 0; adding and subtracting fractions might leave a remainder.
  const activeReached = state.active.size === 0 ? 0 : state.activeReached - reachedBy(state, nodeId, known)
  return { ...state, activeReached }
}

function reachedBy({ weights }: ProgressState, nodeId: string, { value, max }: ActiveNode): number {
  return max > 0 ? ((weights.get(nodeId) ?? 1) * value) / max : 0
}

function extraOf({ weights }: ProgressState, nodeId: string): number {
  return (weights.get(nodeId) ?? 1) - 1
}

/** Expansion may run more nodes than the engine counted at the start. */
function countTotal(state: ProgressState): number {
  return Math.max(state.reachable - state.cached.size, state.done.size + state.active.size, 0)
}

function raise(state: ProgressState): ProgressState {
  const total = countTotal(state) + state.extraWeight
  const reached = state.done.size + state.extraDone + state.activeReached
  const value = total === 0 ? 0 : Math.min(1, reached / total)
  return value > state.value ? { ...state, value } : state
}

function toWeight(steps: number): number {
  return Math.min(MAX_WEIGHT, Math.max(1, Math.floor(steps)))
}
