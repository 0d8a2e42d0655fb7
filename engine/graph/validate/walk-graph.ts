/**
 * Validates the nodes that an output depends on, depth first over required, optional and lazy links. All outputs of a graph share
 * one memo. The path is kept in an array instead of on the call stack, because a chain may be thousands of nodes long. An
 * exception is recorded on the node that raised it, with the message of the node that consumes it, as in ComfyUI.
 */

import { PythonError } from '../../../lib/python/values.ts'
import type { Work } from '../../../lib/waiting/turns.ts'
import type { Graph, GraphNode } from '../graph.ts'
import { advance, type CheckContext, type NodeFrame, openFrame } from './check-node.ts'
import type { NodeError } from './validation-result.ts'

// Reports a cycle on every node in it, with the path around it from the node where it was entered.

interface CycleMember {
  readonly id: string
  readonly node: GraphNode
}

// Each member's error holds the path, so without a bound the answer would grow with the square of the length.
const MAX_SHOWN = 50

/** The members in the order of the walk; returns the error for one of them. */
function cycleErrors(members: readonly CycleMember[]): (nodeId: string) => NodeError {
  const isLong = members.length > MAX_SHOWN
  const shown = isLong ? members.slice(0, MAX_SHOWN) : members
  const names = shown.map(({ id, node }) => `${id} (${node.classType})`)
  const gap = isLong ? [`... ${members.length - MAX_SHOWN} more ...`] : []
  const details = [...names, ...gap, names[0]].join(' -> ')
  const cycleNodes = shown.map(({ id }) => id)
  return (nodeId) => ({
    type: 'dependency_cycle',
    message: 'Dependency cycle detected',
    details,
    extra_info: { node_id: nodeId, cycle_nodes: cycleNodes },
  })
}

interface Verdict {
  readonly isValid: boolean
  readonly errors: readonly NodeError[]
}

const STEP_NODES = 200
const VALID: Verdict = { isValid: true, errors: [] }

export class GraphWalk {
  readonly #graph: Graph
  readonly #context: CheckContext
  readonly verdicts = new Map<string, Verdict>()
  /** Nodes with errors of their own, in the order in which they were found. */
  readonly faulty: string[] = []
  /** The links that the walk followed from each node. */
  readonly followed = new Map<string, readonly string[]>()
  /** Nodes whose inputs were converted. */
  readonly changed = new Map<string, GraphNode>()
  readonly #path: NodeFrame[] = []
  readonly #positions = new Map<string, number>()
  #steps = 0

  constructor(graph: Graph, context: CheckContext) {
    this.#graph = graph
    this.#context = context
  }

  /** Goes to an output, unless it was validated before. */
  begin(outputId: string): void {
    if (!this.verdicts.has(outputId)) this.#enter(outputId)
  }

  /** One step further on the way to the output; false: it and every node before it are validated. */
  goOn(): boolean {
    const frame = this.#path.at(-1)
    if (frame === undefined) return false
    this.#step(frame)
    this.#steps++
    return true
  }

  /** Whether so many steps were made that others should have their turn. */
  isPauseDue(): boolean {
    return this.#steps % STEP_NODES === 0
  }

  /** The verdict on an output that was validated before. */
  verdictOf(outputId: string): Verdict {
    return this.verdicts.get(outputId) ?? VALID
  }

  #decide(id: string, verdict: Verdict): void {
    const wasFaulty = (this.verdicts.get(id)?.errors.length ?? 0) > 0
    if (!wasFaulty && verdict.errors.length > 0) this.faulty.push(id)
    this.verdicts.set(id, verdict)
  }

  #enter(id: string): void {
    const node = this.#graph.get(id)
    const rules = this.#context.rulesOf(id)
    if (node === undefined || rules === undefined) throw new Error(`node ${id} is not in the graph`)
    this.#positions.set(id, this.#path.length)
    this.#path.push(openFrame(id, node, rules))
  }

  #leave(frame: NodeFrame): void {
    this.#path.pop()
    this.#positions.delete(frame.id)
    this.followed.set(frame.id, frame.followed)
    if (frame.given !== frame.node.inputs) this.changed.set(frame.id, { ...frame.node, inputs: frame.given })
  }

  /** The frame at the top has checked all inputs. If a cycle has recorded errors for it before, those come first. */
  #finish(frame: NodeFrame): void {
    const earlier = this.verdicts.get(frame.id)?.errors ?? []
    const errors = earlier.length === 0 ? frame.errors : [...earlier, ...frame.errors]
    const isValid = frame.isValid && errors.length === 0
    this.#leave(frame)
    this.#decide(frame.id, isValid ? VALID : { isValid, errors })
  }

  /** The frame at the top raised: its own findings are dropped, and its consumer reports the exception. */
  #fail(frame: NodeFrame, error: PythonError): void {
    this.#leave(frame)
    const consumer = this.#path.at(-1)
    const reason = consumer === undefined ? outputException(error) : innerException(error, consumer)
    this.#decide(frame.id, { isValid: false, errors: [reason] })
  }

  #closeCycle(start: number): void {
    const members = this.#path.slice(start)
    const errors = cycleErrors(members)
    for (const member of members) {
      // A node in two cycles keeps the first one found, which also keeps many overlapping cycles cheap.
      if (member.isInCycle) continue
      member.isInCycle = true
      this.#decide(member.id, { isValid: false, errors: [errors(member.id)] })
    }
  }

  #follow(frame: NodeFrame, linked: string): void {
    const position = this.#positions.get(linked)
    if (!this.verdicts.has(linked) && position !== undefined) this.#closeCycle(position)
    const verdict = this.verdicts.get(linked)
    if (verdict === undefined) this.#enter(linked)
    else this.#settle(frame, verdict)
  }

  #settle(frame: NodeFrame, verdict: Verdict): void {
    if (!verdict.isValid) frame.isValid = false
    frame.next += 1
  }

  #step(frame: NodeFrame): void {
    try {
      const linked = advance(frame, this.#context)
      if (linked !== null) {
        this.#follow(frame, linked)
        return
      }
      this.#finish(frame)
    } catch (error) {
      if (!(error instanceof PythonError)) throw error
      this.#fail(frame, error)
    }
    // The frame that waited for this node continues after the link that led here.
    const consumer = this.#path.at(-1)
    const verdict = this.verdicts.get(frame.id)
    if (consumer !== undefined && verdict !== undefined) this.#settle(consumer, verdict)
  }
}

/** Validates an output and every node before it that has not been validated yet, in steps. */
export function* judge(walk: GraphWalk, outputId: string): Work<Verdict> {
  walk.begin(outputId)
  while (walk.goOn()) if (walk.isPauseDue()) yield
  return walk.verdictOf(outputId)
}

function innerException(error: PythonError, consumer: NodeFrame): NodeError {
  const input = consumer.inputs[consumer.next]
  return {
    type: 'exception_during_inner_validation',
    message: 'Exception when validating inner node',
    details: error.message,
    extra_info: {
      input_name: input.path,
      input_config: input.config,
      exception_message: error.message,
      exception_type: error.type,
      traceback: [],
      linked_node: consumer.given[input.path],
    },
  }
}

function outputException(error: PythonError): NodeError {
  return {
    type: 'exception_during_validation',
    message: 'Exception when validating node',
    details: error.message,
    extra_info: { exception_type: error.type, traceback: [] },
  }
}
