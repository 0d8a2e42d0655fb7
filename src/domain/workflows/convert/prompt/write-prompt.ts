/**
 * Makes the prompt of a loaded workflow: every node that is neither muted, bypassed nor a helper of the editor, with the values
 * of its widgets, then its links, which come before values of the same name.
 */
import { explainAbsent } from '../../../../../engine/graph/absent-classes.ts'
import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import { isJsonObject, type JsonObject, type JsonValue, NumberText } from '../../../../../lib/json/lossless-json.ts'
import type { Work } from '../../../../../lib/waiting/turns.ts'
import { createBudget, refuseConversion, type Spend } from '../../graph-refusals.ts'
import type { EditorGraph, EditorNode, Widget } from '../editor/editor-graph.ts'
import { applyPrimitive, needsPage, refuseForPage, refuseUnknown } from '../editor/foreign-nodes.ts'
import type { EditorWorkflow } from '../editor/load-workflow.ts'
import { MODE } from '../saved/read-saved.ts'
import { createResolveInput, type Placed } from './resolve-link.ts'
import { createReplaceText, isFileName, type ReplaceText, resolveWildcards } from './text-replacements.ts'

/** Something in the prompt that may not be what the editor's page would have sent. */
export interface ConvertWarning {
  readonly nodeId: string
  /** null: the node as a whole. */
  readonly input: string | null
  readonly message: string
}

export interface WriteOptions {
  /** For dates in the names of files. */
  readonly now: Date
  /** As Math.random: which of several alternatives in a text is taken. */
  readonly random: () => number
  /** The classes of the engines. */
  readonly catalog: NodeCatalog
  /** Filled with where each value comes from, for those who ask. */
  readonly origins?: PromptOrigins
}

/** Which widget of the editor each value of a prompt comes from. */
export interface PromptOrigins {
  /** By the node's id in the prompt, then by the name of the input. */
  readonly widgets: Map<string, ReadonlyMap<string, Widget>>
  /** The Primitive node that put its value into a widget. */
  readonly primitives: Map<Widget, EditorNode>
}

export interface Prompt {
  /** In API format. */
  readonly workflow: JsonObject
  readonly warnings: readonly ConvertWarning[]
}

// As many as a graph may have; subgraphs inside of subgraphs multiply.
const MAX_PLACES = 20_000
const MAX_DEPTH = 100
// Texts in a subgraph are there once, and in the prompt for every node that shows it.
const MAX_CHARACTERS = 33_554_432

interface Writing extends Pick<WriteOptions, 'random' | 'catalog' | 'origins'> {
  readonly replaceText: ReplaceText
  readonly resolveInput: ReturnType<typeof createResolveInput>
  /** The ids of all nodes in the prompt. */
  readonly written: ReadonlySet<string>
  /** Takes the length of all that is written. */
  readonly spend: Spend
  readonly warnings: ConvertWarning[]
}

/** In steps, so that a large file does not hold up other work. */
export function* writePromptSteps(
  { root, subgraphs }: EditorWorkflow,
  { now, random, catalog, origins }: WriteOptions,
): Work<Prompt> {
  const places: Placed[] = []
  for (const place of activePlaces(root)) {
    places.push(place)
    yield
  }
  const spend = createBudget(MAX_CHARACTERS, 'characters in its texts')
  const listed = listNodes(root)
  yield
  const replaceText = createReplaceText(listed, { now, spend })
  yield
  for (const graph of [root, ...subgraphs.values()]) {
    for (const node of graph.nodes.values()) {
      if (node.kind !== 'primitive') continue
      const filled = applyPrimitive(node, graph, replaceText)
      for (const widget of filled) origins?.primitives.set(widget, node)
      yield
    }
  }
  const resolveInput = createResolveInput()
  const written = new Set(places.map(({ id }) => id))
  const writing: Writing = { random, catalog, origins, replaceText, resolveInput, written, spend, warnings: [] }
  const nodes: [id: string, node: JsonObject][] = []
  for (const place of places) {
    const { id, node } = place
    const inputs = Object.fromEntries(writeInputs(place, writing))
    nodes.push([id, { inputs, class_type: node.type, _meta: { title: node.title || node.type } }])
    yield
  }
  return { workflow: Object.fromEntries(nodes), warnings: writing.warnings }
}

const isOff = ({ mode }: EditorNode) => mode === MODE.muted || mode === MODE.bypassed

/** Inside of a subgraph only the nodes' own modes count: the editor sets those when it switches off what shows them. */
function* activePlaces(root: EditorGraph): Generator<Placed> {
  let count = 0
  const stack: Placed[] = []
  const enter = (graph: EditorGraph, host: Placed | null) => {
    const inner = [...graph.nodes.values()].map((node) => {
      const id = host === null ? node.id : `${host.id}:${node.id}`
      return { node, graph, host, id }
    })
    count += inner.length
    if (count > MAX_PLACES) refuseConversion('file_too_large', `the workflow has more than ${MAX_PLACES} nodes`)
    stack.push(...inner.reverse())
  }
  enter(root, null)
  for (let place = stack.pop(); place !== undefined; place = stack.pop()) {
    const { node, host } = place
    if (host === null && isOff(node)) continue
    if (node.subgraph !== null) {
      checkNesting(place)
      enter(node.subgraph, place)
    } else if (isOff(node)) continue
    else if (needsPage(node.type)) refuseForPage(place.id, node.type, node.properties)
    else if (node.kind === 'class' || node.kind === 'unknown') yield place
  }
}

