/**
 * Files of older editors list the widgets that a node with a subgraph shows in `properties.proxyWidgets`, with values in that
 * order. The editor gives the subgraph an input for each of them when it loads such a file, and so does this.
 */
import { isJsonObject, type JsonValue, parseLosslessJson } from '../../../../../lib/json/lossless-json.ts'
import type { Spend } from '../../graph-refusals.ts'
import { IO_INPUT, type SavedNode } from '../saved/read-saved.ts'
import {
  cutLink,
  type EditorNode,
  findWidget,
  type IoSlot,
  type Slot,
  type Subgraph,
  setWidget,
  type Widget,
  widgetOf,
} from './editor-graph.ts'

interface ProxyEntry {
  readonly nodeId: string
  readonly name: string
  /** The name as the file has it. */
  readonly written: string
  /** Which of several inner nodes is meant, for a widget that is shown through several levels. */
  readonly innerId: string | null
  /** undefined: the file has no value for it. */
  readonly value: JsonValue | undefined
}

const MAX_ENTRIES = 1_000

/** Turns the old list into inputs of the subgraph, and puts its values in. `spendSlots` takes the inputs that nodes get. */
export function migrateProxies(host: EditorNode, saved: SavedNode, spendSlots: Spend): void {
  const { subgraph } = host
  const entries = readProxies(saved, host)
  if (subgraph === null || entries.length === 0) return
  const left: ProxyEntry[] = []
  const primitives = new Map<EditorNode, ProxyEntry[]>()
  // Classified first, all of them: what one entry adds must not change what another means.
  const linked = linkedInputs(host, subgraph)
  const plans = entries.map((entry) => [entry, classify(host, entry, { subgraph, linked })] as const)
  for (const [entry, plan] of plans) {
    if (plan.kind === 'primitive') {
      const cohort = primitives.get(plan.node)
      if (cohort === undefined) primitives.set(plan.node, [entry])
      else cohort.push(entry)
    } else if (plan.kind === 'linked') {
      if (!putByName(host, plan.input, entry.value)) left.push(entry)
    } else if (plan.kind === 'new') addInputFor(host, { subgraph, spendSlots }, { ...plan, value: entry.value })
    else if (plan.kind === 'none') left.push(entry)
  }
  for (const [node, cohort] of primitives) bypassPrimitive(host, { subgraph, spendSlots }, { node, cohort })
  for (const { nodeId, written, value } of left) {
    subgraph.spend(host.inputs.length)
    const widget = host.inputs.find(({ name }) => name === written)?.promoted
    if (nodeId === '-1' && value !== undefined && widget !== undefined) setWidget(widget, value)
  }
}

function readProxies(saved: SavedNode, host: EditorNode): ProxyEntry[] {
  const written = saved.properties['proxyWidgets']
  const list = typeof written === 'string' ? parseList(written) : written
  if (!Array.isArray(list)) return []
  const isEntry = (entry: JsonValue): entry is string[] =>
    Array.isArray(entry) &&
    (entry.length === 2 || entry.length === 3) &&
    entry.every((part) => typeof part === 'string')
  // One wrong entry spoils the list, as it does in the editor.
  if (list.length > MAX_ENTRIES || !list.every(isEntry)) return []
  return list.map(([nodeId, name, innerId], index): ProxyEntry => {
    const value = Array.isArray(saved.values) ? saved.values[index] : undefined
    const base = { nodeId, written: name, value: value === null ? undefined : value }
    if (canShow(host.subgraph, nodeId, name)) return { ...base, name, innerId: innerId ?? null }
    const stripped = stripPrefixes(name)
    return { ...base, name: stripped.name, innerId: stripped.innerId ?? innerId ?? null }
  })
}

function parseList(text: string): JsonValue {
  try {
    return parseLosslessJson(text)
  } catch {
    return null
  }
}

const MAX_CHAIN = 100

