/**
 * Why no call of a version could ever run, whatever its inputs are: a circle of links, a link that leads nowhere, an input that nothing fills,
 * no node that gives anything out. What depends on values, or on what engines have at the moment, is judged when a job is submitted.
 */
import type { Graph } from '../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../engine/graph/node-catalog.ts'
import { validateSteps } from '../../../engine/graph/validate/validate.ts'
import type { NodeError, NodeErrors, NodeErrorType } from '../../../engine/graph/validate/validation-result.ts'
import type { Work } from '../../../lib/waiting/turns.ts'
import type { ServiceError } from '../errors.ts'
import { toRefusal } from '../workflows/graph-refusals.ts'
import type { EndpointInput } from './endpoint.ts'

const OF_THE_GRAPH: ReadonlySet<NodeErrorType> = new Set([
  ...(['bad_linked_input', 'return_type_mismatch', 'dependency_cycle'] as const),
  // Links that name a node or a slot which is not there.
  ...(['exception_during_inner_validation', 'exception_during_validation'] as const),
])

/** null: some call may run, or a class is not known here. */
export function* findWhyNeverRuns(
  graph: Graph,
  inputs: readonly EndpointInput[],
  catalog: NodeCatalog,
): Work<ServiceError | null> {
  const result = yield* validateSteps(graph, { catalog })
  if (result.error?.type === 'missing_node_type') return null
  const filled = new Set(inputs.flatMap(({ places }) => places.map(({ nodeId, input }) => `${nodeId}\0${input}`)))
  const isOfGraph = (nodeId: string, { type, extra_info: { input_name: input } }: NodeError) =>
    OF_THE_GRAPH.has(type) || (type === 'required_input_missing' && !filled.has(`${nodeId}\0${String(input)}`))
  const faulty = Object.entries(result.nodeErrors).flatMap(([id, node]): [string, NodeErrors][] => {
    const errors = node.errors.filter((error) => isOfGraph(id, error))
    return errors.length === 0 ? [] : [[id, { ...node, errors }]]
  })
  const isWithoutOutputs = result.error?.type === 'prompt_no_outputs'
  if (faulty.length === 0 && !isWithoutOutputs) return null
  return toRefusal({ ...result, nodeErrors: Object.fromEntries(faulty) })
}
