/** The node classes of a thread: those built in, then those of further modules, each of which exports `nodes`. */
import { type EngineNode, type NodeTable, toNodeTable } from '../define-node.ts'
import { BUILT_IN_NODES } from '../nodes/built-in.ts'

export async function loadNodes(modules: readonly string[]): Promise<NodeTable> {
  const nodes: EngineNode[] = [...BUILT_IN_NODES]
  for (const url of modules) {
    const loaded = (await import(url)) as { nodes?: readonly EngineNode[] }
    if (!Array.isArray(loaded.nodes)) throw new Error(`the node module ${url} exports no list \`nodes\``)
    nodes.push(...loaded.nodes)
  }
  return toNodeTable(nodes)
}