/** Whether the name leads, through however many subgraphs, to a widget. */
function canShow(subgraph: Subgraph | null, nodeId: string, name: string): boolean {
  let current = { subgraph, nodeId, name }
  for (let depth = 0; depth < MAX_CHAIN && current.subgraph !== null; depth++) {
    const node: EditorNode | undefined = current.subgraph.nodes.get(current.nodeId)
    if (node === undefined) return false
    current.subgraph.spend(node.widgets.length + (node.subgraph?.inputs.length ?? 0))
    if (node.subgraph === null) return node.widgets.some((widget) => widget.name === current.name)
    const inner = sourceOf(
      node.subgraph,
      node.subgraph.inputs.find((io) => io.name === current.name),
    )
    if (inner === null) return false
    current = { subgraph: node.subgraph, nodeId: inner.node.id, name: inner.name }
  }
  return false
}

/** The first widget, or input of an inner subgraph, that an input of the subgraph leads to. */
function sourceOf(subgraph: Subgraph, io: IoSlot | undefined): { node: EditorNode; name: string } | null {
  if (io === undefined) return null
  for (const { node, slot, widget } of targetsOf(subgraph, io)) {
    if (node.subgraph !== null) return { node, name: slot.name }
    if (widget !== undefined) return { node, name: widget.name }
  }
  return null
}

type Plan =
  | { readonly kind: 'linked'; readonly input: string }
  | { readonly kind: 'new'; readonly node: EditorNode; readonly widget: Widget }
  | { readonly kind: 'primitive'; readonly node: EditorNode }
  | { readonly kind: 'preview' }
  | { readonly kind: 'none' }

const keyOf = (nodeId: string, name: string) => `${nodeId}\0${name}`

/** The inputs of the host by the widget that they lead to; of several the first. */
function linkedInputs(host: EditorNode, subgraph: Subgraph): ReadonlyMap<string, string> {
  const linked = new Map<string, string>()
  for (const { name, io } of host.inputs) {
    const source = sourceOf(subgraph, io)
    const key = source === null ? null : keyOf(source.node.id, source.name)
    if (key !== null && !linked.has(key)) linked.set(key, name)
  }
  return linked
}

interface Classifying {
  readonly subgraph: Subgraph
  readonly linked: ReadonlyMap<string, string>
}

function classify(host: EditorNode, { nodeId, name, innerId }: ProxyEntry, { subgraph, linked }: Classifying): Plan {
  const input = linked.get(keyOf(nodeId, name))
  if (input !== undefined) return { kind: 'linked', input }
  const node = subgraph.nodes.get(nodeId)
  if (node === undefined) return { kind: 'none' }
  if (node.kind === 'primitive') return classifyPrimitive(host, subgraph, node)
  if (name.startsWith('$$')) return { kind: 'preview' }
  const widget = findSource(node, name, innerId)
  if (widget === undefined) return { kind: 'none' }
  return isPreview(widget) ? { kind: 'preview' } : { kind: 'new', node, widget }
}

function classifyPrimitive(host: EditorNode, subgraph: Subgraph, node: EditorNode): Plan {
  const passed = node.properties['proxyBypassedToSubgraphInput']
  const links = [...(node.targetLinks ?? [])]
  subgraph.spend(host.inputs.length + links.length)
  if (typeof passed === 'string' && host.inputs.some(({ name }) => name === passed)) {
    return { kind: 'linked', input: passed }
  }
  const hasTarget = links.some((id) => subgraph.links.has(id))
  return hasTarget ? { kind: 'primitive', node } : { kind: 'none' }
}

const PREVIEWS: ReadonlySet<string> = new Set(['preview', 'video', 'audioUI'])
const isPreview = ({ kind, isSaved, isSent }: Widget) => (!isSaved || !isSent) && PREVIEWS.has(kind)

function findSource(node: EditorNode, name: string, innerId: string | null): Widget | undefined {
  const { subgraph } = node
  if (subgraph === null) return findWidget(node, name)
  subgraph.spend(node.inputs.length)
  const slot = node.inputs.find((input) => {
    const source = sourceOf(subgraph, input.io)
    if (innerId !== null) return source?.name === name && source.node.id === innerId
    return input.name === name || source?.name === name
  })
  return slot?.promoted ?? findWidget(node, name)
}

function putByName(host: EditorNode, input: string, value: JsonValue | undefined): boolean {
  host.subgraph?.spend(host.inputs.length)
  const slots = host.inputs.filter(({ name }) => name === input)
  const widget = slots.length === 1 ? slots[0].promoted : undefined
  if (widget !== undefined && value !== undefined) setWidget(widget, value)
  return widget !== undefined
}