function checkNesting({ node, host, id }: Placed): void {
  let depth = 0
  for (let outer = host; outer !== null; outer = outer.host) {
    if (outer.node.subgraph === node.subgraph) {
      refuseConversion('endless_link', `subgraph ${JSON.stringify(node.subgraph?.name)} contains itself`, {
        nodeId: id,
      })
    }
    if (++depth > MAX_DEPTH)
      refuseConversion('file_too_large', `subgraphs are more than ${MAX_DEPTH} deep`, { nodeId: id })
  }
}

/** Every node of the workflow, those of a subgraph before the first node that shows it. */
function listNodes(root: EditorGraph): EditorNode[] {
  const listed: EditorNode[] = []
  const entered = new Set<EditorGraph>()
  // An explicit stack: how deep subgraphs lie in each other is up to the file.
  const stack: { readonly nodes: Iterator<EditorNode>; readonly host: EditorNode | null }[] = [
    { nodes: root.nodes.values(), host: null },
  ]
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const next = top.nodes.next()
    if (next.done === true) {
      stack.pop()
      if (top.host !== null) listed.push(top.host)
      continue
    }
    const { subgraph } = next.value
    if (subgraph === null || entered.has(subgraph)) listed.push(next.value)
    else {
      entered.add(subgraph)
      stack.push({ nodes: subgraph.nodes.values(), host: next.value })
    }
  }
  return listed
}

type Inputs = Map<string, JsonValue>

function writeInputs(place: Placed, writing: Writing): Inputs {
  const { node } = place
  const { resolveInput, written, spend, origins } = writing
  spend(place.id.length + node.type.length + node.title.length)
  if (node.kind === 'unknown') checkUnknown(place, writing)
  const inputs: Inputs = new Map()
  const widgets = origins === undefined ? null : new Map<string, Widget>()
  if (widgets !== null) origins?.widgets.set(place.id, widgets)
  for (const widget of node.widgets) {
    if (widget.name === '' || !widget.isSent) continue
    spend(widget.name.length)
    const value = sendValue(place, widget, writing)
    if (value === undefined) inputs.delete(widget.name)
    else inputs.set(widget.name, wrap(value, widget.kind))
    widgets?.set(widget.name, widget)
  }
  for (const slot of node.inputs) {
    const source = resolveInput(place, slot)
    if (source === null) continue
    spend(slot.name.length + (source.kind === 'output' ? source.nodeId.length : 0))
    // A link to what the prompt does not have is left out, and so is the value that it would replace.
    if (source.kind === 'output') {
      if (written.has(source.nodeId)) inputs.set(slot.name, [source.nodeId, source.slot])
      else inputs.delete(slot.name)
    } else if (source.widget.value === undefined) inputs.delete(slot.name)
    else {
      inputs.set(slot.name, wrap(tidy(source.widget.value, spend), ''))
      widgets?.set(slot.name, source.widget)
    }
  }
  return inputs
}

function checkUnknown({ node, id }: Placed, { warnings, catalog }: Writing): void {
  const hint = explainAbsent(node.type, [catalog])
  if (node.isUnreadable === true) refuseUnknown(id, node.type, node.properties, hint)
  const why = hint === null ? '' : ` (${hint})`
  const message = `no engine here has the class ${JSON.stringify(node.type)}${why}: its values are taken by the names that the file gives`
  warnings.push({ nodeId: id, input: null, message })
}

function sendValue(place: Placed, widget: Widget, writing: Writing): JsonValue | undefined {
  const { node, id } = place
  const { value, name } = widget
  const warn = (message: string) => writing.warnings.push({ nodeId: id, input: name, message })
  if (widget.drawnByPage !== undefined && !node.inputs.some((slot) => slot.widget === name && slot.link !== null)) {
    warn(`the editor's page would send ${widget.drawnByPage}; give this input a value of your own`)
  }
  if (typeof value !== 'string') return value === undefined ? undefined : tidy(value, writing.spend)
  if (isFileName(node, name)) return writing.replaceText(value)
  writing.spend(value.length)
  if (widget.hasWildcards !== true) return value
  let isPicked = false
  const text = resolveWildcards(value, (count) => {
    isPicked = true
    return Math.min(count - 1, Math.floor(writing.random() * count))
  })
  if (isPicked) warn('of the alternatives in {braces} one was taken at random, as the editor does for every run')
  return text
}

/** A list in a prompt is a link, so a value that is a list goes in an object. */
function wrap(value: JsonValue, kind: string): JsonValue {
  if (!Array.isArray(value)) return value
  return kind === 'curve' ? { __type__: 'CURVE', __value__: value } : { __value__: value }
}

/** Whole numbers as the editor writes them: 1 and not 1.0. Those that a double cannot hold keep their digits. */
function tidy(value: JsonValue, spend: Spend): JsonValue {
  spend(typeof value === 'string' ? value.length : 1)
  if (value instanceof NumberText) return Number.isSafeInteger(value.value) ? value.value + 0 : value
  if (Array.isArray(value)) return value.map((each) => tidy(each, spend))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      spend(name.length)
      return [name, tidy(member, spend)]
    }),
  )
}
