/**
 * The overall progress of a job, folded from what the engine says. Every node weighs 1 and a sampler weighs its steps, so a
 * graph of three nodes with fifty sampling steps stands at 22/52 after the first node and step 21. The value never falls in
 * the life of a job, also not when a later attempt begins anew: clients drop lower values.
 */
import type { NodeRef } from '../engine/engine-event.ts'
import type { Graph } from '../workflows/graph.ts'
import type { Progress } from './job.ts'

interface ActiveNode {
  readonly displayNodeId: string
  readonly classType: string
  readonly value: number
  /** 0 until the node has reported steps. */
  readonly max: number
}

export interface ProgressState {
  /** The highest value shown so far, earlier attempts included. */
  readonly value: number
  /** As the engine counted them, cached ones included. */
  readonly reachable: number
  readonly cached: ReadonlySet<string>
  readonly done: ReadonlySet<string>
  /** In the order of their latest news, the newest last. */
  readonly active: ReadonlyMap<string, ActiveNode>
  /** Only nodes that weigh more than 1. */
  readonly weights: ReadonlyMap<string, number>
  readonly complete: boolean
}

// A sampler's steps tell how long it takes beside its neighbours; a wild number must not push all others to nothing.
const MAX_WEIGHT = 1000
const SAMPLER = /sampler/i
const MESSAGE_MAX_LENGTH = 200

/** `earlier` is what readers have already seen of this job, from an attempt before this one. */
export function startProgress(graph: Graph, earlier: Progress | null): ProgressState {
  const weights = new Map<string, number>()
  for (const [nodeId, node] of graph) {
    const steps = node.inputs['steps']
    if (SAMPLER.test(node.classType) && typeof steps === 'number' && steps > 1) weights.set(nodeId, toWeight(steps))
  }
  return {
    value: earlier?.value ?? 0,
    reachable: 0,
    cached: new Set(),
    done: new Set(),
    active: new Map(),
    weights,
    complete: false,
  }
}

export function countNodes(state: ProgressState, reachable: number): ProgressState {
  return raise({ ...state, reachable: Math.max(0, Math.floor(reachable)) })
}

export function skipCached(state: ProgressState, nodeIds: readonly string[]): ProgressState {
  return raise({ ...state, cached: new Set([...state.cached, ...nodeIds]) })
}

export function nodeStarted(state: ProgressState, node: NodeRef): ProgressState {
  if (isSettled(state, node)) return state
  return withActive(state, node, { displayNodeId: node.displayNodeId, classType: node.classType, value: 0, max: 0 })
}

export function nodeStepped(state: ProgressState, node: NodeRef, step: { value: number; max: number }): ProgressState {
  if (isSettled(state, node) || !(step.max > 0) || !(step.value >= 0)) return state
  const value = Math.min(step.value, step.max)
  const active = { displayNodeId: node.displayNodeId, classType: node.classType, value, max: step.max }
  const mayWeigh = step.max > 1 && SAMPLER.test(node.classType) && !state.weights.has(node.nodeId)
  const weights = mayWeigh ? new Map(state.weights).set(node.nodeId, toWeight(step.max)) : state.weights
  return withActive({ ...state, weights }, node, active)
}

export function nodeFinished(state: ProgressState, node: NodeRef): ProgressState {
  if (isSettled(state, node)) return state
  const active = new Map(state.active)
  active.delete(node.nodeId)
  return raise({ ...state, active, done: new Set(state.done).add(node.nodeId) })
}

/** Nodes that nobody needed in the end are not left to be done. */
export function completeProgress(state: ProgressState): ProgressState {
  return { ...state, value: 1, active: new Map(), complete: true }
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
  const active = new Map(state.active)
  active.delete(node.nodeId)
  return raise({ ...state, active: active.set(node.nodeId, news) })
}

/** Expansion may run more nodes than the engine counted at the start. */
function countTotal(state: ProgressState): number {
  return Math.max(state.reachable - state.cached.size, state.done.size + state.active.size, 0)
}

function raise(state: ProgressState): ProgressState {
  let total = countTotal(state)
  let reached = state.done.size
  for (const [nodeId, weight] of state.weights) {
    if (state.cached.has(nodeId)) continue
    total += weight - 1
    if (state.done.has(nodeId)) reached += weight - 1
  }
  for (const [nodeId, node] of state.active) {
    if (node.max > 0) reached += ((state.weights.get(nodeId) ?? 1) * node.value) / node.max
  }
  const value = total === 0 ? 0 : Math.min(1, reached / total)
  return value > state.value ? { ...state, value } : state
}

function toWeight(steps: number): number {
  return Math.min(MAX_WEIGHT, Math.max(1, Math.floor(steps)))
}
