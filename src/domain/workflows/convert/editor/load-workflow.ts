/**
 * Loads a saved workflow as the editor does: subgraphs first, those without others inside them before the rest, then the
 * workflow itself; then what can only be done when every node is there.
 */
import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import type { JsonValue } from '../../../../../lib/json/lossless-json.ts'
import type { Work } from '../../../../../lib/waiting/turns.ts'
import { createBudget, refuseConversion, type Spend } from '../../graph-refusals.ts'
import {
  IO_INPUT,
  IO_OUTPUT,
  type SavedGraph,
  type SavedIoSlot,
  type SavedNode,
  type SavedSubgraph,
  type SavedWorkflow,
} from '../saved/read-saved.ts'
import { closeGaps } from './build-node.ts'
import { buildFromClass, configureNode, toSlot, withoutForcedInputs } from './configure-node.ts'
import {
  cutLink,
  type EditorGraph,
  type EditorNode,
  findWidget,
  type IoSlot,
  type NodeKind,
  type Slot,
  type Subgraph,
  setWidget,
  VIRTUAL_TITLES,
} from './editor-graph.ts'
import { isDecoration, namedWidgets, startPrimitive } from './foreign-nodes.ts'
import { migrateProxies, promote, putPromotedValues } from './proxy-widgets.ts'

export interface EditorWorkflow {
  readonly root: EditorGraph
  readonly subgraphs: ReadonlyMap<string, Subgraph>
}

// A few subgraphs with many inputs, shown many times, would fill the memory.
const MAX_HOST_SLOTS = 200_000
// Of all parts of a file that are compared with others; real files need thousands.
const MAX_COMPARISONS = 2_000_000
// A few characters of a file stand for a node with all inputs of its class.
const MAX_PARTS = 200_000

interface Loading {
  readonly catalog: NodeCatalog
  readonly subgraphs: ReadonlyMap<string, Subgraph>
  /** Takes the slots of nodes that show subgraphs. */
  readonly spendSlots: Spend
  /** Takes the inputs and widgets of nodes that are made from their class. */
  readonly spendParts: Spend
}

export function* loadWorkflowSteps(saved: SavedWorkflow, catalog: NodeCatalog): Work<EditorWorkflow> {
  const spend = createBudget(MAX_COMPARISONS, 'slots and links that could belong together')
  const subgraphs = new Map(saved.subgraphs.map((each) => [each.id, createSubgraph(each, spend)]))
  const loading: Loading = {
    catalog,
    subgraphs,
    spendSlots: createBudget(MAX_HOST_SLOTS, 'inputs on nodes that show subgraphs'),
    spendParts: createBudget(MAX_PARTS, 'inputs and values of its nodes'),
  }
  for (const each of leafFirst(saved.subgraphs)) yield* fillGraph(subgraphs.get(each.id) as Subgraph, each, loading)
  const root: EditorGraph = { nodes: new Map(), links: new Map(), spend }
  yield* fillGraph(root, saved, loading)
  const graphs = [...subgraphs.values(), root]
  for (const graph of graphs) yield* dropStaleInputs(graph)
  for (const graph of graphs) yield* startPrimitives(graph)
  for (const node of graphs.flatMap((graph) => [...graph.nodes.values()])) {
    mendValues(node)
    closeGaps(node)
    yield
  }
  return { root, subgraphs }
}

function createSubgraph({ id, name, inputs, outputs, links }: SavedSubgraph, spend: Spend): Subgraph {
  const existing = new Set<string>()
  const bySlot = new Map<string, string[]>()
  for (const link of links) {
    existing.add(link.id)
    if (link.originId === IO_INPUT) addTo(bySlot, `in ${link.originSlot}`, link.id)
    if (link.targetId === IO_OUTPUT) addTo(bySlot, `out ${link.targetSlot}`, link.id)
  }
  const toIo = (slot: SavedIoSlot, place: string): IoSlot => {
    const known = [...new Set(slot.linkIds)].filter((each) => existing.has(each))
    // An id of a link that was a duplicate, and is gone, stands for one that leads the same way.
    const linkIds =
      known.length === new Set(slot.linkIds).size ? known : [...new Set([...known, ...(bySlot.get(place) ?? [])])]
    return { name: slot.name, type: slot.type, linkIds }
  }
  return {
    id,
    name,
    inputs: inputs.map((slot, index) => toIo(slot, `in ${index}`)),
    outputs: outputs.map((slot, index) => toIo(slot, `out ${index}`)),
    nodes: new Map(),
    links: new Map(),
    spend,
    hosts: [],
  }
}

