/** The part of a graph that some of its output nodes need. Pure. */
import { type Graph, type GraphNode, isLink } from './graph.ts'

export function pruneGraph(graph: Graph, outputs: readonly string[]): Graph {
  const kept = new Set<string>()
  const waiting = [...outputs]
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    const node = graph.get(id)
    if (node === undefined || kept.has(id)) continue
    kept.add(id)
    for (const value of Object.values(node.inputs)) if (isLink(value)) waiting.push(value[0])
  }
  // Kept in the order of the document, which partly decides what runs first.
  return new Map([...graph].filter(([id]): boolean => kept.has(id)) as [string, GraphNode][])
}
