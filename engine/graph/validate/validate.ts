/**
 * ComfyUI 0.33's validation of a whole graph: the classes, then the outputs, then every node that an output depends on. Pure: the
 * given graph is not changed; the result holds the graph to execute. Whether a graph with errors is refused is for callers to
 * decide.
 */
import { finishNow, type Work } from '../../../lib/waiting/turns.ts'
import { explainAbsent } from '../absent-classes.ts'
import { type FieldError, type Graph, GraphError, type GraphNode } from '../graph.ts'
import { readNodeSpec } from '../input-specs.ts'
import type { NodeCatalog, NodeDefinition } from '../node-catalog.ts'
import { replaceClasses } from '../replace-classes.ts'
import type { CheckInput, ClassRules } from './check-node.ts'
import type {
  Finding,
  GraphRefusal,
  NodeError,
  NodeErrors,
  NodeErrorType,
  ValidationResult,
  WorkflowError,
} from './validation-result.ts'
import { GraphWalk, judge } from './walk-graph.ts'

// Finds the outputs that cannot run because of each faulty node: those that depend on it. Every faulty node has at least the
// output from which it was found. The others are searched within a budget, since the answer could otherwise grow with the
// product of outputs and faulty nodes.

// About the cost of a graph of 1,000 nodes with 1,000 outputs. In larger ones the search stops here.
const MAX_STEPS = 1_000_000
const STEP_NODES = 2000

interface FailedOutput {
  readonly outputId: string
  /** Faulty nodes that were found while this output was validated. */
  readonly found: readonly string[]
}

function* dependentOutputs(
  failed: readonly FailedOutput[],
  followed: ReadonlyMap<string, readonly string[]>,
  isFaulty: (nodeId: string) => boolean,
): Work<Map<string, string[]>> {
  const dependents = new Map<string, string[]>()
  let steps = 0
  let sinceYield = 0
  for (const { outputId, found } of failed) {
    if (steps > MAX_STEPS) {
      for (const nodeId of found) add(nodeId, outputId)
      continue
    }
    const seen = new Set([outputId])
    // Iterating a set also yields what is added meanwhile, so it serves as the work list too.
    for (const nodeId of seen) {
      if (isFaulty(nodeId)) add(nodeId, outputId)
      for (const next of followed.get(nodeId) ?? []) seen.add(next)
      sinceYield++
      if (sinceYield % STEP_NODES === 0) yield
    }
    steps += seen.size
  }
  return dependents

  function add(nodeId: string, outputId: string): void {
    const outputs = dependents.get(nodeId)
    if (outputs === undefined) dependents.set(nodeId, [outputId])
    else outputs.push(outputId)
  }
}

export interface ValidateOptions {
  readonly catalog: NodeCatalog
  /** Only these output nodes run; absent: all. An empty list selects none. */
  readonly targets?: readonly string[]
  /** Checks the values of self-checked and upload inputs; absent: every value passes. */
  readonly checkInput?: CheckInput
}

export function validate(submitted: Graph, options: ValidateOptions): ValidationResult {
  return finishNow(validateSteps(submitted, options))
}

/** The same in steps, so that a large graph does not hold up other work on this thread. */
export function* validateSteps(submitted: Graph, options: ValidateOptions): Work<ValidationResult> {
  const { catalog, targets, checkInput } = options
  const graph = replaceClasses(submitted, catalog)
  const classes = readClasses(graph, catalog)
  if ('error' in classes) return refused(graph, classes.error)
  const rulesOf = (nodeId: string) => {
    const node = graph.get(nodeId)
    return node && classes.rules.get(node.classType)
  }
  const outputs = selectOutputs(graph, classes.rules, targets)
  if (outputs.length === 0) return refused(graph, NO_OUTPUTS)
  yield
  return yield* judgeOutputs(graph, outputs, new GraphWalk(graph, { rulesOf, checkInput: checkInput ?? null }))
}

const STEP_OUTPUTS = 1000

const NO_OUTPUTS: WorkflowError = {
  type: 'prompt_no_outputs',
  message: 'Prompt has no outputs',
  details: '',
  extra_info: {},
}

function refused(graph: Graph, error: WorkflowError): ValidationResult {
  return { ok: false, error, goodOutputs: [], nodeErrors: {}, graph }
}

type Classes = { readonly rules: ReadonlyMap<string, ClassRules> } | { readonly error: WorkflowError }

/** The first node of an unknown class ends validation: nothing can be said about what it is linked to. */
function readClasses(graph: Graph, catalog: NodeCatalog): Classes {
  const rules = new Map<string, ClassRules>()
  for (const [id, node] of graph) {
    if (rules.has(node.classType)) continue
    const definition = node.classType === '' ? null : catalog.find(node.classType)
    if (definition === null) return { error: missingClass(id, node, catalog) }
    rules.set(node.classType, rulesOfClass(definition, node.classType, catalog))
  }
  return { rules }
}

