/** The types of slots, as far as bypassed nodes need them: which of their inputs takes the place of an output. */
import type { EditorGraph, EditorNode, Slot } from '../editor/editor-graph.ts'
import { IO_INPUT } from '../saved/saved-workflow.ts'

const ANY = '*'

/** Types are lists with commas; one that both have is enough. Case does not matter. */
function fits(one: string, other: string): boolean {
  if (one === ANY || other === ANY || one === '' || other === '' || one === other) return true
  const others = other.toLowerCase().split(',')
  return one
    .toLowerCase()
    .split(',')
    .some((each) => each === ANY || each === '' || others.includes(each) || others.includes(ANY))
}

/** The types of outputs that were looked up, by graph; one that is being looked up counts as any type. */
export type KnownTypes = Map<EditorGraph, Map<string, string>>

interface Bypassed {
  readonly slot: number
  /** What the end of the link asks for. */
  readonly type: string
  readonly graph: EditorGraph
  readonly types: KnownTypes
}

/** The input in the same place if it fits, else the first of exactly this type, else the first that fits. */
export function bypassInput(node: EditorNode, { slot, type, graph, types: byGraph }: Bypassed): Slot | null {
  const { inputs } = node
  if (type === ANY || type === '') return inputs[inputs.length > slot ? slot : 0] ?? null
  const known = byGraph.get(graph) ?? new Map<string, string>()
  byGraph.set(graph, known)
  const looking = { graph, known }
  const types = inputTypes(node, looking)
  const outputType = typeOfOutput({ node, slot }, looking)
  const isGood = (index: number) => fits(types[index], outputType) && fits(types[index], type)
  if (slot < inputs.length && isGood(slot)) return inputs[slot]
  const exact = types.indexOf(type)
  if (exact !== -1) return inputs[exact]
  const found = types.findIndex((_, index) => isGood(index))
  return found === -1 ? null : inputs[found]
}

interface Looking {
  readonly graph: EditorGraph
  readonly known: Map<string, string>
}

interface Output {
  readonly node: EditorNode
  readonly slot: number
}

const keyOf = ({ node, slot }: Output) => `${slot} ${node.id}`

/** Inputs that must agree take the type of the others that are connected. */
function inputTypes(node: EditorNode, looking: Looking): string[] {
  const types = new Map<Slot, string>()
  for (const template of node.matchTypes.values()) {
    const slots = node.inputs.filter(({ name }) => template.has(name))
    const connected = slots.map((slot) => typeOfLink(slot, looking.graph, (origin) => typeOfOutput(origin, looking)))
    slots.forEach((slot, index) => {
      const others = connected.filter((_, other) => other !== index)
      const common = commonType([...others, template.get(slot.name) ?? ANY])
      if (common !== null) types.set(slot, common)
    })
  }
  return node.inputs.map((slot) => types.get(slot) ?? slot.type)
}

/** With a list of what is to be looked up first: a chain may be as long as the file. */
function typeOfOutput(start: Output, { graph, known }: Looking): string {
  const waiting = known.has(keyOf(start)) ? [] : [start]
  for (let output = waiting.at(-1); output !== undefined; output = waiting.at(-1)) {
    const key = keyOf(output)
    const isNew = !known.has(key)
    if (isNew) known.set(key, ANY)
    const slots = followedInputs(output)
    const origins = isNew ? (slots ?? []).flatMap((slot) => originOf(slot, graph) ?? []) : []
    const unknown = origins.filter((origin) => !known.has(keyOf(origin)))
    if (unknown.length > 0) {
      waiting.push(...unknown.reverse())
      continue
    }
    waiting.pop()
    const own = output.node.outputs[output.slot]?.type ?? ANY
    const types = slots?.map((slot) => typeOfLink(slot, graph, (origin) => known.get(keyOf(origin)) ?? ANY))
    known.set(key, types === undefined ? own : (commonType(types) ?? own))
  }
  return known.get(keyOf(start)) ?? ANY
}

/** The inputs that give an output its type; undefined when it has one of its own. */
function followedInputs({ node, slot }: Output): Slot[] | undefined {
  const template = node.matchTypes.get(String(node.outputTemplates[slot]))
  if (template !== undefined) return node.inputs.filter(({ name }) => template.has(name))
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

function commonType(types: readonly string[]): string | null {
  const lists = types.filter((type) => type !== ANY).map((type) => type.split(','))
  if (lists.length === 0) return ANY
  const common = [...new Set(lists[0])].filter((type) => lists.every((list) => list.includes(type)))
  return common.length === 0 ? null : common.join(',')
}
