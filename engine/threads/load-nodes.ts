/** The node classes of a thread: those built in, those of further modules (each exports `nodes`), and custom ones. */
import type { NodeDeclaration } from '../custom/declaration.ts'
import { toEngineNode } from '../custom/to-engine-node.ts'
import { type EngineNode, type NodeTable, toNodeTable } from '../node/define-node.ts'
import { BUILT_IN_NODES, OWN_NODES } from '../nodes/built-in.ts'

export async function loadNodes(
  modules: readonly string[],
  custom: readonly NodeDeclaration[] = [],
): Promise<NodeTable> {
  const nodes: EngineNode[] = [...BUILT_IN_NODES, ...OWN_NODES]
  for (const url of modules) {
    const loaded = (await import(url)) as { nodes?: readonly EngineNode[] }
    if (!Array.isArray(loaded.nodes)) throw new Error(`the node module ${url} exports no list \`nodes\``)
    nodes.push(...loaded.nodes)
  }
  return toNodeTable([...nodes, ...custom.map(toEngineNode)])
}
