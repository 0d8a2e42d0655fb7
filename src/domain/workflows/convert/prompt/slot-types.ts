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

interface Bypassed {
  readonly slot: number
  /** What the end of the link asks for. */
  readonly type: string
  readonly graph: EditorGraph
}

/** The input in the same place if it fits, else the first of exactly this type, else the first that fits. */
export function bypassInput(node: EditorNode, { slot, type, graph }: Bypassed): Slot | null {
  const { inputs } = node
  if (type === ANY || type === '') return inputs[inputs.length > slot ? slot : 0] ?? null
  const types = inputTypes(node, graph)
  const outputType = typeOfOutput(node, slot, { graph, known: new Map() })
  const isGood = (index: number) => fits(types[index], outputType) && fits(types[index], type)
  if (slot < inputs.length && isGood(slot)) return inputs[slot]
  const exact = types.indexOf(type)
  if (exact !== -1) return inputs[exact]
  const found = types.findIndex((_, index) => isGood(index))
  return found === -1 ? null : inputs[found]
}

interface Looking {
  readonly graph: EditorGraph
  /** The types of outputs that were looked up; one that is being looked up counts as any type. */
  readonly known: Map<string, string>
}

/** Inputs that must agree take the type of the others that are connected. */
function inputTypes(node: EditorNode, graph: EditorGraph): string[] {
  const types = new Map<Slot, string>()
  for (const template of node.matchTypes.values()) {
    const slots = node.inputs.filter(({ name }) => template.has(name))
    const connected = slots.map((slot) => typeOfLink(slot, { graph, known: new Map() }))
    slots.forEach((slot, index) => {
      const others = connected.filter((_, other) => other !== index)
      const common = commonType([...others, template.get(slot.name) ?? ANY])
      if (common !== null) types.set(slot, common)
    })
  }
  return node.inputs.map((slot) => types.get(slot) ?? slot.type)
}

function typeOfOutput(node: EditorNode, slot: number, looking: Looking): string {
  const own = node.outputs[slot]?.type ?? ANY
  const template = node.matchTypes.get(String(node.outputTemplates[slot]))
  if (node.kind !== 'reroute' && template === undefined) return own
  const key = `${slot} ${node.id}`
  const known = looking.known.get(key)
  if (known !== undefined) return known
  looking.known.set(key, ANY)
  const slots = template === undefined ? node.inputs.slice(0, 1) : node.inputs.filter(({ name }) => template.has(name))
  const type = commonType(slots.map((each) => typeOfLink(each, looking))) ?? own
  looking.known.set(key, type)
  return type
}

/** The type of what is connected; anything when nothing is. */
function typeOfLink(slot: Slot, looking: Looking): string {
  const { graph } = looking
  const link = slot.link === null ? undefined : graph.links.get(slot.link)
  if (link === undefined) return ANY
  if (link.originId === IO_INPUT) return 'inputs' in graph ? ioType(graph, link.originSlot) : ANY
  const origin = graph.nodes.get(link.originId)
  return origin === undefined ? ANY : typeOfOutput(origin, link.originSlot, looking)
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
