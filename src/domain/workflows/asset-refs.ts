/**
 * References to assets inside a workflow: `{"__type": "core/ASSET", "info": {"id", "hash"?, "file_path"?}}`, at any depth. The
 * id is authoritative; a hash counts only when there is no id; the path is a hint for people. Finding and replacing are pure,
 * looking up is in resolve-files.ts. Depth is bounded by readGraph, so recursion is safe.
 */
import type { Graph, GraphNode } from '../../../engine/graph/graph.ts'
import { isJsonObject, type JsonObject, type JsonValue, NumberText } from '../../../lib/json/lossless-json.ts'

const REFERENCE_TYPE = 'core/ASSET'
const HASH = /^(?:blake3:)?([0-9a-f]{64})$/i

export type AssetRef =
  | { readonly kind: 'id'; readonly given: string }
  /** `hash` is plain lower-case hex, `given` as it was written. */
  | { readonly kind: 'hash'; readonly given: string; readonly hash: string }
  | { readonly kind: 'malformed'; readonly problem: string }

export interface FoundRefs {
  /** By the very object in the graph, so that replacing needs no second reading. */
  readonly refs: ReadonlyMap<JsonObject, AssetRef>
  readonly nodeIds: ReadonlySet<string>
}

function isReference(value: JsonObject): boolean {
  return Object.hasOwn(value, '__type') && value.__type === REFERENCE_TYPE
}

function readAssetRef(value: JsonObject): AssetRef {
  const info = Object.hasOwn(value, 'info') ? value.info : null
  if (!isJsonObject(info)) return { kind: 'malformed', problem: 'has no `info` object' }
  const { id, hash } = info
  if (typeof id === 'string' && id !== '') return { kind: 'id', given: id }
  if (id !== undefined && id !== null) return { kind: 'malformed', problem: 'has an `info.id` that is no asset id' }
  const hex = typeof hash === 'string' ? HASH.exec(hash) : null
  if (hex === null) return { kind: 'malformed', problem: 'has neither `info.id` nor a valid `info.hash`' }
  return { kind: 'hash', given: hash as string, hash: hex[1].toLowerCase() }
}

export function findAssetRefs(graph: Graph): FoundRefs {
  const refs = new Map<JsonObject, AssetRef>()
  const nodeIds = new Set<string>()
  for (const [id, node] of graph) {
    const before = refs.size
    for (const name in node.inputs) collect(node.inputs[name], { id, name }, refs)
    if (refs.size > before) nodeIds.add(id)
  }
  return { refs, nodeIds }
}

interface InputName {
  readonly id: string
  readonly name: string
}

function collect(value: JsonValue, input: InputName, into: Map<JsonObject, AssetRef>): void {
  if (typeof value !== 'object' || value === null || value instanceof NumberText) return
  if (Array.isArray(value)) {
    for (const item of value) collect(item, input, into)
  } else if (isReference(value)) {
    const ref = readAssetRef(value)
    const where = `Node ${input.id}, input ${input.name}`
    into.set(value, ref.kind === 'malformed' ? { ...ref, problem: `${where}: the reference ${ref.problem}` } : ref)
  } else {
    for (const name in value) collect(value[name], input, into)
  }
}

/** The graph with every reference replaced by its name. Nodes without references are kept as they are. */
export function replaceAssetRefs(graph: Graph, found: FoundRefs, nameOf: (ref: AssetRef) => string): Graph {
  if (found.refs.size === 0) return graph
  const replace = (value: JsonValue): JsonValue => {
    if (typeof value !== 'object' || value === null || value instanceof NumberText) return value
    if (Array.isArray(value)) return value.map(replace)
    const ref = found.refs.get(value)
    return ref === undefined ? replaceMembers(value) : nameOf(ref)
  }
  // fromEntries and not assignment: a member may be called `__proto__`.
  const replaceMembers = (value: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(value).map(([name, item]) => [name, replace(item)]))
  const result = new Map<string, GraphNode>(graph)
  for (const id of found.nodeIds) {
    const node = graph.get(id)
    if (node !== undefined) result.set(id, { ...node, inputs: replaceMembers(node.inputs) })
  }
  return result
}