interface NewInput {
  readonly node: EditorNode
  readonly widget: Widget
  readonly value: JsonValue | undefined
}

interface Adding {
  readonly subgraph: Subgraph
  readonly spendSlots: Spend
}

function addInputFor(host: EditorNode, adding: Adding, { node, widget, value }: NewInput): void {
  adding.subgraph.spend(node.inputs.length)
  const slot = node.inputs.find(
    (input) => input.promoted === widget || (input.widget !== null && input.widget === widget.name),
  )
  if (slot === undefined) return
  const { io, shown } = addIoInput(adding, widget.name, slot.type)
  connect(adding.subgraph, io, { node, slot })
  for (const each of shown) promote(adding.subgraph, each)
  putByName(host, io.name, value)
}

/** `shown`: the slot that each node has for it. */
function addIoInput({ subgraph, spendSlots }: Adding, baseName: string, type: string): { io: IoSlot; shown: Slot[] } {
  spendSlots(subgraph.hosts.length)
  subgraph.spend(2 * subgraph.inputs.length)
  const taken = new Set(subgraph.inputs.map((input) => input.name))
  let name = baseName
  for (let count = 1; taken.has(name); count++) name = `${baseName}_${count}`
  const io: IoSlot = { name, type, linkIds: [] }
  subgraph.inputs.push(io)
  const shown = subgraph.hosts.map((host) => {
    const slot: Slot = { name, type, link: null, widget: name, io }
    host.inputs.push(slot)
    return slot
  })
  return { io, shown }
}

function connect(subgraph: Subgraph, io: IoSlot, { node, slot }: { node: EditorNode; slot: Slot }): void {
  const old = slot.link
  cutLink(subgraph, slot)
  subgraph.spend(subgraph.inputs.length + node.inputs.length)
  for (const other of subgraph.inputs) {
    subgraph.spend(other.linkIds.length)
    const index = old === null ? -1 : other.linkIds.indexOf(old)
    if (index !== -1) other.linkIds.splice(index, 1)
  }
  const id = `new-${subgraph.links.size}-${subgraph.inputs.length}-${io.linkIds.length}`
  const originSlot = subgraph.inputs.indexOf(io)
  subgraph.links.set(id, {
    id,
    originId: IO_INPUT,
    originSlot,
    targetId: node.id,
    targetSlot: node.inputs.indexOf(slot),
  })
  io.linkIds.push(id)
  slot.link = id
}

interface Bypass {
  readonly node: EditorNode
  readonly cohort: readonly ProxyEntry[]
}

/** A Primitive node that was shown outside gives its place to an input of the subgraph. */
function bypassPrimitive(host: EditorNode, adding: Adding, { node, cohort }: Bypass): void {
  const { subgraph } = adding
  const type = node.outputs[0]?.type ?? '*'
  const links = [...(node.targetLinks ?? [])].map((id) => subgraph.links.get(id))
  const targets = links.map((link) => {
    const target = link === undefined ? undefined : subgraph.nodes.get(link.targetId)
    subgraph.spend(target?.inputs.length ?? 0)
    const slot = target?.inputs.find((input) => input.link === link?.id)
    return target === undefined || slot === undefined ? null : { node: target, slot }
  })
  const fits = (other: string) => other === type || other === '*' || type === '*'
  if (cohort.some(({ name }) => name !== cohort[0].name)) return
  if (targets.some((target) => target === null || !fits(target.slot.type))) return
  const { io, shown } = addIoInput(
    adding,
    node.title !== 'Primitive' && node.title !== '' ? node.title : cohort[0].name,
    type,
  )
  for (const target of targets) if (target !== null) connect(subgraph, io, target)
  node.targetLinks?.clear()
  node.shownAs = io
  for (const each of shown) promote(subgraph, each)
  putByName(host, io.name, cohort.find(({ value }) => value !== undefined)?.value)
}

/** The names of shown widgets in files of older editors: `12: 7: seed` is the widget `seed` of node 7, which node 12 shows. */

// Longer ones are no names of widgets.
const MAX_NAME = 1_000

