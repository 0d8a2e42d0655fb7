/**
 * Nodes that answer with a sub-graph. The children join the run; the parent waits for those that its outputs link to and
 * is then finished with their values. Children that are output nodes run as well.
 */
import type { GraphBuilder, MadeReport } from '../node/node-context.ts'
import { NodeError } from '../node/node-error.ts'
import type { Slot, Value } from '../values/value.ts'
import { type CallOutputs, mergeOutputs } from './calls/call-node.ts'
import { isLinkValue, type LiveNode } from './live-graph.ts'
import type { PendingExpansion, RunState } from './run-state.ts'

interface ExpandedNode {
  readonly report: MadeReport | null
  readonly calls: readonly ExpandingCall[]
}

export interface ExpandingCall {
  readonly outputs: CallOutputs
  readonly expand: GraphBuilder | null
}

export function expandNode(state: RunState, parent: LiveNode, { calls, report }: ExpandedNode): void {
  const { graph, schedule, results } = state
  const outputNodes: string[] = []
  for (const { outputs, expand } of calls) {
    results.keep(outputs)
    for (const built of expand?.nodes ?? []) {
      const child = graph.addChild(parent, built)
      results.keep(Object.values(built.inputs))
      for (const producer of graph.allProducers(child.id)) results.addReader(producer, child.id)
      if (child.node.definition.output_node) outputNodes.push(child.id)
    }
  }
  for (const producer of linkedBy(calls)) results.addReader(producer, parent.id)
  schedule.add(outputNodes)
  for (const id of outputNodes) schedule.addLink(id, parent.id)
  for (const producer of linkedBy(calls)) schedule.addLink(producer, parent.id)
  state.expansions.set(parent.id, {
    report,
    calls: calls.map(({ outputs, expand }) => ({ outputs, hasLinks: expand !== null })),
  })
}

function linkedBy(calls: readonly ExpandingCall[]): string[] {
  return calls.flatMap(({ outputs, expand }) =>
    expand === null ? [] : outputs.flatMap((value) => (isLinkValue(value) ? [value[0]] : [])),
  )
}

/** The parent's outputs, now that the children are done. */
export function resolveExpansion(state: RunState, parent: LiveNode, { calls }: PendingExpansion): readonly Slot[] {
  const isList = parent.node.definition.output_is_list
  const resolved = calls.map(({ outputs, hasLinks }) =>
    hasLinks ? outputs.map((value, slot) => resolve(state, value, isList[slot])) : outputs.map(asList(isList)),
  )
  // Every slot of every call is a list by now: a link may stand for several values.
  return mergeOutputs(
    resolved,
    isList.map(() => true),
  )
}

function asList(isList: readonly boolean[]): (value: Value, slot: number) => Value {
  return (value, slot) => (isList[slot] ? value : [value])
}

function resolve(state: RunState, value: Value, isListSlot: boolean): Value {
  if (!isLinkValue(value)) return isListSlot ? value : [value]
  const [producer, slot] = value
  const values = state.results.outputsOf(producer)?.[slot]
  if (values === undefined) throw new NodeError('IndexError', `node ${producer} has no output slot ${slot}`)
  return [...values]
}

/** Everything that the parent reads: its own links and those it returned. */
export function producersReadBy(state: RunState, live: LiveNode): string[] {
  const expansion = state.expansions.get(live.id)
  const own = state.graph.allProducers(live.id)
  if (expansion === undefined) return own
  const links = expansion.calls.flatMap(({ outputs }) => outputs.filter(isLinkValue).map(([producer]) => producer))
  return [...own, ...links]
}
