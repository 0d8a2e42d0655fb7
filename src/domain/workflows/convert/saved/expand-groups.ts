/**
 * Old group nodes, which editors of 2024 had before subgraphs: the workflow keeps their inner nodes in `extra.groupNodes`, and a
 * node of the type `workflow/NAME` shows them. Each becomes a subgraph of its own, as the editor makes of it today: the inner nodes
 * get the next free ids, then the node that shows them.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import { finishNow } from '../../../../../lib/waiting/turns.ts'
import { refuseConversion } from '../../graph-refusals.ts'
import {
  IO_INPUT,
  IO_OUTPUT,
  MAX_COUNTED_ID,
  MAX_LINKS,
  MAX_NODES,
  readId,
  readSavedSteps,
  type SavedIoSlot,
  type SavedLink,
  type SavedNode,
  type SavedSubgraph,
  type SavedWorkflow,
} from './read-saved.ts'

const GROUP_TYPE = /^workflow[/>](.+)$/

/** How many values a node of a class saves, one by one; null when no engine has the class. */
type CountValues = (classType: string, converted: ReadonlySet<string>) => number | null

export function expandGroups(workflow: SavedWorkflow, countValues: CountValues): SavedWorkflow {
  if (Object.keys(workflow.groupNodes).length === 0) return workflow
  const groupOf = readGroups(workflow)
  let { lastNodeId } = workflow
  const subgraphs: SavedSubgraph[] = [...workflow.subgraphs]
  const renamed = new Map<string, string>()
  const nodes = workflow.nodes.map((node) => {
    const name = nameOf(node)
    const group = groupOf.get(name)
    if (group === undefined) return node
    const { subgraph, last } = toSubgraph(node, group, { name, lastNodeId, countValues })
    lastNodeId = last + 1
    subgraphs.push(subgraph)
    renamed.set(node.id, String(lastNodeId))
    return toHost(node, subgraph, String(lastNodeId))
  })
  const mend = (id: string) => renamed.get(id) ?? id
  const links = workflow.links.map((link) => ({
    ...link,
    originId: mend(link.originId),
    targetId: mend(link.targetId),
  }))
  return { ...workflow, nodes, links, subgraphs, lastNodeId }
}

interface Group {
  readonly nodes: readonly SavedNode[]
  /** By the places of nodes in the list, not by ids. */
  readonly links: readonly {
    readonly from: number
    readonly fromSlot: number
    readonly to: number
    readonly toSlot: number
  }[]
  /** Outputs that are linked inside and shown outside as well. */
  readonly external: ReadonlySet<string>
  /** Inputs and outputs of all nodes; each may need a link of its own. */
  readonly slots: number
}

const nameOf = ({ type }: SavedNode): string => GROUP_TYPE.exec(type)?.[1] ?? ''

/** Those that are shown, each read once. What all nodes that show them would become together counts before any is made. */
function readGroups(workflow: SavedWorkflow): ReadonlyMap<string, Group> {
  const groups = new Map<string, Group>()
  const graphs = [workflow, ...workflow.subgraphs]
  let nodes = graphs.reduce((sum, graph) => sum + graph.nodes.length, 0)
  let links = graphs.reduce((sum, graph) => sum + graph.links.length, 0)
  for (const shown of workflow.nodes) {
    const name = nameOf(shown)
    if (!Object.hasOwn(workflow.groupNodes, name)) continue
    const group = groups.get(name) ?? readGroup(workflow.groupNodes[name], shown)
    groups.set(name, group)
    nodes += group.nodes.length
    links += group.links.length + group.slots
    if (nodes > MAX_NODES || links > MAX_LINKS) {
      const message = `the groups of the file have more than ${MAX_NODES} nodes or ${MAX_LINKS} links together`
      refuseConversion('file_too_large', message, { nodeId: shown.id })
    }
  }
  return groups
}

const keyOf = (node: number, slot: number) => `${node} ${slot}`