/** Read from one place on, and never gives back what it took: a name may be made to be hard to read. */
const PREFIX = /\s*(\d+)\s*:\s*/y

const BREAKS = ['\n', '\r', '\u2028', '\u2029']

/** The name without the ids before it, and the last of these. A name has one line, and at least one character. */
function stripPrefixes(name: string): { readonly name: string; readonly innerId: string | null } {
  if (name.length > MAX_NAME) return { name, innerId: null }
  const lastBreak = Math.max(...BREAKS.map((each) => name.lastIndexOf(each)))
  let at = 0
  let innerId: string | null = null
  for (;;) {
    PREFIX.lastIndex = at
    const match = PREFIX.exec(name)
    if (match === null) break
    const after = at + match[0].length
    const end = after === name.length && !match[0].endsWith(':') ? after - 1 : after
    if (end === name.length || end <= lastBreak) break
    innerId = match[1]
    at = end
  }
  return { name: name.slice(at), innerId }
}

/**
 * Promoted widgets: a node that shows a subgraph has, for each input of the subgraph that leads to a widget, a widget with a
 * value of its own.
 */
interface Target {
  readonly node: EditorNode
  readonly slot: Slot
  readonly widget: Widget | undefined
}

/** Where the links of a subgraph's input lead. */
function* targetsOf(subgraph: Subgraph, io: IoSlot): Generator<Target> {
  for (const id of io.linkIds) {
    const link = subgraph.links.get(id)
    const node = link === undefined ? undefined : subgraph.nodes.get(link.targetId)
    subgraph.spend(1 + (node === undefined ? 0 : node.inputs.length + node.widgets.length))
    const slot = node?.inputs.find((input) => input.link === id)
    if (node !== undefined && slot !== undefined) yield { node, slot, widget: widgetOf(node, slot) }
  }
}

/** Found once for all nodes that show the subgraph; anew when the input has got further links. */
const found = new WeakMap<IoSlot, { readonly links: number; readonly widget: Widget | null }>()

function findTarget(subgraph: Subgraph, io: IoSlot): Widget | null {
  const known = found.get(io)
  if (known?.links === io.linkIds.length) return known.widget
  let widget: Widget | null = null
  for (const target of targetsOf(subgraph, io)) {
    widget = target.widget ?? null
    if (widget !== null) break
  }
  found.set(io, { links: io.linkIds.length, widget })
  return widget
}

/** Gives the slot a widget, if the input leads to one. */
export function promote(subgraph: Subgraph, slot: Slot): void {
  const widget = slot.io === undefined ? null : findTarget(subgraph, slot.io)
  if (widget !== null && slot.io !== undefined) slot.promoted = showWidget(widget, slot.io.name)
}

function showWidget({ kind, value, choices, input }: Widget, name: string): Widget {
  return { name, kind, value, isSaved: true, isSent: true, ...(choices && { choices }), ...(input && { input }) }
}

/** The values of the file, in the order of the inputs that have a widget. */
export function putPromotedValues(host: EditorNode, { values, namedValues }: SavedNode): void {
  const promoted = host.inputs.flatMap(({ promoted: widget }) => (widget === undefined ? [] : [widget]))
  const quarantined = readQuarantine(host)
  promoted.forEach((widget, index) => {
    const isNamed = namedValues !== null && values === null && Object.hasOwn(namedValues, widget.name)
    const named = isNamed ? namedValues[widget.name] : undefined
    const value = quarantined.get(widget.name) ?? (Array.isArray(values) ? values[index] : named)
    if (value !== undefined) setWidget(widget, value)
  })
}

/** Values that the editor could not place when it turned a file into the present form, and keeps by the name of the input. */
function readQuarantine(host: EditorNode): Map<string, JsonValue> {
  const found = new Map<string, JsonValue>()
  const entries = host.properties['proxyWidgetErrorQuarantine']
  for (const entry of Array.isArray(entries) ? entries.toReversed() : []) {
    const { originalEntry: original, hostValue: value } = isJsonObject(entry) ? entry : {}
    if (!Array.isArray(original) || original[0] !== '-1' || typeof original[1] !== 'string') continue
    if (value !== undefined && value !== null) found.set(original[1], value)
  }
  return found
}
