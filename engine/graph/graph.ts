import type { JsonObject, JsonValue } from '../../lib/json/lossless-json.ts'

/** A workflow in API format, parsed losslessly and checked for shape only. */
export interface GraphNode {
  readonly classType: string
  readonly inputs: JsonObject
  /** What errors call it; out of `meta`. */
  readonly title: string | null
  /** What came as `_meta`, whatever it was; absent when nothing did. It is shown again and means nothing to a run. */
  readonly meta?: JsonValue
}

export type Graph = ReadonlyMap<string, GraphNode>

/** In a graph, an array of exactly [string, number] is a link; anything else is a constant. */
export function isLink(value: JsonValue): value is [string, number] {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' && typeof value[1] === 'number'
}
