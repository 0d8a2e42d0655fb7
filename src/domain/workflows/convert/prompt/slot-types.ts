/** The types of slots, as far as bypassed nodes need them: which of their inputs takes the place of an output. */
import type { Spend } from '../budget.ts'
import type { EditorGraph, EditorNode, Slot } from '../editor/editor-graph.ts'
import { IO_INPUT } from '../saved/saved-workflow.ts'

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
export interface KnownTypes {
  readonly outputs: Map<EditorGraph, Map<string, string>>
  /** Of the inputs of bypassed nodes. */
  readonly inputs: Map<EditorNode, readonly TypeList[]>
  /** Takes how many types were compared. */
  readonly spend: Spend
}

export function createKnownTypes(spend: Spend): KnownTypes {
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
export function bypassInput(node: EditorNode, { slot, type, graph, types: known }: Bypassed): Slot | null {
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
