/**
 * Follows a link of the editor back to the output that it stands for in the prompt: out of and into subgraphs, through Reroute
 * nodes, and past bypassed nodes, whose outputs are taken from an input of a matching type. The way may end at nothing (a muted
 * node, a bypassed one without such an input) or at the value of a promoted widget.
 */
import { createBudget, type Spend } from '../budget.ts'
import { refuseConversion } from '../convert-refusal.ts'
import type { EditorGraph, EditorNode, Slot, Widget } from '../editor/editor-graph.ts'
import { IO_INPUT, MODE } from '../saved/saved-workflow.ts'
import { bypassInput, createKnownTypes, type KnownTypes } from './slot-types.ts'

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

interface InputStop {
  readonly kind: 'input'
  readonly at: Placed
  readonly slot: Slot
  /** The type that the end of the link asks for, where a Reroute node stands in between. */
  readonly type?: string
}

interface OutputStop {
  readonly kind: 'output'
  readonly at: Placed
  readonly slot: number
  readonly type: string
}

type Stop = InputStop | OutputStop | { readonly kind: 'end'; readonly source: Source | null }

const NOTHING: Stop = { kind: 'end', source: null }

// Of all ways together; many times what real workflows need.
const MAX_STEPS = 1_000_000
// A stop on the way is looked up by its name, which is long where subgraphs lie deep: this many characters cost a step.
const NAME_PER_STEP = 16

type ResolveInput = (at: Placed, slot: Slot) => Source | null

/**
 * For one workflow that does not change any more: every part of a way is walked once, however many links lead along it, and
 * whatever types they ask for. `spend`: takes the steps.
 */
export function createResolveInput(spend: Spend = createBudget(MAX_STEPS, 'steps along its links')): ResolveInput {
  const found = new Map<string, Source | null>()
  const keyOf = createKeys()
  const types = createKnownTypes(spend)
  const pass = createPass(types)
  return (at, slot) => {
    spend(1)
    let way: Set<string> | null = null
    let stop = fromInput({ kind: 'input', at, slot })
    while (stop.kind !== 'end') {
      spend(1)
      // Most links begin where they seem to: nothing is gained by remembering that.
      if (stop.kind === 'input' || !leadsOn(stop.at.node)) {
        stop = stop.kind === 'input' ? fromInput(stop) : fromOutput(stop, types)
        continue
      }
      const key = keyOf(stop)
      spend(key.length / NAME_PER_STEP)
      way ??= new Set()
      if (way.has(key)) refuseCircle(stop.at)
      const known = found.get(key)
      way.add(key)
      if (known !== undefined) stop = { kind: 'end', source: known }
      else stop = stop.at.node.mode === MODE.bypassed ? fromOutput(stop, types) : pass(stop)
    }
    for (const key of way ?? []) found.set(key, stop.source)
    return stop.source
  }
}

/** Stands for whatever type is asked for, on ways that do not depend on it. */
const ASKED = '\u0000'

/** Past Reroute nodes and into subgraphs, up to where the type that is asked for matters, or is another one. */
function createPass(types: KnownTypes): (start: OutputStop) => Stop {
  const ends = new Map<string, Stop>()
  return (start) => {
    const way = new Set<string>()
    let stop: Stop = { ...start, type: ASKED }
    while (stop.kind !== 'end') {
      if (stop.kind === 'input') stop = fromInput(stop)
      else {
        const { at, slot, type }: OutputStop = stop
        if (type !== ASKED || at.node.mode === MODE.bypassed || !leadsOn(at.node)) break
        const key = `${at.id} ${slot}`
        types.spend(1 + key.length / NAME_PER_STEP)
        if (way.has(key)) refuseCircle(at)
        const end = ends.get(key)
        way.add(key)
        stop = end ?? fromOutput(stop, types)
        if (end !== undefined) break
      }
    }
    for (const key of way) ends.set(key, stop)
    return stop.kind === 'output' && stop.type === ASKED ? { ...stop, type: start.type } : stop
  }
}