function addTo(lists: Map<string, string[]>, key: string, item: string): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [item])
  else list.push(item)
}

/** A subgraph that is shown inside of another comes before it; those in a circle come as they stand. */
function leafFirst(subgraphs: readonly SavedSubgraph[]): SavedSubgraph[] {
  const byId = new Map(subgraphs.map((each) => [each.id, each]))
  const sorted = new Set<SavedSubgraph>()
  const entered = new Set<SavedSubgraph>()
  // An explicit stack: how deep subgraphs lie in each other is up to the file.
  for (const start of subgraphs) {
    const stack = [start]
    while (stack.length > 0) {
      const current = stack[stack.length - 1]
      const inner = entered.has(current) ? [] : current.nodes.flatMap(({ type }) => byId.get(type) ?? [])
      entered.add(current)
      const waiting = inner.filter((each) => !entered.has(each))
      if (waiting.length > 0) stack.push(...waiting)
      else {
        sorted.add(current)
        stack.pop()
      }
    }
  }
  return [...sorted]
}

function* fillGraph(graph: EditorGraph, saved: SavedGraph, loading: Loading): Work<void> {
  for (const link of saved.links) graph.links.set(link.id, link)
  for (const each of saved.nodes) {
    if (graph.nodes.has(each.id)) {
      refuseConversion('malformed_file', `two nodes have the id ${each.id}`, { nodeId: each.id })
    }
    const node = createNode(each, graph, loading)
    loading.spendParts(node.inputs.length + node.widgets.length)
    graph.nodes.set(each.id, node)
    yield
  }
  for (const each of saved.nodes) {
    const node = graph.nodes.get(each.id) as EditorNode
    if (node.subgraph !== null) {
      loading.spendSlots(node.subgraph.inputs.length)
      configureHost(node, each)
    } else if (node.kind !== 'class') configureVirtual(node, each)
    else {
      const definition = loading.catalog.find(node.type)
      configureNode(node, definition === null ? each : withoutForcedInputs(each, node, definition), graph)
    }
    yield
  }
  for (const each of saved.nodes) {
    const node = graph.nodes.get(each.id) as EditorNode
    if (node.subgraph !== null && each.properties['proxyWidgets'] !== undefined) {
      migrateProxies(node, each, loading.spendSlots)
    }
  }
}

const VIRTUAL_KINDS: ReadonlyMap<string, NodeKind> = new Map([
  ['Note', 'note'],
  ['MarkdownNote', 'note'],
  ['Reroute', 'reroute'],
  ['PrimitiveNode', 'primitive'],
])

function createNode(
  saved: SavedNode,
  graph: EditorGraph,
  { catalog, subgraphs }: Pick<Loading, 'catalog' | 'subgraphs'>,
): EditorNode {
  const { id, type, mode, properties } = saved
  const virtual = VIRTUAL_KINDS.get(type) ?? (isDecoration(type) ? 'note' : undefined)
  const subgraph = virtual === undefined ? (subgraphs.get(type) ?? null) : null
  const definition = virtual === undefined && subgraph === null ? catalog.find(type) : null
  const kind = virtual ?? (subgraph !== null ? 'subgraph' : definition !== null ? 'class' : 'unknown')
  const title = saved.title || (subgraph?.name ?? VIRTUAL_TITLES.get(type) ?? '')
  const node: EditorNode = {
    id,
    type,
    kind,
    mode,
    properties,
    title,
    inputs: [],
    outputs: [],
    widgets: [],
    autogrow: null,
    matchTypes: null,
    matchPlaces: [],
    outputTemplates: [],
    subgraph,
    savedValue: Array.isArray(saved.values) ? saved.values[0] : undefined,
  }
  if (definition !== null) buildFromClass(node, definition, graph)
  return node
}

