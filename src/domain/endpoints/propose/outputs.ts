/** The outputs of an endpoint: which nodes of the graph make results, of what kind, under which names. */
import { type Graph, type GraphNode, isLink } from '../../../../engine/graph/graph.ts'
import { readNodeSpec } from '../../../../engine/graph/input-specs.ts'
import type { NodeCatalog, NodeDefinition } from '../../../../engine/graph/node-catalog.ts'
import { toPlainLine } from '../../../../lib/text/plain-text.ts'
import type { Work } from '../../../../lib/waiting/turns.ts'
import { titleOf } from '../../workflows/convert/editor/editor-graph.ts'
import type { ConvertWarning } from '../../workflows/convert/prompt/write-prompt.ts'
import type { EndpointOutput, FileKind } from '../endpoint.ts'
import type { ExternalOutput } from './external-nodes.ts'
import { createNameBook, toName, toNameOfTitle, toWords } from './names.ts'

const MAX_OUTPUTS = 100

interface Said {
  /** Ids of App mode; empty: it names none. */
  readonly app: readonly string[]
  readonly external: readonly ExternalOutput[]
  readonly catalog: NodeCatalog
  readonly warnings: ConvertWarning[]
}

export function* findOutputs(graph: Graph, { app, external, catalog, warnings }: Said): Work<EndpointOutput[]> {
  const made: Record<Rank, Found[]> = { saved: [], other: [], preview: [] }
  for (const [nodeId, node] of graph) {
    yield
    const definition = catalog.find(node.classType)
    const rank = rankOf(node, definition)
    if (rank !== null) made[rank].push({ nodeId, node, definition, name: '' })
  }
  const all = [...made.saved, ...made.other, ...made.preview]
  const fallback = made.saved.length > 0 ? made.saved : made.other.length > 0 ? made.other : made.preview
  const named = new Map(external.map(({ nodeId, name }) => [nodeId, name]))
  const byApp = resolveApp(app, all, warnings)
  const byNode = all.flatMap((each) =>
    named.has(each.nodeId) ? [{ ...each, name: named.get(each.nodeId) ?? '' }] : [],
  )
  const chosen = byApp.length > 0 ? byApp : byNode.length > 0 ? byNode : fallback
  if (chosen.length > MAX_OUTPUTS) {
    warnings.push({
      nodeId: chosen[MAX_OUTPUTS].nodeId,
      input: null,
      message: `only the first ${MAX_OUTPUTS} outputs are taken`,
    })
  }
  const book = createNameBook()
  return chosen.slice(0, MAX_OUTPUTS).map((each) => toOutput(each, graph, { catalog, take: book.take }))
}

interface Found {
  readonly nodeId: string
  readonly node: GraphNode
  readonly definition: NodeDefinition | null
  /** That the author gave it; empty: none. */
  readonly name: string
}

type Rank = 'saved' | 'other' | 'preview'

const PREVIEW = /preview|compare|show|display|inspect/i

/** null: it makes no result. */
function rankOf({ classType }: GraphNode, definition: NodeDefinition | null): Rank | null {
  if (definition === null) return /^Save|Output(?:Image|Text|File|EXR)$|_VideoCombine$/.test(classType) ? 'saved' : null
  const { isOutput, inputs } = readNodeSpec(definition)
  if (!isOutput) return null
  if (PREVIEW.test(classType)) return 'preview'
  return /^Save|Save$|Save[A-Z]|_VideoCombine$/.test(classType) || inputs.some(({ name }) => name === 'filename_prefix')
    ? 'saved'
    : 'other'
}

/** An id of a node that shows a subgraph stands for the results inside of it. */
function resolveApp(ids: readonly string[], all: readonly Found[], warnings: ConvertWarning[]): Found[] {
  const byRoot = Map.groupBy(all, ({ nodeId }) => nodeId.split(':', 1)[0])
  const chosen = new Map<string, Found>()
  for (const id of new Set(ids.slice(0, MAX_OUTPUTS * 2))) {
    const found = byRoot.get(id) ?? []
    for (const each of found) chosen.set(each.nodeId, each)
    if (found.length > 0) continue
    warnings.push({
      nodeId: id,
      input: null,
      message: 'App mode names it as an output, but the prompt has no such output',
    })
  }
  return [...chosen.values()]
}

interface Naming {
  readonly catalog: NodeCatalog
  readonly take: (name: string) => string
}

const WORDS: Readonly<Record<EndpointOutput['kind'], string>> = {
  image: 'image',
  mask: 'mask',
  video: 'video',
  audio: 'audio',
  model3d: 'model',
  text: 'text',
  file: 'file',
}

function toOutput({ nodeId, node, definition, name }: Found, graph: Graph, { catalog, take }: Naming): EndpointOutput {
  const kind = kindOf(node, { definition, graph, catalog })
  const classTitle = definition === null ? null : titleOf(definition)
  const own = node.title === classTitle || node.title === node.classType ? null : node.title
  const wanted = toName(name) || (own === null ? '' : toNameOfTitle(own, classTitle)) || WORDS[kind]
  const free = take(wanted)
  return {
    name: free,
    title: own !== null && name === '' ? toPlainLine(own.slice(0, 200)) : toWords(free),
    nodeId,
    kind,
  }
}

const TYPES: readonly (readonly [EndpointOutput['kind'], RegExp])[] = [
  ['model3d', /MESH|FILE_3D|GLB|SPLAT|VOXEL|POINT_CLOUD|MODEL_TASK|RIG_TASK|RETARGET/],
  ['video', /^VIDEO/],
  ['audio', /^AUDIO/],
  ['mask', /^MASK$/],
  ['image', /^(?:IMAGE|SVG)/],
  ['text', /^STRING/],
]
const CLASS_KINDS: readonly (readonly [EndpointOutput['kind'], RegExp])[] = [
  ['model3d', /3d|glb|mesh|splat|pointcloud|tripo|rodin|hunyuan3d|ToModel/i],
  ['video', /webm|video/i],
  ['audio', /audio|sound|music/i],
  ['text', /text|string|PreviewAny|json/i],
  ['image', /image|picture|png|svg|webp/i],
]

const byPattern = (list: typeof TYPES, word: string): EndpointOutput['kind'] | undefined =>
  list.find(([, pattern]) => pattern.test(word))?.[0]

interface Around {
  readonly definition: NodeDefinition | null
  readonly graph: Graph
  readonly catalog: NodeCatalog
}

/** By what the class says it saves, else by its name, else by what is connected to it. */
function kindOf(node: GraphNode, { definition, graph, catalog }: Around): FileKind | 'text' {
  const inputs = definition === null ? [] : readNodeSpec(definition).inputs
  if (/webm|VideoCombine/i.test(node.classType)) return 'video'
  const linked = inputs.filter(({ path }) => Object.hasOwn(node.inputs, path) && isLink(node.inputs[path]))
  if (node.classType !== 'PreviewAny') {
    for (const { type } of linked) {
      const kind = typeof type === 'string' ? byPattern(TYPES, type) : undefined
      if (kind !== undefined && !(kind === 'text' && byPattern(CLASS_KINDS, node.classType) !== undefined)) return kind
    }
  }
  const byClass = byPattern(CLASS_KINDS, node.classType)
  if (byClass !== undefined) return byClass
  for (const value of Object.values(node.inputs)) {
    const origin = isLink(value) ? graph.get(value[0]) : undefined
    const type = origin === undefined || !isLink(value) ? undefined : catalog.find(origin.classType)?.output[value[1]]
    const kind = typeof type === 'string' ? byPattern(TYPES, type) : undefined
    if (kind !== undefined) return kind
  }
  return 'file'
}