function leadsOn({ kind, mode, subgraph }: EditorNode): boolean {
  return mode === MODE.bypassed || subgraph !== null || kind === 'reroute'
}

/** Types may be long, and come again and again: a number stands for each. */
function createKeys(): (stop: OutputStop) => string {
  const numbers = new Map<string, number>()
  return ({ at, slot, type }) => {
    const number = numbers.get(type) ?? numbers.size
    numbers.set(type, number)
    return `${at.id} ${slot} ${number}`
  }
}

function placeOf(node: EditorNode, beside: Placed): Placed {
  const id = beside.host === null ? node.id : `${beside.host.id}:${node.id}`
  return { node, graph: beside.graph, host: beside.host, id }
}

function refuseCircle({ node, id }: Placed): never {
  return refuseConversion('endless_link', `the links at node ${id} (${node.title || node.type}) lead in a circle`, {
    nodeId: id,
  })
}

function fromInput({ at, slot, type }: InputStop): Stop {
  if (slot.link === null) return NOTHING
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
    if (outer.link !== null) return { kind: 'input', at: at.host, slot: outer }
    return outer.promoted === undefined ? NOTHING : { kind: 'end', source: { kind: 'widget', widget: outer.promoted } }
  }
  const origin = at.graph.nodes.get(link.originId)
  if (origin === undefined) return refuseSlot(at, slot)
  return { kind: 'output', at: placeOf(origin, at), slot: link.originSlot, type: type ?? slot.type }
}

function refuseSlot(at: Placed, slot: Slot): never {
  return refuseConversion('broken_link', `input ${slot.name} of node ${at.id} is linked to nothing that the file has`, {
    nodeId: at.id,
    field: slot.name,
  })
}

function fromOutput(stop: OutputStop, types: KnownTypes): Stop {
  const { at, slot, type } = stop
  const { node } = at
  if (node.mode === MODE.muted) return NOTHING
  if (node.mode === MODE.bypassed) {
    if (node.outputs[slot] === undefined) return refuseOutput(at, slot)
    const input = bypassInput(node, { slot, type, graph: at.graph, types })
    return input === null ? NOTHING : { kind: 'input', at, slot: input }
  }
  if (node.subgraph !== null) return fromInside(stop)
  if (node.kind === 'reroute') {
    const input = node.inputs[slot]
    return input === undefined || input.link === null ? NOTHING : { kind: 'input', at, slot: input, type }
  }
  if (node.kind === 'primitive' || node.kind === 'note') return NOTHING
  return slot < 0 ? refuseOutput(at, slot) : { kind: 'end', source: { kind: 'output', nodeId: at.id, slot } }
}

function refuseOutput(at: Placed, slot: number): never {
  return refuseConversion('broken_link', `a link begins at output ${slot} of node ${at.id}, which has no such output`, {
    nodeId: at.id,
  })
}

function fromInside({ at, slot, type }: OutputStop): Stop {
  const { subgraph } = at.node
  const output = subgraph?.outputs[slot]
  if (subgraph === null || output === undefined) return refuseOutput(at, slot)
  const id = output.linkIds.find((each) => subgraph.links.has(each))
  const link = id === undefined ? undefined : subgraph.links.get(id)
  if (link === undefined) return NOTHING
  // An input that the subgraph hands straight to an output.
  if (link.originId === IO_INPUT) {
    const outer = at.node.inputs[link.originSlot]
    if (outer === undefined) return refuseOutput(at, slot)
    return outer.link === null ? NOTHING : { kind: 'input', at, slot: outer, type }
  }
  const inner = subgraph.nodes.get(link.originId)
  if (inner === undefined) return refuseOutput(at, slot)
  const place = { node: inner, graph: subgraph, host: at, id: `${at.id}:${inner.id}` }
  return { kind: 'output', at: place, slot: link.originSlot, type }
}
