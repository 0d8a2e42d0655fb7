/**
 * Everything in a graph that could become an input: each widget of the editor with all places of the prompt that take its value.
 * In a graph that is in API format already, every constant is a source of its own.
 */
import { findFileInputs } from '../../../../engine/graph/file-inputs.ts'
import type { Graph } from '../../../../engine/graph/graph.ts'
import { declaredInputs, readNodeSpec } from '../../../../engine/graph/input-specs.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { isJsonObject, type JsonValue, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { Work } from '../../../../lib/waiting/turns.ts'
import {
  type EditorGraph,
  type EditorNode,
  type Slot,
  titleOf,
  VIRTUAL_TITLES,
  type Widget,
} from '../../workflows/convert/editor/editor-graph.ts'
import type { EditorWorkflow } from '../../workflows/convert/editor/load-workflow.ts'
import type { PromptOrigins } from '../../workflows/convert/prompt/write-prompt.ts'
import type { FileKind, Place } from '../endpoint.ts'
import type { Declared } from './input-types.ts'
import type { Labels } from './labels.ts'

/** What holds a value in the editor. */
type Holder =
  | 'host' // a node that shows a subgraph, by an input of the subgraph
  | 'primitive' // a node that puts its value into others
  | 'node'

export interface Source {
  readonly holder: Holder
  /** Inside of a subgraph that shows some of its values outside. */
  readonly isInner: boolean
  /** The node that holds it; of API format the one of the graph. */
  readonly nodeId: string
  /** As the holder calls it. */
  readonly input: string
  readonly label: string | null
  /** What the user calls the node that holds it; null: what everybody calls it. */
  readonly title: string | null
  readonly classTitle: string | null
  readonly value: JsonValue
  readonly places: readonly Place[]
  readonly declared: readonly [Declared, ...Declared[]]
}

export interface EditorState extends EditorWorkflow {
  readonly origins: PromptOrigins
  readonly labels: Labels
}

interface Sources {
  /** In the order in which the editor lists nodes and widgets. */
  readonly all: readonly Source[]
  /** The source of a widget, or of a Primitive node; undefined: nothing of the prompt comes from there. */
  readonly heldBy: (holder: Widget | EditorNode) => Source | undefined
}

// Few nodes have more than a dozen, and a file may have one with thousands.
const STEP_INPUTS = 500

/** `editor`: null for a graph in API format. */
export function* findSources(graph: Graph, catalog: NodeCatalog, editor: EditorState | null): Work<Sources> {
  const holders = editor === null ? null : yield* findHolders(editor, catalog)
  const groups = new Map<object, Group>()
  for (const [nodeId, node] of graph) {
    yield
    const definition = catalog.find(node.classType)
    const files = new Map(findFileInputs(catalog, node.classType, node.inputs).map(({ path, noun }) => [path, noun]))
    const specs = new Map(
      definition === null ? [] : declaredInputs(readNodeSpec(definition), node.inputs).map((each) => [each.path, each]),
    )
    const classTitle = definition === null ? null : titleOf(definition)
    const title = node.title === classTitle || node.title === node.classType ? null : node.title
    // A loader without a file has no value at all.
    const absent = [...files.keys()].filter((path) => !Object.hasOwn(node.inputs, path))
    const entries = [...Object.entries(node.inputs), ...absent.map((path): [string, null] => [path, null])]
    for (const [index, [input, value]] of entries.entries()) {
      if (index % STEP_INPUTS === STEP_INPUTS - 1) yield
      if ((value === null && !files.has(input)) || Array.isArray(value) || isJsonObject(value)) continue
      // What a class does not declare it does not read: buttons of the page, inputs of an older version.
      if (definition !== null && !specs.has(input)) continue
      const noun = files.get(input)
      const file = noun === undefined ? null : fileKindOf(node.classType, { noun, value })
      const declared: Declared = { node, title, input: specs.get(input) ?? null, file }
      const widget = editor?.origins.widgets.get(nodeId)?.get(input)
      const key = widget === undefined ? {} : (editor?.origins.primitives.get(widget) ?? widget)
      const here = { holder: 'node', isInner: false, nodeId, input, label: null, title, classTitle } as const
      const place = { place: { nodeId, input }, value, declared }
      const group = groups.get(key)
      if (group === undefined)
        groups.set(key, { ...(holders?.get(key) ?? { ...here, order: Infinity }), parts: [place] })
      else group.parts.push(place)
    }
  }
  const sorted = [...groups].sort(([, one], [, other]) => compareOrder(one.order, other.order))
  const byHolder = new Map<object, Source>(sorted.map(([key, group]) => [key, toSource(group)]))
  const filled: ReadonlyMap<object, EditorNode> = editor?.origins.primitives ?? new Map()
  return { all: [...byHolder.values()], heldBy: (holder) => byHolder.get(filled.get(holder) ?? holder) }
}

/** Infinity comes last, and in the order of the graph. */
const compareOrder = (one: number, other: number) => (one === other ? 0 : one - other)