function readGroup(value: JsonValue, shown: SavedNode): Group {
  if (!isJsonObject(value) || !Array.isArray(value.nodes)) {
    refuseConversion('malformed_file', `the group of node ${shown.id} has no list of nodes`, { nodeId: shown.id })
  }
  const written = value.nodes.map((node, index) => ({ ...(isJsonObject(node) ? node : {}), id: index }) as JsonObject)
  const { nodes } = finishNow(readSavedSteps({ nodes: written, links: [] }))
  const isPlace = (place: JsonValue): place is number => typeof place === 'number' && place >= 0
  const links = (Array.isArray(value.links) ? value.links : []).flatMap((link) => {
    const [from, fromSlot, to, toSlot] = Array.isArray(link) ? link : []
    const isWhole = isPlace(from) && isPlace(fromSlot) && isPlace(to) && isPlace(toSlot)
    return isWhole ? [{ from, fromSlot, to, toSlot }] : []
  })
  const external = (Array.isArray(value.external) ? value.external : []).flatMap((entry) => {
    const [node, slot] = Array.isArray(entry) ? entry : []
    return isPlace(node) && isPlace(slot) ? [keyOf(node, slot)] : []
  })
  const slots = nodes.reduce((sum, { inputs, outputs }) => sum + inputs.length + outputs.length, 0)
  return { nodes, links, external: new Set(external), slots }
}

interface Expansion {
  readonly name: string
  readonly lastNodeId: number
  readonly countValues: CountValues
}

function toSubgraph(
  shown: SavedNode,
  { nodes, links, external }: Group,
  { name, lastNodeId, countValues }: Expansion,
): { readonly subgraph: SavedSubgraph; readonly last: number } {
  const idOf = (place: number) => String(lastNodeId + 1 + place)
  const inner: SavedLink[] = links.map(({ from, fromSlot, to, toSlot }, index) => ({
    id: `inner ${index}`,
    originId: idOf(from),
    originSlot: fromSlot,
    targetId: idOf(to),
    targetSlot: toSlot,
  }))
  const linkedInputs = new Map(links.map(({ to, toSlot }, index) => [keyOf(to, toSlot), `inner ${index}`]))
  const linkedOutputs = new Set(links.map(({ from, fromSlot }) => keyOf(from, fromSlot)))
  const inputs: SavedIoSlot[] = []
  const outputs: SavedIoSlot[] = []
  const values = shareValues(shown, nodes, countValues)
  const placed = nodes.map((node, place): SavedNode => {
    const own = node.inputs.map((input, slot) => {
      const known = linkedInputs.get(keyOf(place, slot))
      if (known !== undefined) return { ...input, link: known }
      const link = `in ${inputs.length}`
      inner.push({ id: link, originId: IO_INPUT, originSlot: inputs.length, targetId: idOf(place), targetSlot: slot })
      inputs.push({ name: link, type: input.type, linkIds: [link] })
      return { ...input, link }
    })
    node.outputs.forEach(({ type }, slot) => {
      if (linkedOutputs.has(keyOf(place, slot)) && !external.has(keyOf(place, slot))) return
      const link = `out ${outputs.length}`
      inner.push({ id: link, originId: idOf(place), originSlot: slot, targetId: IO_OUTPUT, targetSlot: outputs.length })
      outputs.push({ name: link, type, linkIds: [link] })
    })
    return { ...node, id: idOf(place), inputs: own, values: values?.[place] ?? node.values }
  })
  const subgraph = { id: `group ${shown.id} ${name}`, name, nodes: placed, links: inner, inputs, outputs }
  return { subgraph, last: lastNodeId + nodes.length }
}

/** The values of the group are those of its inner nodes, one behind the other; null when they do not add up. */
function shareValues(shown: SavedNode, nodes: readonly SavedNode[], countValues: CountValues): JsonValue[][] | null {
  const { values } = shown
  if (!Array.isArray(values)) return null
  const shares: JsonValue[][] = []
  let next = 0
  for (const node of nodes) {
    const converted = new Set(node.inputs.flatMap(({ widget }) => widget ?? []))
    const count =
      node.type === 'PrimitiveNode' && Array.isArray(node.values)
        ? node.values.length
        : countValues(node.type, converted)
    if (count === null) return null
    shares.push(values.slice(next, next + count))
    next += count
  }
  return next === values.length ? shares : null
}

