/**
 * What is wrong with a workflow, as the service refuses it: `invalid_workflow` with `details.node_errors`
 * (`{node_id: [{field, reason, message}]}`). The words for one catalog are the graph's own; here are those for several engines.
 */
import { type FieldError, GraphError } from '../../../engine/graph/graph.ts'
import {
  clipMessage,
  MAX_REPORTED_NODES,
  toFieldError,
  toGraphError,
  toNodesError,
} from '../../../engine/graph/validate/validate.ts'
import type { GraphRefusal, NodeErrors, ValidationResult } from '../../../engine/graph/validate/validation-result.ts'
import { type RefusalDetails, ServiceError } from '../errors.ts'
import type { PlacedLack } from './needs.ts'

const MAX_NAMED_ENGINES = 8

type FieldErrorsByNode = GraphError['nodeErrors']

export function refuseWorkflow(
  message: string,
  nodeErrors: FieldErrorsByNode = {},
  more: RefusalDetails = {},
): ServiceError {
  return new ServiceError('invalid_workflow', message, { details: { node_errors: nodeErrors, ...more } })
}

const UI_FORMAT =
  'this is a workflow as the editor saves it; have it converted first (/api/v2/workflows/convert, or `atelier convert FILE`), ' +
  'or export it in API format ("Export (API)"), and send that'

/** A GraphError as the refusal that it means; any other error is given back as it is. */
export function asRefusal(error: unknown): unknown {
  if (!(error instanceof GraphError)) return error
  if (error.problem === 'ui_format') return new ServiceError('workflow_format_ui', UI_FORMAT)
  return refuseWorkflow(error.message, error.nodeErrors)
}

/** null when nothing is wrong. */
export function toRefusal(result: ValidationResult): ServiceError | null {
  const error = toGraphError(result)
  return error === null ? null : refuseWorkflow(error.message, error.nodeErrors)
}

/** What an engine said when it was handed the graph. */
export function toEngineRefusal({ error, nodeErrors }: GraphRefusal): ServiceError {
  if (Object.keys(nodeErrors).length > 0) {
    const found = toNodesError(nodeErrors)
    return refuseWorkflow(found.message, found.nodeErrors)
  }
  const text = [error.message, error.details].filter(Boolean).join(': ')
  return refuseWorkflow(clipMessage(text === '' ? 'the engine refused the workflow and did not say why' : text))
}

/** What could still turn out well: a class or a choice of an engine that has not yet said what it can run. */
export function withoutUnknowns(result: ValidationResult): ValidationResult {
  const nodeErrors = Object.fromEntries(
    Object.entries(result.nodeErrors)
      .map(([id, node]): [string, NodeErrors] => [
        id,
        { ...node, errors: node.errors.filter(({ type }) => type !== 'value_not_in_list') },
      ])
      .filter(([, { errors }]) => errors.length > 0),
  )
  const isOpen = result.error?.type === 'missing_node_type' || Object.keys(nodeErrors).length === 0
  // A graph without outputs stays one: whether a class is an output is known for every class that is known.
  return { ...result, nodeErrors, error: isOpen && result.error?.type !== 'prompt_no_outputs' ? null : result.error }
}

/** No engine has everything: names, node by node, what the one that comes nearest lacks, beside whatever else is wrong. */
export function toLackRefusal(result: ValidationResult, lacks: readonly PlacedLack[]): ServiceError {
  const byNode = new Map<string, FieldError[]>()
  for (const lack of lacks) byNode.set(lack.nodeId, [...(byNode.get(lack.nodeId) ?? []), toLackError(lack)])
  for (const [id, { errors }] of Object.entries(result.nodeErrors)) {
    const named = byNode.get(id) ?? []
    const others = errors.map(toFieldError).filter((error) => !named.some((each) => isSame(each, error)))
    byNode.set(id, [...named, ...others])
  }
  const count = [...byNode.values()].reduce((sum, errors) => sum + errors.length, 0)
  const [first] = lacks
  const text = `Node ${first.nodeId} (${first.classType}): ${toLackError(first).message}`
  const message = count > 1 ? `${text} (and ${count - 1} more)` : text
  const nodeErrors = Object.fromEntries([...byNode].slice(0, MAX_REPORTED_NODES))
  const missing = lacks.flatMap(toMissing).slice(0, MAX_REPORTED_NODES)
  return refuseWorkflow(clipMessage(message), nodeErrors, missing.length === 0 ? {} : { missing_weights: missing })
}

function toMissing({ nodeId, input, value, missing }: PlacedLack): object[] {
  return missing === null ? [] : [{ name: value, ...missing, node_id: nodeId, input }]
}

function toLackError({ classType, input, value, isElsewhere, hint = null, missing }: PlacedLack): FieldError {
  const file = missing === null || missing.folder === null ? value : `${missing.folder}/${value}`
  const [reason, thing] =
    input === null
      ? ['missing_node_type', `the node class ${JSON.stringify(classType)}`]
      : ['value_not_in_list', `${JSON.stringify(file)} for input ${input}`]
  const owners = missing?.engines.slice(0, MAX_NAMED_ENGINES) ?? []
  const where = owners.length === 0 ? (hint === null ? '' : `; ${hint}`) : `; it is on ${owners.join(', ')}`
  const message = isElsewhere ? `no engine that has the rest has ${thing}${where}` : `no engine has ${thing}${where}`
  return { field: input ?? '', reason, message: clipMessage(message) }
}

function isSame(one: FieldError, other: FieldError): boolean {
  return one.field === other.field && one.reason === other.reason
}

type ConvertReason =
  | 'malformed_file' // not the shape that the editor saves
  | 'file_too_large' // more nodes, slots or levels than any real workflow has
  | 'broken_link' // a link that names a node or a slot that is not there
  | 'endless_link' // links, or subgraphs inside of themselves, that lead back to where they began
  | 'unknown_class' // no engine describes the class, so nobody knows which value belongs to which input
  | 'needs_browser_extension' // code that a node pack runs inside of the editor's page

interface RefusedNode {
  readonly nodeId: string
  readonly field?: string
}

const MAX_MESSAGE = 500

/** Why a saved workflow cannot be turned into a graph: always with the node, or the part of the file, that is at fault. */
export function refuseConversion(reason: ConvertReason, message: string, at?: RefusedNode): never {
  const text = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message
  const nodeErrors =
    at === undefined
      ? {}
      : Object.fromEntries([[at.nodeId.slice(0, MAX_MESSAGE), [{ field: at.field ?? '', reason, message: text }]]])
  throw refuseWorkflow(text, nodeErrors)
}

/** How much one file may ask for altogether, where small parts of it multiply. */
export type Spend = (amount: number) => void

/** `what`: of which there would be more than `limit`. */
export function createBudget(limit: number, what: string): Spend {
  let left = limit
  return (amount) => {
    left -= amount
    if (left < 0) refuseConversion('file_too_large', `the workflow has more than ${limit} ${what}`)
  }
}
