/** Which node classes an account may use. A workflow with any other is refused like an invalid one, node by node. */
import type { Graph } from '../../../engine/graph/graph.ts'
import type { FieldError } from '../../../engine/graph/graph-error.ts'
import { MAX_REPORTED_NODES } from '../../../engine/graph/validate/node-errors.ts'
import { refuseWorkflow } from './graph-refusals.ts'

export interface NodeRules {
  /** null: every class. */
  readonly allow: ReadonlySet<string> | null
  /** Wins over `allow`. */
  readonly deny: ReadonlySet<string>
}

/** Throws invalid_workflow (details.node_errors). */
export function checkNodeRules(graph: Graph, { allow, deny }: NodeRules): void {
  const refused: [id: string, errors: FieldError[]][] = []
  for (const [id, { classType }] of graph) {
    if (!deny.has(classType) && (allow === null || allow.has(classType))) continue
    const message = `the node class ${JSON.stringify(classType)} is not available to this account`
    refused.push([id, [{ field: 'class_type', reason: 'node_not_allowed', message }]])
  }
  const [first] = refused
  if (first === undefined) return
  const more = refused.length > 1 ? ` (and ${refused.length - 1} more)` : ''
  const reported = Object.fromEntries(refused.slice(0, MAX_REPORTED_NODES))
  throw refuseWorkflow(`Node ${first[0]}: ${first[1][0].message}${more}`, reported)
}
