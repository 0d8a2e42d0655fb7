/** What two workflows have different: nodes that only one has, and inputs whose values differ. Pure; numbers are compared as written. */
import { stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { GraphNode, WorkflowGraph } from '../../graph/workflow-graph.ts'

export interface InputDifference {
  readonly node: string
  readonly title: string
  readonly input: string
  /** JSON text; null: not there. */
  readonly a: string | null
  readonly b: string | null
}

export interface WorkflowDiff {
  readonly onlyA: readonly GraphNode[]
  readonly onlyB: readonly GraphNode[]
  readonly inputs: readonly InputDifference[]
}

export function diffWorkflows(a: WorkflowGraph, b: WorkflowGraph): WorkflowDiff {
  const inB = new Map(b.nodes.map((node) => [node.id, node]))
  const inA = new Set(a.nodes.map(({ id }) => id))
  const isSame = (one: GraphNode) => inB.get(one.id)?.classType === one.classType
  const shared = a.nodes.filter(isSame)
  const sharedIds = new Set(shared.map(({ id }) => id))
  return {
    onlyA: a.nodes.filter(({ id }) => !sharedIds.has(id)),
    onlyB: b.nodes.filter(({ id }) => !inA.has(id) || !sharedIds.has(id)),
    inputs: shared.flatMap((node) => diffInputs(node, inB.get(node.id) as GraphNode)),
  }
}

function diffInputs(a: GraphNode, b: GraphNode): readonly InputDifference[] {
  const values = (node: GraphNode) =>
    new Map(node.inputs.map(({ name, value }) => [name, stringifyLosslessJson(value)] as const))
  const [inA, inB] = [values(a), values(b)]
  return [...new Set([...inA.keys(), ...inB.keys()])]
    .filter((name) => inA.get(name) !== inB.get(name))
    .map((name) => ({
      node: a.id,
      title: a.title ?? a.classType,
      input: name,
      a: inA.get(name) ?? null,
      b: inB.get(name) ?? null,
    }))
}
