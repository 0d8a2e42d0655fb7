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
