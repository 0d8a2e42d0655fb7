/** Writes a Graph as the API-format text that is stored, executed and shown. Numbers keep the digits they came with. */
import { type JsonObject, type JsonValue, NumberText, stringifyLosslessJson } from '../../lib/lossless-json.ts'
import type { Graph } from './graph.ts'

export function writeGraph(graph: Graph): string {
  const entries: [string, JsonObject][] = []
  let isPlain = true
  for (const [id, { classType, inputs, meta }] of graph) {
    const node = { class_type: classType, inputs }
    entries.push([id, meta === undefined ? node : { ...node, _meta: meta }])
    if (isPlain && (holdsRareNumber(inputs) || (meta !== undefined && holdsRareNumber(meta)))) isPlain = false
  }
  // Not by assignment: a node may be called `__proto__`.
  const document = Object.fromEntries(entries)
  // The lossless writer calls back for every value; most graphs have nothing that needs it.
  return isPlain ? JSON.stringify(document) : stringifyLosslessJson(document)
}

function holdsRareNumber(value: JsonValue): boolean {
  if (typeof value === 'bigint') return true
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(holdsRareNumber)
  return value instanceof NumberText || Object.values(value).some(holdsRareNumber)
}