const known = new WeakMap<NodeDefinition, ClassRules>()

// A definition belongs to one catalog, so what the catalog says about it can be cached with it.
function rulesOfClass(definition: NodeDefinition, classType: string, catalog: NodeCatalog): ClassRules {
  let rules = known.get(definition)
  if (rules === undefined) {
    rules = {
      spec: readNodeSpec(definition),
      selfChecked: new Set(catalog.selfCheckedInputs(classType)),
      judgesItself: catalog.judgesItself?.(classType) === true,
    }
    known.set(definition, rules)
  }
  return rules
}

function missingClass(id: string, { classType, title }: GraphNode, catalog: NodeCatalog): WorkflowError {
  const isNameless = classType === ''
  const hint = explainAbsent(classType, [catalog])
  const shown = isNameless ? title || `ID #${id}` : (title ?? classType)
  return {
    type: 'missing_node_type',
    message: isNameless
      ? `Node '${shown}' has no class_type. The workflow may be corrupted or a custom node is missing.`
      : `Node '${shown}' not found${hint === null ? '. The custom node may not be installed' : `: ${hint}`}.`,
    details: `Node ID '#${id}'`,
    extra_info: {
      node_id: id,
      class_type: isNameless ? null : classType,
      node_title: isNameless ? title : shown,
      ...(hint !== null && { hint }),
    },
  }
}

function selectOutputs(
  graph: Graph,
  rules: ReadonlyMap<string, ClassRules>,
  targets: readonly string[] | undefined,
): string[] {
  const wanted = targets === undefined ? null : new Set(targets)
  const outputs: string[] = []
  for (const [id, node] of graph) {
    if (rules.get(node.classType)?.spec.isOutput && (wanted === null || wanted.has(id))) outputs.push(id)
  }
  return outputs
}

function* judgeOutputs(graph: Graph, outputs: readonly string[], walk: GraphWalk): Work<ValidationResult> {
  const goodOutputs: string[] = []
  const failed: FailedOutput[] = []
  for (const [index, outputId] of outputs.entries()) {
    if (index % STEP_OUTPUTS === STEP_OUTPUTS - 1) yield
    const alreadyFound = walk.faulty.length
    const { isValid } = yield* judge(walk, outputId)
    if (isValid) goodOutputs.push(outputId)
    else failed.push({ outputId, found: walk.faulty.slice(alreadyFound) })
  }
  yield
  const ok = goodOutputs.length > 0
  const error = ok ? null : outputsFailed(failed, walk)
  const nodeErrors = yield* collectErrors(graph, failed, walk)
  yield
  return { ok, error, goodOutputs, nodeErrors, graph: applyChanges(graph, walk.changed) }
}

// The summary repeats the errors of the nodes, so its length is bounded.
const MAX_SUMMED_OUTPUTS = 1000

/** The summary has only the errors of output nodes, so it is empty when the fault is in a node before them. */
function outputsFailed(failed: readonly FailedOutput[], walk: GraphWalk): WorkflowError {
  const lines = failed
    .slice(0, MAX_SUMMED_OUTPUTS)
    .flatMap(({ outputId }) => walk.verdictOf(outputId).errors.map(({ message, details }) => `${message}: ${details}`))
  return {
    type: 'prompt_outputs_failed_validation',
    message: 'Prompt outputs failed validation',
    details: lines.join('\n'),
    extra_info: {},
  }
}

function* collectErrors(
  graph: Graph,
  failed: readonly FailedOutput[],
  walk: GraphWalk,
): Work<Readonly<Record<string, NodeErrors>>> {
  if (failed.length === 0) return {}
  const errorsOf = (nodeId: string) => walk.verdicts.get(nodeId)?.errors ?? []
  const dependents = yield* dependentOutputs(failed, walk.followed, (nodeId) => errorsOf(nodeId).length > 0)
  const entries = Array.from(dependents, ([nodeId, outputs]): [string, NodeErrors] => [
    nodeId,
    { errors: errorsOf(nodeId), dependent_outputs: outputs, class_type: graph.get(nodeId)?.classType ?? '' },
  ])
  // Defined instead of assigned, because a node may be called `__proto__`.
  return Object.fromEntries(entries)
}

function applyChanges(graph: Graph, changed: ReadonlyMap<string, GraphNode>): Graph {
  if (changed.size === 0) return graph
  return new Map(Array.from(graph, ([id, node]) => [id, changed.get(id) ?? node]))
}

// Turns the result of validation into one GraphError. Any node error refuses the whole graph, even if only one of several outputs
// is affected, because a run promises all of its outputs. The size of errors is bounded whatever was submitted.

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