function configureVirtual(node: EditorNode, saved: SavedNode): void {
  node.inputs = saved.inputs.map(toSlot)
  node.outputs = saved.outputs
  if (node.kind === 'primitive') node.targetLinks = new Set(saved.outputs[0]?.links)
  if (node.kind === 'unknown') {
    const widgets = namedWidgets(saved)
    if (widgets !== null) node.widgets = widgets
    node.isUnreadable = widgets === null
  }
  if (node.kind !== 'note') return
  const text = Array.isArray(saved.values) ? saved.values[0] : saved.namedValues?.['text']
  node.widgets = [{ name: 'text', kind: 'customtext', value: text ?? '', isSaved: true, isSent: true }]
}

function configureHost(host: EditorNode, saved: SavedNode): void {
  const subgraph = host.subgraph as Subgraph
  const byName = new Map(saved.inputs.map((input) => [input.name, input]))
  host.inputs = subgraph.inputs.map((io) => {
    const link = byName.get(io.name)?.link ?? null
    return { name: io.name, type: io.type, link, widget: io.name, io }
  })
  host.outputs = subgraph.outputs
  subgraph.hosts.push(host)
  for (const slot of host.inputs) promote(subgraph, slot)
  putPromotedValues(host, saved)
}

/**
 * An input of the file whose widget the class does not have any more is dropped. The editor steps over the input behind each one
 * that it drops, so of several in a row every second stays.
 */
function* dropStaleInputs(graph: EditorGraph): Work<void> {
  for (const node of graph.nodes.values()) {
    yield
    if (node.kind !== 'class' || node.inputs.length === 0) continue
    graph.spend(node.inputs.length)
    const isStale = createStaleCheck(node)
    if (!node.inputs.some(isStale)) continue
    const kept: Slot[] = []
    for (let index = 0; index < node.inputs.length; index++) {
      const slot = node.inputs[index]
      if (!isStale(slot)) kept.push(slot)
      else {
        cutLink(graph, slot)
        index++
        if (index < node.inputs.length) kept.push(node.inputs[index])
      }
    }
    node.inputs = kept
  }
}

// Up to here looking through a list is quicker than making a set.
const FEW = 32

function createStaleCheck({ widgets }: EditorNode): (slot: Slot) => boolean {
  if (widgets.length <= FEW) return ({ widget }) => widget !== null && !widgets.some(({ name }) => name === widget)
  const names = new Set(widgets.map(({ name }) => name))
  return ({ widget }) => widget !== null && !names.has(widget)
}

function* startPrimitives(graph: EditorGraph): Work<void> {
  for (const node of graph.nodes.values()) {
    if (node.kind === 'primitive') startPrimitive(node, graph)
    yield
  }
}

/** What the editor mends in the values of old files. */
function mendValues(node: EditorNode): void {
  if (node.type === 'KSampler' || node.type === 'KSamplerAdvanced') {
    const sampler = findWidget(node, 'sampler_name')
    if (typeof sampler?.value === 'string' && sampler.value.startsWith('sample_')) {
      setWidget(sampler, sampler.value.slice('sample_'.length))
    }
  }
  const shown = node.subgraph === null ? node.widgets : node.inputs.flatMap(({ promoted }) => promoted ?? [])
  for (const widget of [...shown]) {
    const choices: readonly JsonValue[] = widget.kind === 'combo' ? (widget.choices?.() ?? []) : []
    if (choices.length > 0 && (widget.value === null || widget.value === undefined)) setWidget(widget, choices[0])
  }
}

/** How many values a node of a class saves; null when no engine has the class. */
export function countValues(catalog: NodeCatalog, type: string, converted: ReadonlySet<string>): number | null {
  if (VIRTUAL_KINDS.has(type)) return type === 'Reroute' ? 0 : null
  if (catalog.find(type) === null) return null
  const saved = {
    id: '',
    type,
    title: '',
    mode: 0,
    inputs: [],
    outputs: [],
    values: null,
    namedValues: null,
    properties: {},
  }
  const graph = { nodes: new Map(), links: new Map(), spend: () => {} }
  const node = createNode(saved, graph, { catalog, subgraphs: new Map() })
  return node.widgets.filter(({ name, isSaved }) => isSaved && !converted.has(name)).length
}