interface Part {
  readonly place: Place
  readonly value: JsonValue
  readonly declared: Declared
}

type Held = Omit<Source, 'value' | 'places' | 'declared'> & { readonly order: number }

interface Group extends Held {
  readonly parts: Part[]
}

/**
 * Places with another value than the first are left as they are: a Primitive node may hand one number to inputs that round it
 * differently, and no single value would give the prompt of the file.
 */
function toSource({ parts, order: _, ...held }: Group): Source {
  const [{ value, declared }, ...others] = parts
  const text = stringifyLosslessJson(value)
  const same = others.filter((part) => part.value === value || stringifyLosslessJson(part.value) === text)
  return {
    ...held,
    value,
    places: [parts[0].place, ...same.map(({ place }) => place)],
    declared: [declared, ...same.map((part) => part.declared)],
  }
}

/** Who holds each widget. */
function* findHolders(editor: EditorState, catalog: NodeCatalog): Work<ReadonlyMap<object, Held>> {
  const { root, subgraphs, labels } = editor
  const holders = new Map<object, Held>()
  // Of a subgraph that shows nothing of itself outside, the inner values are all that there is.
  const isShowing = ({ inputs }: EditorNode) => inputs.some(({ promoted }) => promoted !== undefined)
  const innerGraphs = new Set<EditorGraph>([...subgraphs.values()].filter(({ hosts }) => hosts.some(isShowing)))
  let order = 0
  for (const graph of [root, ...subgraphs.values()]) {
    const graphId = 'id' in graph ? String(graph.id) : null
    const isInner = innerGraphs.has(graph)
    for (const node of graph.nodes.values()) {
      yield
      const { id: nodeId } = node
      const { title, classTitle } = titlesOf(node, catalog)
      const common = { isInner, nodeId, title, classTitle }
      for (const slot of node.inputs) {
        if (slot.promoted === undefined) continue
        const own = labels.ofInput(graphId, nodeId, slot.name) ?? labels.ofIo(node.type, slot.name)
        const label = own ?? innerLabel(node, slot, labels)
        holders.set(slot.promoted, { ...common, holder: 'host', input: slot.name, label, order: order++ })
      }
      if (node.kind === 'primitive') {
        holders.set(node, { ...common, holder: 'primitive', input: 'value', label: null, order: order++ })
      } else {
        for (const widget of node.widgets) {
          const { name: input } = widget
          const label = labels.ofInput(graphId, nodeId, input)
          holders.set(widget, { ...common, holder: 'node', input, label, order: order++ })
        }
      }
    }
  }
  return holders
}

/** What the first inner node that takes the value calls it. */
function innerLabel({ subgraph }: EditorNode, { io }: Slot, labels: Labels): string | null {
  const link = io === undefined ? undefined : subgraph?.links.get(io.linkIds[0])
  const target = link === undefined ? undefined : subgraph?.nodes.get(link.targetId)
  if (subgraph === null || target === undefined) return null
  subgraph.spend(target.inputs.length)
  const inner = target.inputs.find((each) => each.link === link?.id)
  return inner === undefined ? null : labels.ofInput(subgraph.id, target.id, inner.name)
}

function titlesOf(node: EditorNode, catalog: NodeCatalog): { title: string | null; classTitle: string | null } {
  const definition = node.kind === 'class' ? catalog.find(node.type) : null
  const classTitle =
    node.subgraph?.name ?? (definition === null ? (VIRTUAL_TITLES.get(node.type) ?? null) : titleOf(definition))
  const isUsual = node.title === '' || node.title === classTitle || node.title === node.type
  return { title: isUsual ? null : node.title, classTitle }
}

const KINDS: readonly (readonly [FileKind, RegExp])[] = [
  ['model3d', /\.(?:glb|gltf|obj|fbx|stl|usdz|ply|splat|spz|ksplat)$/i],
  ['video', /\.(?:mp4|webm|mov|mkv|avi|m4v)$/i],
  ['audio', /\.(?:mp3|wav|flac|ogg|opus|m4a|aac)$/i],
  ['image', /\.(?:png|jpe?g|webp|gif|bmp|tiff?|avif)$/i],
]
const NOUNS: Readonly<Record<string, FileKind>> = { image: 'image', video: 'video', audio: 'audio', mask: 'mask' }

/** By the class, by what it says is uploaded, else by the ending of the name. */
function fileKindOf(
  classType: string,
  { noun, value }: { readonly noun: string; readonly value: JsonValue },
): FileKind {
  if (/mask/i.test(classType)) return 'mask'
  if (/3d|mesh|glb|splat|pointcloud/i.test(classType)) return 'model3d'
  if (Object.hasOwn(NOUNS, noun)) return NOUNS[noun]
  const name = typeof value === 'string' ? value.replace(/ \[\w+\]$/, '') : ''
  const byEnding = KINDS.find(([, ending]) => ending.test(name))?.[0]
  return byEnding ?? (/video/i.test(classType) ? 'video' : /audio|sound/i.test(classType) ? 'audio' : 'file')
}
