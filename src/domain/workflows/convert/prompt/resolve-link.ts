/**
 * Follows a link of the editor back to the output that it stands for in the prompt: out of and into subgraphs, through Reroute
 * nodes, and past bypassed nodes, whose outputs are taken from an input of a matching type. The way may end at nothing (a muted
 * node, a bypassed one without such an input) or at the value of a promoted widget.
 */
import { createBudget, refuseConversion, type Spend } from '../../graph-refusals.ts'
import type { EditorGraph, EditorNode, Slot, Widget } from '../editor/editor-graph.ts'
import { IO_INPUT, MODE } from '../saved/read-saved.ts'

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

const ANY = '*'

/** Types are lists with commas; one that both have is enough. Case does not matter. */
interface TypeList {
  readonly text: string
  readonly isAny: boolean
  /** null: not read yet. Most types are compared as texts only. */
  words: ReadonlySet<string> | null
}

function toTypeList(text: string): TypeList {
  return { text, isAny: text === ANY || text === '', words: null }
}

function wordsOf(list: TypeList): ReadonlySet<string> {
  list.words ??= new Set(list.text.toLowerCase().split(','))
  return list.words
}

function fits(one: TypeList, other: TypeList): boolean {
  if (one.isAny || other.isAny || one.text === other.text) return true
  const others = wordsOf(other)
  if (others.has(ANY)) return true
  for (const word of wordsOf(one)) if (word === ANY || word === '' || others.has(word)) return true
  return false
}

/** What was looked up for one workflow. An output that is being looked up counts as any type. */
interface KnownTypes {
  readonly outputs: Map<EditorGraph, Map<string, string>>
  /** Of the inputs of bypassed nodes. */
  readonly inputs: Map<EditorNode, readonly TypeList[]>
  /** Takes how many types were compared. */
  readonly spend: Spend
}

/** The types of slots, as far as bypassed nodes need them: which of their inputs takes the place of an output. */
function createKnownTypes(spend: Spend): KnownTypes {
  return { outputs: new Map(), inputs: new Map(), spend }
}

interface Bypassed {
  readonly slot: number
  /** What the end of the link asks for. */
  readonly type: string
  readonly graph: EditorGraph
  readonly types: KnownTypes
}

/** The input in the same place if it fits, else the first of exactly this type, else the first that fits. */
function bypassInput(node: EditorNode, { slot, type, graph, types: known }: Bypassed): Slot | null {
  const { inputs } = node
  if (type === ANY || type === '') return inputs[inputs.length > slot ? slot : 0] ?? null
  const looking = { graph, known: outputsOf(graph, known), spend: known.spend }
  const types = known.inputs.get(node) ?? inputTypes(node, looking)
  known.inputs.set(node, types)
  const given = toTypeList(typeOfOutput({ node, slot }, looking))
  const wanted = toTypeList(type)
  const isGood = (list: TypeList) => {
    known.spend(1 + (list.words?.size ?? 0))
    return fits(list, given) && fits(list, wanted)
  }
  if (slot < inputs.length && isGood(types[slot])) return inputs[slot]
  const exact = types.findIndex(({ text }) => text === type)
  if (exact !== -1) return inputs[exact]
  const found = types.findIndex(isGood)
  return found === -1 ? null : inputs[found]
}

function outputsOf(graph: EditorGraph, { outputs }: KnownTypes): Map<string, string> {
  const known = outputs.get(graph) ?? new Map<string, string>()
  outputs.set(graph, known)
  return known
}

interface Looking {
  readonly graph: EditorGraph
  readonly known: Map<string, string>
  readonly spend: Spend
}

interface Output {
  readonly node: EditorNode
  readonly slot: number
}

const keyOf = ({ node, slot }: Output) => `${slot} ${node.id}`

/** Inputs that must agree take the type of the others that are connected. */
function inputTypes(node: EditorNode, looking: Looking): readonly TypeList[] {
  const types = new Map<Slot, string>()
  for (const template of node.matchTypes?.values() ?? []) {
    const slots = node.inputs.filter(({ name }) => template.has(name))
    const connected = slots.map((slot) => typeOfLink(slot, looking.graph, (origin) => typeOfOutput(origin, looking)))
    slots.forEach((slot, index) => {
      const others = connected.filter((_, other) => other !== index)
      const common = commonType([...others, template.get(slot.name) ?? ANY], looking.spend)
      if (common !== null) types.set(slot, common)
    })
  }
  return node.inputs.map((slot) => toTypeList(types.get(slot) ?? slot.type))
}

/** With a list of what is to be looked up first: a chain may be as long as the file. */
function typeOfOutput(start: Output, { graph, known, spend }: Looking): string {
  const waiting = known.has(keyOf(start)) ? [] : [start]
  for (let output = waiting.at(-1); output !== undefined; output = waiting.at(-1)) {
    const key = keyOf(output)
    const isNew = !known.has(key)
    if (isNew) known.set(key, ANY)
    const slots = followedInputs(output, spend)
    const origins = isNew ? (slots ?? []).flatMap((slot) => originOf(slot, graph) ?? []) : []
    const unknown = origins.filter((origin) => !known.has(keyOf(origin)))
    if (unknown.length > 0) {
      waiting.push(...unknown.reverse())
      continue
    }
    waiting.pop()
    const own = output.node.outputs[output.slot]?.type ?? ANY
    const types = slots?.map((slot) => typeOfLink(slot, graph, (origin) => known.get(keyOf(origin)) ?? ANY))
    known.set(key, types === undefined ? own : (commonType(types, spend) ?? own))
  }
  return known.get(keyOf(start)) ?? ANY
}

/** The inputs that give an output its type; undefined when it has one of its own. */
function followedInputs({ node, slot }: Output, spend: Spend): Slot[] | undefined {
  const template = node.matchTypes?.get(String(node.outputTemplates[slot]))
  if (template !== undefined) {
    spend(node.inputs.length)
    return node.inputs.filter(({ name }) => template.has(name))
  }
  return node.kind === 'reroute' ? node.inputs.slice(0, 1) : undefined
}

function originOf(slot: Slot, graph: EditorGraph): Output | undefined {
  const link = slot.link === null ? undefined : graph.links.get(slot.link)
  const node = link === undefined ? undefined : graph.nodes.get(link.originId)
  return link === undefined || node === undefined ? undefined : { node, slot: link.originSlot }
}

/** The type of what is connected; anything when nothing is. */
function typeOfLink(slot: Slot, graph: EditorGraph, typeOf: (origin: Output) => string): string {
  const link = slot.link === null ? undefined : graph.links.get(slot.link)
  if (link?.originId === IO_INPUT) return 'inputs' in graph ? ioType(graph, link.originSlot) : ANY
  const origin = originOf(slot, graph)
  return origin === undefined ? ANY : typeOf(origin)
}

function ioType(graph: EditorGraph, slot: number): string {
  const { inputs } = graph as EditorGraph & { readonly inputs: readonly { readonly type: string }[] }
  return inputs[slot]?.type ?? ANY
}

function commonType(types: readonly string[], spend: Spend): string | null {
  const [first, ...others] = new Set(types.filter((type) => type !== ANY))
  if (first === undefined) return ANY
  spend(types.length)
  if (others.length === 0) return [...new Set(first.split(','))].join(',')
  const lists = others.map((type) => new Set(type.split(',')))
  spend(lists.reduce((sum, list) => sum + list.size, 0))
  const common = [...new Set(first.split(','))].filter((type) => lists.every((list) => list.has(type)))
  return common.length === 0 ? null : common.join(',')
}
