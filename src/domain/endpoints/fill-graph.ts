/** Puts the values of a call into a graph. What is no input stays as it was published. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import type { EndpointInput } from './endpoint.ts'

/** A new graph; `values` by the names of inputs. An input without a value keeps what the graph has. With every example it is the same graph. */
export function fillGraph(
  graph: JsonObject,
  inputs: readonly Pick<EndpointInput, 'name' | 'places'>[],
  values: Readonly<Record<string, JsonValue>>,
): JsonObject {
  const changed = new Map<string, JsonObject>()
  for (const { name, places } of inputs) {
    if (!Object.hasOwn(values, name)) continue
    for (const { nodeId, input } of places) {
      const own = changed.get(nodeId) ?? inputsOf(graph, nodeId)
      if (own === null) continue
      changed.set(
        nodeId,
        Object.fromEntries(Object.entries(own).map(([key, old]) => [key, key === input ? values[name] : old])),
      )
    }
  }
  if (changed.size === 0) return graph
  return Object.fromEntries(
    Object.entries(graph).map(([nodeId, node]) => {
      const inputsNow = changed.get(nodeId)
      return [nodeId, inputsNow === undefined || !isJsonObject(node) ? node : { ...node, inputs: inputsNow }]
    }),
  )
}

function inputsOf(graph: JsonObject, nodeId: string): JsonObject | null {
  const node = Object.hasOwn(graph, nodeId) ? graph[nodeId] : null
  return isJsonObject(node) && isJsonObject(node['inputs']) ? node['inputs'] : null
}
