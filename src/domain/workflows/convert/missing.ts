/** What a graph needs and no engine has: whole classes, and weights. */
import type { Graph } from '../../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { findLacks, isWeights } from '../needs.ts'

export interface Missing {
  readonly classes: readonly { readonly classType: string; readonly nodeIds: readonly string[] }[]
  readonly weights: readonly { readonly name: string; readonly nodeId: string; readonly input: string }[]
}

export function findMissing(graph: Graph, catalog: NodeCatalog): Missing {
  const classes = new Map<string, string[]>()
  const weights: { name: string; nodeId: string; input: string }[] = []
  for (const { nodeId, classType, input, value } of findLacks(graph, catalog, [])) {
    if (input === null) {
      const nodeIds = classes.get(classType)
      if (nodeIds === undefined) classes.set(classType, [nodeId])
      else nodeIds.push(nodeId)
    } else if (value !== null && isWeights(value)) weights.push({ name: value, nodeId, input })
  }
  return { classes: [...classes].map(([classType, nodeIds]) => ({ classType, nodeIds })), weights }
}
