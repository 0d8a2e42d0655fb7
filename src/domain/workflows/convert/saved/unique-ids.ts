/**
 * Gives nodes of subgraphs ids that no other node of the file has. The editor does so when it loads a file, because it keeps
 * the values of all widgets in one place; the prompt then carries the new ids. Counting on must happen exactly as it does there.
 */
import type { JsonValue } from '../../../../../lib/json/lossless-json.ts'
import { MAX_COUNTED_ID, readId } from './read-saved.ts'
import type { SavedLink, SavedNode, SavedWorkflow } from './saved-workflow.ts'

type Renamed = ReadonlyMap<string, string>

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
