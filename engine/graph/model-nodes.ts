/** Finds the nodes of a graph that run a partner's model: these cost extra and need a scope of their own. */
import type { Graph } from './graph.ts'

export const RUN_MODEL_CLASS = 'RunModel'

export interface ModelNode {
  readonly nodeId: string
  /** null: the id comes from another node while the graph runs. */
  readonly model: string | null
}

export function findModelNodes(graph: Graph): readonly ModelNode[] {
  const found: ModelNode[] = []
  for (const [nodeId, { classType, inputs }] of graph) {
    if (classType !== RUN_MODEL_CLASS) continue
    const model = inputs['model']
    found.push({ nodeId, model: typeof model === 'string' ? model.trim() : null })
  }
  return found
}
