/**
 * Validation's findings as the v2 contract words them: `{node_id: [{field, reason, message}]}` and a first line that a person
 * can act on. ANY node error refuses the whole workflow here, also when only one of several outputs is bad: a job promises all
 * of its outputs. Answers stay small whatever was submitted.
 */
import { type RefusalDetails, ServiceError } from '../../../src/domain/errors.ts'
import type { Lack } from '../../../src/domain/workflows/needs.ts'
import type {
  Finding,
  GraphRefusal,
  NodeError,
  NodeErrors,
  NodeErrorType,
  ValidationResult,
  WorkflowError,
} from './validation-result.ts'

export interface FieldError {
  readonly field: string
  readonly reason: string
  readonly message: string
}

// Values are quoted in messages, and values may be long.
const MAX_MESSAGE_LENGTH = 500
const MAX_REPORTED_NODES = 200

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

function clip(text: string): string {
  return text.length <= MAX_MESSAGE_LENGTH ? text : `${text.slice(0, MAX_MESSAGE_LENGTH)}...`
}

function toFieldError(error: Finding): FieldError {
  return {
    field: fieldOf(error),
    reason: error.type === 'required_input_missing' ? 'missing_input' : error.type,
    message: clip(isOurs(error) ? TEXT[error.type](error) : [error.message, error.details].filter(Boolean).join(': ')),
  }
}

/** A word that validation here uses as well. */
function isOurs(error: Finding): error is NodeError {
  return Object.hasOwn(TEXT, error.type)
}

/** null when nothing is wrong. */
export function toRefusal(result: ValidationResult): ServiceError | null {
  const { nodeErrors, error } = result
  if (Object.keys(nodeErrors).length === 0) return error === null ? null : workflowRefusal(error)
  return refuseNodes(nodeErrors)
}

/** What an engine said when it was handed the graph. */
export function toEngineRefusal({ error, nodeErrors }: GraphRefusal): ServiceError {
  if (Object.keys(nodeErrors).length > 0) return refuseNodes(nodeErrors)
  const text = [error.message, error.details].filter(Boolean).join(': ')
  return refusal(clip(text === '' ? 'the engine refused the workflow and did not say why' : text), { node_errors: {} })
}

function refuseNodes(nodeErrors: GraphRefusal['nodeErrors']): ServiceError {
  const faulty = Object.entries(nodeErrors)
  const reported = faulty
    .slice(0, MAX_REPORTED_NODES)
    .map(([id, node]): [string, FieldError[]] => [id, node.errors.map(toFieldError)])
  const [firstId, firstErrors] = reported[0]
  const count = faulty.reduce((sum, [, node]) => sum + node.errors.length, 0)
  const first = `Node ${firstId} (${nodeErrors[firstId].class_type}): ${firstErrors[0]?.message ?? 'is invalid'}`
  const message = count > 1 ? `${first} (and ${count - 1} more)` : first
  return refusal(message, { node_errors: Object.fromEntries(reported) })
}

/** What could still turn out well: a class or a choice that an engine brings which has not been heard yet. */
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
export function toLackRefusal(result: ValidationResult, lacks: readonly Lack[]): ServiceError {
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
  return refusal(clip(message), { node_errors: Object.fromEntries([...byNode].slice(0, MAX_REPORTED_NODES)) })
}

function toLackError({ classType, input, value, isElsewhere }: Lack): FieldError {
  const [reason, thing] =
    input === null
      ? ['missing_node_type', `the node class ${JSON.stringify(classType)}`]
      : ['value_not_in_list', `${JSON.stringify(value)} for input ${input}`]
  const message = isElsewhere ? `no engine that has the rest has ${thing}` : `no engine has ${thing}`
  return { field: input ?? '', reason, message: clip(message) }
}

function isSame(one: FieldError, other: FieldError): boolean {
  return one.field === other.field && one.reason === other.reason
}

function workflowRefusal(error: WorkflowError): ServiceError {
  if (error.type !== 'missing_node_type') return refusal(error.message, { node_errors: {} })
  const { node_id: id, class_type: classType } = error.extra_info as { node_id: string; class_type: string | null }
  const problem =
    classType === null
      ? 'has no class_type'
      : `the node class ${JSON.stringify(classType)} does not exist here; a custom node may not be installed`
  const item: FieldError = { field: '', reason: error.type, message: clip(problem) }
  const message = classType === null ? `Node ${id}: ${problem}` : `Node ${id} (${classType}): ${problem}`
  return refusal(clip(message), { node_errors: Object.fromEntries([[id, [item]]]) })
}

function refusal(message: string, details: RefusalDetails): ServiceError {
  return new ServiceError('invalid_workflow', message, { details })
}
