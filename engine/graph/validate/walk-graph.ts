/**
 * Validates the nodes that an output depends on, depth first over required, optional and lazy links. All outputs of a graph share
 * one memo. The path is kept in an array instead of on the call stack, because a chain may be thousands of nodes long. An
 * exception is recorded on the node that raised it, with the message of the node that consumes it, as in ComfyUI.
 */

import { PythonError } from '../../../lib/python/values.ts'
import type { Work } from '../../../lib/waiting/turns.ts'
import type { Graph, GraphNode } from '../graph.ts'
import { advance, type CheckContext, type ClassRules, type NodeFrame, openFrame } from './check-node.ts'
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

export interface GraphWalk {
  /** Goes to an output, unless it was validated before. */
  begin(outputId: string): void
  /** One step further on the way to the output; false: it and every node before it are validated. */
  goOn(): boolean
  /** Whether so many steps were made that others should have their turn. */
  isPauseDue(): boolean
  /** The verdict on an output that was validated before. */
  verdictOf(outputId: string): Verdict
  readonly verdicts: ReadonlyMap<string, Verdict>
  /** Nodes with errors of their own, in the order in which they were found. */
  readonly faulty: readonly string[]
  /** The links that the walk followed from each node. */
  readonly followed: ReadonlyMap<string, readonly string[]>
  /** Nodes whose inputs were converted. */
  readonly changed: ReadonlyMap<string, GraphNode>
}

const STEP_NODES = 200
const VALID: Verdict = { isValid: true, errors: [] }

export function createGraphWalk(
  graph: Graph,
  rulesOf: (nodeId: string) => ClassRules | undefined,
  checkInput: CheckContext['checkInput'],
): GraphWalk {
  const context: CheckContext = { rulesOf, checkInput }
  const verdicts = new Map<string, Verdict>()
  const faulty: string[] = []
  const followed = new Map<string, readonly string[]>()
  const changed = new Map<string, GraphNode>()
  const path: NodeFrame[] = []
  const positions = new Map<string, number>()

  function decide(id: string, verdict: Verdict): void {
    const wasFaulty = (verdicts.get(id)?.errors.length ?? 0) > 0
    if (!wasFaulty && verdict.errors.length > 0) faulty.push(id)
    verdicts.set(id, verdict)
  }

  function enter(id: string): void {
    const node = graph.get(id)
    const rules = rulesOf(id)
    if (node === undefined || rules === undefined) throw new Error(`node ${id} is not in the graph`)
    positions.set(id, path.length)
    path.push(openFrame(id, node, rules))
  }

  function leave(frame: NodeFrame): void {
    path.pop()
    positions.delete(frame.id)
    followed.set(frame.id, frame.followed)
    if (frame.given !== frame.node.inputs) changed.set(frame.id, { ...frame.node, inputs: frame.given })
  }

  /** The frame at the top has checked all inputs. If a cycle has recorded errors for it before, those come first. */
  function finish(frame: NodeFrame): void {
    const earlier = verdicts.get(frame.id)?.errors ?? []
    const errors = earlier.length === 0 ? frame.errors : [...earlier, ...frame.errors]
    const isValid = frame.isValid && errors.length === 0
    leave(frame)
    decide(frame.id, isValid ? VALID : { isValid, errors })
  }

  /** The frame at the top raised: its own findings are dropped, and its consumer reports the exception. */
  function fail(frame: NodeFrame, error: PythonError): void {
    leave(frame)
    const consumer = path.at(-1)
    const reason = consumer === undefined ? outputException(error) : innerException(error, consumer)
    decide(frame.id, { isValid: false, errors: [reason] })
  }

  function closeCycle(start: number): void {
    const members = path.slice(start)
    const errors = cycleErrors(members)
    for (const member of members) {
      // A node in two cycles keeps the first one found, which also keeps many overlapping cycles cheap.
      if (member.isInCycle) continue
      member.isInCycle = true
      decide(member.id, { isValid: false, errors: [errors(member.id)] })
    }
  }

  function follow(frame: NodeFrame, linked: string): void {
    const position = positions.get(linked)
    if (!verdicts.has(linked) && position !== undefined) closeCycle(position)
    const verdict = verdicts.get(linked)
    if (verdict === undefined) enter(linked)
    else settle(frame, verdict)
  }

  function settle(frame: NodeFrame, verdict: Verdict): void {
    if (!verdict.isValid) frame.isValid = false
    frame.next += 1
  }

  function step(frame: NodeFrame): void {
    try {
      const linked = advance(frame, context)
      if (linked !== null) {
        follow(frame, linked)
        return
      }
      finish(frame)
    } catch (error) {
      if (!(error instanceof PythonError)) throw error
      fail(frame, error)
    }
    // The frame that waited for this node continues after the link that led here.
    const consumer = path.at(-1)
    const verdict = verdicts.get(frame.id)
    if (consumer !== undefined && verdict !== undefined) settle(consumer, verdict)
  }

  let steps = 0

  return {
    begin(outputId) {
      if (!verdicts.has(outputId)) enter(outputId)
    },
    goOn() {
      const frame = path.at(-1)
      if (frame === undefined) return false
      step(frame)
      steps++
      return true
    },
    isPauseDue: () => steps % STEP_NODES === 0,
    verdictOf: (outputId) => verdicts.get(outputId) ?? VALID,
    verdicts,
    faulty,
    followed,
    changed,
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
