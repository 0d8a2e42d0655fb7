/** Puts the values of a call into a graph. What is no input stays as it was published. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import type { EndpointInput } from './endpoint.ts'

/** A new graph; `values` by the names of inputs. An input without a value keeps what the graph has. With every example it is the same graph. */
export function fillGraph(
  graph: JsonObject,
  inputs: readonly Pick<EndpointInput, 'name' | 'places'>[],
  values: Readonly<Record<string, JsonValue>>,
): JsonObject {
  const changed = new Map<string, Map<string, JsonValue>>()
  for (const { name, places } of inputs) {
    if (!Object.hasOwn(values, name)) continue
    for (const { nodeId, input } of places) {
      const own = changed.get(nodeId) ?? new Map<string, JsonValue>()
      changed.set(nodeId, own.set(input, values[name]))
    }
  }
  const fill = ([nodeId, node]: [string, JsonValue]): [string, JsonValue] => {
    const now = changed.get(nodeId)
    if (now === undefined || !isJsonObject(node) || !isJsonObject(node['inputs'])) return [nodeId, node]
    // An input that the graph leaves empty, such as a loader without a file, comes last; a null leaves it so.
    const given = [...now].filter(([, value]) => value !== null)
    const inputs = { ...node['inputs'], ...Object.fromEntries(given) }
    return [nodeId, { ...node, inputs: node['class_type'] === 'CustomCombo' ? withIndex(inputs) : inputs }]
  }
  return Object.fromEntries(Object.entries(graph).map(fill))
}

/** This class also hands out the place of what is chosen, which the editor's page writes beside it. */
function withIndex(inputs: JsonObject): JsonObject {
  if (!Object.hasOwn(inputs, 'index')) return inputs
  const options = Object.keys(inputs).filter((name) => /^option\d+$/.test(name))
  return { ...inputs, index: options.findIndex((name) => inputs[name] === inputs['choice']) }
}
