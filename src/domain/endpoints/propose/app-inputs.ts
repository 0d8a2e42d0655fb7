/**
 * Which values App mode means. Its entries name a value in one of three ways, by the age of the editor that wrote them: by the
 * id of the graph, the node and the name; by the place of a node inside of a subgraph; by the bare id of a node. An inner node's
 * value is what the node that shows the subgraph has for it.
 */
import type {
  EditorGraph,
  EditorNode,
  IoSlot,
  Slot,
  Subgraph,
  Widget,
} from '../../workflows/convert/editor/editor-graph.ts'
import { findWidget } from '../../workflows/convert/editor/editor-graph.ts'
import type { EditorWorkflow } from '../../workflows/convert/editor/load-workflow.ts'
import type { AppInput } from './labels.ts'

type ResolveAppInput = (input: AppInput) => Widget | EditorNode | null

/** `graphId`: of the workflow itself; null: the file does not say. */
export function createResolveAppInput(workflow: EditorWorkflow, graphId: string | null): ResolveAppInput {
  const { root, subgraphs } = workflow
  let shown: ReturnType<typeof indexShown> | null = null
  const promotedFrom = (nodeId: string, name: string, scope: Subgraph | null): Widget | null => {
    shown ??= indexShown(root)
    const found = (shown.get(keyOf(nodeId, name)) ?? []).filter(({ graph }) => scope === null || graph === scope)
    return found.length === 1 ? (found[0].slot.promoted ?? null) : null
  }
  const onRoot = (nodeId: string, name: string) => {
    const node = root.nodes.get(nodeId)
    return node === undefined ? null : heldBy(node, name)
  }
  const inside = ({ id, widget }: AppInput) => {
    const parts = id.split(':')
    const last = parts[parts.length - 1]
    const graph = subgraphs.get(parts[0]) ?? followHosts(root, parts.slice(0, -1))
    if (graph === null) return null
    const inner = graph.nodes.get(last)
    return promotedFrom(last, widget, graph) ?? (inner === undefined ? null : heldBy(inner, widget))
  }
  return (input) => {
    const { id, widget } = input
    if (!id.includes(':')) return onRoot(id, widget) ?? promotedFrom(id, widget, null)
    const parts = id.split(':')
    const [graph, nodeId, name] = parts
    if (parts.length === 3 && (graph === graphId || (!root.nodes.has(graph) && !subgraphs.has(graph)))) {
      return onRoot(decode(nodeId), decode(name))
    }
    return inside(input)
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Notes hold a text, and are never inputs. */
function heldBy(node: EditorNode, name: string): Widget | EditorNode | null {
  if (node.kind === 'note') return null
  if (node.kind === 'primitive') return node
  return findWidget(node, name) ?? null
}

/** The subgraph that a chain of nodes shows, each inside of the one before. */
function followHosts(root: EditorGraph, ids: readonly string[]): Subgraph | null {
  let graph: Subgraph | null = null
  for (const id of ids) {
    graph = (graph ?? root).nodes.get(id)?.subgraph ?? null
    if (graph === null) return null
  }
  return graph
}

interface Shown {
  /** Of the node in the workflow itself. */
  readonly slot: Slot
  /** Where the inner node is. */
  readonly graph: Subgraph
}

/** What a Primitive node calls its value, whatever it is connected to. */
const PRIMITIVE = 'value'

const keyOf = (nodeId: string, name: string) => `${nodeId}\0${name}`

// Subgraphs that lie in each other multiply what is shown.
const MAX_SHOWN = 20_000
const MAX_DEPTH = 100

/** The inner values that nodes of the workflow show, by the inner node and the name there. */
function indexShown(root: EditorGraph): ReadonlyMap<string, readonly Shown[]> {
  const index = new Map<string, Shown[]>()
  let count = 0
  const addTo = (key: string, shown: Shown) => {
    const list = index.get(key)
    if (list === undefined) index.set(key, [shown])
    else if (!list.some(({ slot }) => slot === shown.slot)) list.push(shown)
  }
  const add = (slot: Slot, { graph, io, depth }: { graph: Subgraph; io: IoSlot | undefined; depth: number }) => {
    for (const id of io?.linkIds ?? []) {
      const link = graph.links.get(id)
      const target = link === undefined ? undefined : graph.nodes.get(link.targetId)
      const inner = target?.inputs.find((each) => each.link === id)
      if (target === undefined || inner === undefined || ++count > MAX_SHOWN) continue
      addTo(keyOf(target.id, inner.widget ?? inner.name), { slot, graph })
      if (target.subgraph !== null && depth < MAX_DEPTH)
        add(slot, { graph: target.subgraph, io: inner.io, depth: depth + 1 })
    }
  }
  for (const { subgraph, inputs } of root.nodes.values()) {
    if (subgraph === null) continue
    const byIo = new Map(inputs.map((slot) => [slot.io, slot]))
    for (const { id, shownAs } of subgraph.nodes.values()) {
      const slot = shownAs === undefined ? undefined : byIo.get(shownAs)
      if (slot !== undefined && ++count <= MAX_SHOWN) addTo(keyOf(id, PRIMITIVE), { slot, graph: subgraph })
    }
    for (const slot of inputs) if (slot.promoted !== undefined) add(slot, { graph: subgraph, io: slot.io, depth: 0 })
  }
  return index
}
