/**
 * Follows a link of the editor back to the output that it stands for in the prompt: out of and into subgraphs, through Reroute
 * nodes, and past bypassed nodes, whose outputs are taken from an input of a matching type. The way may end at nothing (a muted
 * node, a bypassed one without such an input) or at the value of a promoted widget.
 */
import { refuseConversion } from '../convert-refusal.ts'
import type { EditorGraph, EditorNode, Slot, Widget } from '../editor/editor-graph.ts'
import { IO_INPUT, MODE } from '../saved/saved-workflow.ts'
import { bypassInput } from './slot-types.ts'

/** A node in one of the places where its graph is shown. */
export interface Placed {
  readonly node: EditorNode
  readonly graph: EditorGraph
  /** The place of the node that shows the graph; null in the workflow itself. */
  readonly host: Placed | null
  /** Its id in the prompt: the ids of the nodes around it and its own, with colons between. */
  readonly id: string
}

type Source =
  | { readonly kind: 'output'; readonly nodeId: string; readonly slot: number }
  | { readonly kind: 'widget'; readonly widget: Widget }

// Many times the longest real way; the walk is recursive, and must not fill the stack.
const MAX_STEPS = 2_000

interface Way {
  steps: number
  readonly seen: Set<string>
}

function placeOf(node: EditorNode, beside: Placed): Placed {
  const id = beside.host === null ? node.id : `${beside.host.id}:${node.id}`
  return { node, graph: beside.graph, host: beside.host, id }
}

export function resolveInput(at: Placed, slot: Slot): Source | null {
  return followInput(at, slot, { way: { steps: 0, seen: new Set() } })
}

interface Following {
  readonly way: Way
  /** The type that the end of the link asks for, where a Reroute node stands in between. */
  readonly type?: string
}

function step({ node, id }: Placed, name: string, way: Way): void {
  const key = `${id} ${name}`
  if (++way.steps > MAX_STEPS)
    refuseConversion('file_too_large', `the links at node ${id} go on for too long`, { nodeId: id })
  if (way.seen.has(key)) {
    refuseConversion('endless_link', `the links at node ${id} (${node.title || node.type}) lead in a circle`, {
      nodeId: id,
    })
  }
  way.seen.add(key)
}

function followInput(at: Placed, slot: Slot, { way, type }: Following): Source | null {
  step(at, `in ${at.node.inputs.indexOf(slot)}`, way)
  if (slot.link === null) return null
  const link = at.graph.links.get(slot.link)
  if (link === undefined) {
    return refuseConversion(
      'broken_link',
      `input ${slot.name} of node ${at.id} has a link that the file does not define`,
      {
        nodeId: at.id,
        field: slot.name,
      },
    )
  }
  if (link.originId === IO_INPUT && at.host !== null) {
    const outer = at.host.node.inputs[link.originSlot]
    if (outer === undefined) return refuseSlot(at, slot)
    if (outer.link !== null) return followInput(at.host, outer, { way })
    return outer.promoted === undefined ? null : { kind: 'widget', widget: outer.promoted }
  }
  const origin = at.graph.nodes.get(link.originId)
  if (origin === undefined) return refuseSlot(at, slot)
  return followOutput(placeOf(origin, at), link.originSlot, { way, type: type ?? slot.type })
}

function refuseSlot(at: Placed, slot: Slot): never {
  return refuseConversion('broken_link', `input ${slot.name} of node ${at.id} is linked to nothing that the file has`, {
    nodeId: at.id,
    field: slot.name,
  })
}

function followOutput(at: Placed, slot: number, { way, type }: Required<Following>): Source | null {
  const { node } = at
  step(at, `out ${slot}`, way)
  if (node.mode === MODE.muted) return null
  if (node.mode === MODE.bypassed) {
    if (node.outputs[slot] === undefined) return refuseOutput(at, slot)
    const input = bypassInput(node, { slot, type, graph: at.graph })
    return input === null ? null : followInput(at, input, { way })
  }
  if (node.subgraph !== null) return followInside(at, slot, { way, type })
  if (node.kind === 'reroute') {
    const input = node.inputs[slot]
    return input === undefined || input.link === null ? null : followInput(at, input, { way, type })
  }
  if (node.kind === 'primitive' || node.kind === 'note') return null
  return slot < 0 ? refuseOutput(at, slot) : { kind: 'output', nodeId: at.id, slot }
}

function refuseOutput(at: Placed, slot: number): never {
  return refuseConversion('broken_link', `a link begins at output ${slot} of node ${at.id}, which has no such output`, {
    nodeId: at.id,
  })
}

function followInside(at: Placed, slot: number, following: Required<Following>): Source | null {
  const { subgraph } = at.node
  const output = subgraph?.outputs[slot]
  if (subgraph === null || output === undefined) return refuseOutput(at, slot)
  const id = output.linkIds.find((each) => subgraph.links.has(each))
  const link = id === undefined ? undefined : subgraph.links.get(id)
  if (link === undefined) return null
  // An input that the subgraph hands straight to an output.
  if (link.originId === IO_INPUT) {
    const outer = at.node.inputs[link.originSlot]
    if (outer === undefined) return refuseOutput(at, slot)
    return outer.link === null ? null : followInput(at, outer, following)
  }
  const inner = subgraph.nodes.get(link.originId)
  if (inner === undefined) return refuseOutput(at, slot)
  return followOutput(
    { node: inner, graph: subgraph, host: at, id: `${at.id}:${inner.id}` },
    link.originSlot,
    following,
  )
}
