import type { JsonObject, JsonValue } from '../../lib/json/lossless-json.ts'

/** Why a graph cannot be run: a message that says what to mend first, and every fault by node. */
export type GraphProblem =
  | 'ui_format' // the format in which the editor saves, instead of the API format
  | 'malformed' // not an object of nodes, or larger than any graph may be
  | 'invalid' // the class or an input of some node is wrong

export interface FieldError {
  /** The input; empty when the node as a whole is wrong. */
  readonly field: string
  /** A stable word, such as `missing_input` or `value_not_in_list`. */
  readonly reason: string
  readonly message: string
}

export class GraphError extends Error {
  readonly problem: GraphProblem
  /** By node id; empty when the fault lies in no single node. */
  readonly nodeErrors: Readonly<Record<string, readonly FieldError[]>>

  constructor(problem: GraphProblem, message: string, nodeErrors: GraphError['nodeErrors'] = {}) {
    super(message)
    this.name = 'GraphError'
    this.problem = problem
    this.nodeErrors = nodeErrors
  }
}

/** A workflow in API format, parsed losslessly and checked for shape only. */
export interface GraphNode {
  readonly classType: string
  readonly inputs: JsonObject
  /** The title that error messages use, from `meta`. */
  readonly title: string | null
  /** The value of `_meta` as it was submitted; absent when there was none. It is given back to readers; a run ignores it. */
  readonly meta?: JsonValue
}

export type Graph = ReadonlyMap<string, GraphNode>

/** In a graph, an array of exactly [string, number] is a link; anything else is a constant. */
export function isLink(value: JsonValue): value is [string, number] {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' && typeof value[1] === 'number'
}
