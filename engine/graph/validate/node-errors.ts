/**
 * Turns the result of validation into one GraphError. Any node error refuses the whole graph, even if only one of several outputs
 * is affected, because a run promises all of its outputs. The size of errors is bounded whatever was submitted.
 */
import { type FieldError, GraphError } from '../graph-error.ts'
import type {
  Finding,
  GraphRefusal,
  NodeError,
  NodeErrorType,
  ValidationResult,
  WorkflowError,
} from './validation-result.ts'

// Messages quote values, which may be long.
const MAX_MESSAGE_LENGTH = 500
export const MAX_REPORTED_NODES = 200

function fieldOf(error: Finding): string {
  const name = error.extra_info.input_name
  return typeof name === 'string' ? name : ''
}

function exceptionText(error: NodeError): string {
  const word = error.extra_info.exception_type
  if (word === 'KeyError') return `a link leads to node ${error.details}, which does not exist`
  if (word === 'IndexError') return 'a link names an output slot that does not exist'
  return `validation failed: ${error.details}`
}

const TEXT: Readonly<Record<NodeErrorType, (error: NodeError) => string>> = {
  required_input_missing: (error) => `required input ${fieldOf(error)} is missing`,
  bad_linked_input: (error) => `input ${fieldOf(error)} is no link: a link is [node_id, slot_index]`,
  return_type_mismatch: (error) => `input ${error.details}`,
  exception_during_inner_validation: exceptionText,
  exception_during_validation: exceptionText,
  dependency_cycle: (error) => `is part of a dependency cycle: ${error.details}`,
  invalid_input_type: (error) => `input ${fieldOf(error)}: ${String(error.extra_info.exception_message)}`,
  value_smaller_than_min: (error) => `input ${fieldOf(error)}: ${error.message}`,
  value_bigger_than_max: (error) => `input ${fieldOf(error)}: ${error.message}`,
  value_not_in_list: (error) => `input ${error.details}`,
  custom_validation_failed: (error) => error.details,
}

export function clipMessage(text: string): string {
  return text.length <= MAX_MESSAGE_LENGTH ? text : `${text.slice(0, MAX_MESSAGE_LENGTH)}...`
}

export function toFieldError(error: Finding): FieldError {
  return {
    field: fieldOf(error),
    reason: error.type === 'required_input_missing' ? 'missing_input' : error.type,
    message: clipMessage(
      isOurs(error) ? TEXT[error.type](error) : [error.message, error.details].filter(Boolean).join(': '),
    ),
  }
}

/** Whether validation here uses this error type too. */
function isOurs(error: Finding): error is NodeError {
  return Object.hasOwn(TEXT, error.type)
}

/** null when nothing is wrong. */
export function toGraphError({ nodeErrors, error }: ValidationResult): GraphError | null {
  if (Object.keys(nodeErrors).length === 0) return error === null ? null : ofWorkflow(error)
  return toNodesError(nodeErrors)
}

/** At least one node must have errors. */
export function toNodesError(nodeErrors: GraphRefusal['nodeErrors']): GraphError {
  const faulty = Object.entries(nodeErrors)
  const reported = faulty
    .slice(0, MAX_REPORTED_NODES)
    .map(([id, node]): [string, FieldError[]] => [id, node.errors.map(toFieldError)])
  const [firstId, firstErrors] = reported[0]
  const count = faulty.reduce((sum, [, node]) => sum + node.errors.length, 0)
  const first = `Node ${firstId} (${nodeErrors[firstId].class_type}): ${firstErrors[0]?.message ?? 'is invalid'}`
  const message = count > 1 ? `${first} (and ${count - 1} more)` : first
  return new GraphError('invalid', message, Object.fromEntries(reported))
}

interface MissingClass {
  readonly node_id: string
  readonly class_type: string | null
  /** Why it is missing, where that is known. */
  readonly hint?: string
}

function ofWorkflow(error: WorkflowError): GraphError {
  if (error.type !== 'missing_node_type') return new GraphError('invalid', error.message)
  const { node_id: id, class_type: classType, hint } = error.extra_info as unknown as MissingClass
  const problem =
    classType === null
      ? 'has no class_type'
      : `the node class ${JSON.stringify(classType)} does not exist here; ${hint ?? 'a custom node may not be installed'}`
  const item: FieldError = { field: '', reason: error.type, message: clipMessage(problem) }
  const message = classType === null ? `Node ${id}: ${problem}` : `Node ${id} (${classType}): ${problem}`
  return new GraphError('invalid', clipMessage(message), Object.fromEntries([[id, [item]]]))
}
