/**
 * The overall progress of a job, folded from what the engine says. Every node weighs 1 and a sampler weighs its steps, so a
 * graph of three nodes with fifty sampling steps stands at 22/52 after the first node and step 21. The value never falls in
 * the life of a job, also not when a later attempt begins anew: clients drop lower values.
 */

import type { Graph } from '../../../../engine/graph/graph.ts'
import type { NodeRef } from '../../../../engine/graph/run-event.ts'
import type { Progress } from '../job.ts'

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
export interface ProgressState {
  /** The highest value shown so far, earlier attempts included. */
  readonly value: number
  /** As the engine counted them, cached ones included. */
  readonly reachable: number
  readonly cached: Set<string>
  readonly done: Set<string>
  /** In the order of their latest news, the newest last. */
  readonly active: Map<string, ActiveNode>
  /** Only nodes that weigh more than 1. */
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
export function startProgress(graph: Graph, earlier: Progress | null): ProgressState {
  const weights = new Map<string, number>()
  let extraWeight = 0
  for (const [nodeId, node] of graph) {
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

export function countNodes(state: ProgressState, reachable: number): ProgressState {
  return raise({ ...state, reachable: Math.max(0, Math.floor(reachable)) })
}

export function skipCached(state: ProgressState, nodeIds: readonly string[]): ProgressState {
  let { extraWeight, extraDone } = state
  for (const nodeId of nodeIds) {
    if (state.cached.has(nodeId)) continue
    state.cached.add(nodeId)
    extraWeight -= extraOf(state, nodeId)
    if (state.done.has(nodeId)) extraDone -= extraOf(state, nodeId)
  }
  return raise({ ...state, extraWeight, extraDone })
}

export function nodeStarted(state: ProgressState, node: NodeRef): ProgressState {
  if (isSettled(state, node)) return state
  return withActive(state, node, { displayNodeId: node.displayNodeId, classType: node.classType, value: 0, max: 0 })
}

export function nodeStepped(state: ProgressState, node: NodeRef, step: { value: number; max: number }): ProgressState {
  if (isSettled(state, node) || !(step.max > 0) || !Number.isFinite(step.max) || !(step.value >= 0)) return state
  const value = Math.min(step.value, step.max)
  const active = { displayNodeId: node.displayNodeId, classType: node.classType, value, max: step.max }
  const mayWeigh = step.max > 1 && SAMPLER.test(node.classType) && !state.weights.has(node.nodeId)
  if (!mayWeigh) return withActive(state, node, active)
  const before = withoutActive(state, node)
  state.weights.set(node.nodeId, toWeight(step.max))
  return withActive({ ...before, extraWeight: state.extraWeight + toWeight(step.max) - 1 }, node, active)
}

export function nodeFinished(state: ProgressState, node: NodeRef): ProgressState {
  if (isSettled(state, node)) return state
  state.done.add(node.nodeId)
  return raise({ ...withoutActive(state, node), extraDone: state.extraDone + extraOf(state, node.nodeId) })
}

/** A run may succeed without some of its nodes: nothing is left to be done all the same. */
export function completeProgress(state: ProgressState): ProgressState {
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