/** The slots of the old node and of the subgraph come in the same order. */
function toHost(node: SavedNode, subgraph: SavedSubgraph, id: string): SavedNode {
  const own = node.inputs.filter(({ widget }) => widget === null)
  const inputs = subgraph.inputs.map(({ name, type }, index) => ({
    name,
    type,
    link: own[index]?.link ?? null,
    widget: null,
  }))
  return { ...node, id, type: subgraph.id, inputs, values: null, namedValues: null }
}

type Renamed = ReadonlyMap<string, string>

/**
 * Gives nodes of subgraphs ids that no other node of the file has. The editor does so when it loads a file, because it keeps
 * the values of all widgets in one place; the prompt then carries the new ids. Counting on must happen exactly as it does there.
 */
export function withUniqueIds(workflow: SavedWorkflow): SavedWorkflow {
  if (workflow.subgraphs.length === 0) return workflow
  const used = new Set(workflow.nodes.map(({ id }) => id))
  const counter = { last: workflow.lastNodeId }
  const renamedBySubgraph = new Map<string, Renamed>()
  const subgraphs = workflow.subgraphs.map((subgraph) => {
    const renamed = new Map<string, string>()
    const nodes = subgraph.nodes.map((node) => renameNode(node, { renamed, used, counter }))
    if (renamed.size === 0) return subgraph
    renamedBySubgraph.set(subgraph.id, renamed)
    return { ...subgraph, nodes, links: subgraph.links.map((link) => renameEnds(link, renamed)) }
  })
  if (renamedBySubgraph.size === 0) return { ...workflow, lastNodeId: counter.last }
  const mend = (node: SavedNode) => renameProxies(node, renamedBySubgraph.get(node.type))
  return {
    ...workflow,
    nodes: workflow.nodes.map(mend),
    subgraphs: subgraphs.map((subgraph) => ({ ...subgraph, nodes: subgraph.nodes.map(mend) })),
    lastNodeId: counter.last,
  }
}

interface Renaming {
  readonly renamed: Map<string, string>
  readonly used: Set<string>
  readonly counter: { last: number }
}

function renameNode(node: SavedNode, { renamed, used, counter }: Renaming): SavedNode {
  if (!used.has(node.id)) {
    used.add(node.id)
    const numeric = Number(node.id)
    const isCounted = Number.isInteger(numeric) && numeric <= MAX_COUNTED_ID && String(numeric) === node.id
    if (isCounted) counter.last = Math.max(counter.last, numeric)
    return node
  }
  // Ends: it only counts up, so it steps over each id in use at most once.
  do counter.last++
  while (used.has(String(counter.last)))
  const id = String(counter.last)
  renamed.set(node.id, id)
  used.add(id)
  return { ...node, id }
}

function renameEnds(link: SavedLink, renamed: Renamed): SavedLink {
  const { originId, targetId } = link
  return { ...link, originId: renamed.get(originId) ?? originId, targetId: renamed.get(targetId) ?? targetId }
}

/** A node of a subgraph names inner nodes in the list of widgets that it shows. */
function renameProxies(node: SavedNode, renamed: Renamed | undefined): SavedNode {
  const proxies = node.properties['proxyWidgets']
  if (renamed === undefined || !Array.isArray(proxies)) return node
  const rename = (entry: JsonValue): JsonValue => {
    if (!Array.isArray(entry)) return entry
    const [id, ...rest] = entry
    const newId = renamed.get(readId(id) ?? '')
    return newId === undefined ? entry : [newId, ...rest]
  }
  return { ...node, properties: { ...node.properties, proxyWidgets: proxies.map(rename) } }
}
