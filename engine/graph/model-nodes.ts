/** The nodes of a graph that have a partner's model do their work: they cost money of their own and need a right of their own. */
import type { Graph } from './graph.ts'

export const RUN_MODEL_CLASS = 'RunModel'

export interface ModelNode {
  readonly nodeId: string
  /** null: another node says which, while the graph runs. */
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
