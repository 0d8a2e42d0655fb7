import type { JsonObject, JsonValue } from '../../lib/json/lossless-json.ts'

/** A workflow in API format, parsed losslessly and checked for shape only. */
export interface GraphNode {
  readonly classType: string
  readonly inputs: JsonObject
  /** The title that error messages use, from `meta`. */
  readonly title: string | null
  /** The value of `_meta` as it was submitted; absent when there was none. It is given back to readers; a run ignores it. */
  readonly meta?: JsonValue
}

export type Graph = ReadonlyMap<string, GraphNode>

/** In a graph, an array of exactly [string, number] is a link; anything else is a constant. */
export function isLink(value: JsonValue): value is [string, number] {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' && typeof value[1] === 'number'
}
