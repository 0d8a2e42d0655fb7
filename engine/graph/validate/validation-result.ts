/**
 * The result of validation in ComfyUI's own shapes. The legacy surface serves these objects unchanged, so their names are its wire
 * names. Tracebacks are always empty, because they would reveal the service's own source.
 */
import type { Graph } from '../graph.ts'

export type NodeErrorType =
  | 'required_input_missing'
  | 'bad_linked_input'
  | 'return_type_mismatch'
  | 'exception_during_inner_validation'
  | 'exception_during_validation'
  | 'dependency_cycle'
  | 'invalid_input_type'
  | 'value_smaller_than_min'
  | 'value_bigger_than_max'
  | 'value_not_in_list'
  | 'custom_validation_failed'

export interface NodeError {
  readonly type: NodeErrorType
  readonly message: string
  readonly details: string
  readonly extra_info: Readonly<Record<string, unknown>>
}

export interface NodeErrors {
  readonly errors: readonly NodeError[]
  /** The outputs that cannot run because of this node. */
  readonly dependent_outputs: readonly string[]
  readonly class_type: string
}

export interface WorkflowError {
  readonly type: 'missing_node_type' | 'prompt_no_outputs' | 'prompt_outputs_failed_validation'
  readonly message: string
  readonly details: string
  readonly extra_info: Readonly<Record<string, unknown>>
}

/** One error of a node, found by this validation or by an engine, which may have error types of its own. */
export interface Finding {
  readonly type: string
  readonly message: string
  readonly details: string
  readonly extra_info: Readonly<Record<string, unknown>>
}

/** Why a graph cannot run, in the words of the engine that refused it. */
export interface GraphRefusal {
  readonly error: Finding
  readonly nodeErrors: Readonly<
    Record<
      string,
      {
        readonly errors: readonly Finding[]
        readonly dependent_outputs: readonly string[]
        readonly class_type: string
      }
    >
  >
}

export interface ValidationResult {
  /** At least one output can run. Callers that promise all outputs must check `nodeErrors` as well. */
  readonly ok: boolean
  readonly error: WorkflowError | null
  readonly goodOutputs: readonly string[]
  readonly nodeErrors: Readonly<Record<string, NodeErrors>>
  /** The graph with replaced classes and converted constants: what is to be executed. */
  readonly graph: Graph
}
