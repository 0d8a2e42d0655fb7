/**
 * A Graph and the JSON that it is submitted and stored as. Reading checks only format, shape and size: whether classes exist and
 * inputs are valid is decided in validate.ts. The bounds here keep later walks over the graph cheap.
 */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  NumberText,
  stringifyLosslessJson,
} from '../../lib/json/lossless-json.ts'
import { writeJsonSteps } from '../../lib/json/write-json-steps.ts'
import { finishNow, type Work } from '../../lib/waiting/turns.ts'
import { type Graph, GraphError, type GraphNode, isLink } from './graph.ts'

const MAX_NODES = 20_000
// Real ids are short, even those of flattened sub-graphs (`12:7:3`).
const MAX_ID_LENGTH = 256
const MAX_CLASS_LENGTH = 512
// Far above any widget value, and far below the depth at which recursion would fail.
const MAX_DEPTH = 64
// Characters plus a flat charge per value: 64 Mi units is more than any real graph and still cheap to walk.
const MAX_SIZE = 67_108_864
const VALUE_CHARGE = 8
const TITLE_LENGTH_KEPT = 1_000
const STEP_NODES = 200

// As many digits as CPython reads; longer numbers cost quadratic time wherever they are printed.
const INTEGER_LIMIT = 10n ** 4300n
const MAX_NUMBER_LENGTH = 4_300

function refuse(message: string, nodeId?: string): never {
  const nodeErrors =
    nodeId === undefined ? {} : Object.fromEntries([[nodeId, [{ field: '', reason: 'invalid_node', message }]]])
  throw new GraphError('malformed', message, nodeErrors)
}

/** Throws GraphError, naming the first fault. A node without `class_type` is left to validation. */
export function readGraph(value: JsonValue): Graph {
  return finishNow(readGraphSteps(value))
}

/** The same in steps, so that a large graph does not hold up other work on this thread. */
export function* readGraphSteps(value: JsonValue): Work<Graph> {
  if (isUiFormat(value)) throw new GraphError('ui_format', UI_FORMAT)
  if (!isJsonObject(value)) refuse('workflow must be an object that maps node ids to nodes (API format)')
  const entries = Object.entries(value)
  if (entries.length > MAX_NODES) refuse(`workflow has ${entries.length} nodes; at most ${MAX_NODES} are allowed`)
  const graph = new Map<string, GraphNode>()
  let size = 0
  for (const [id, node] of entries) {
    if (id.length > MAX_ID_LENGTH) refuse(`a node id is longer than ${MAX_ID_LENGTH} characters`)
    const read = readNode(id, node)
    size += id.length + read.classType.length + measureInputs(id, read)
    if (size > MAX_SIZE) refuse('workflow is too large')
    graph.set(id, read)
    if (graph.size % STEP_NODES === 0) yield
  }
  return graph
}

const UI_FORMAT = 'this is a workflow as the editor saves it; export it in API format ("Export (API)") and send that'

/**
 * The editor's own save format lists nodes in an array and cannot be run. It is recognised here, because errors about single
 * nodes would be confusing. Newer editors leave out `last_node_id`.
 */
export function isUiFormat(value: JsonValue | undefined): boolean {
  if (!isJsonObject(value) || !Array.isArray(value.nodes)) return false
  return Array.isArray(value.links) || isJsonObject(value.links)
}

function readNode(id: string, value: JsonValue): GraphNode {
  if (!isJsonObject(value)) refuse(`Node ${id} must be an object with class_type and inputs`, id)
  const { class_type: classType = '', inputs, _meta: meta } = value
  if (typeof classType !== 'string' || classType.length > MAX_CLASS_LENGTH) {
    refuse(`Node ${id}: class_type must be a string of at most ${MAX_CLASS_LENGTH} characters`, id)
  }
  if (!isJsonObject(inputs)) refuse(`Node ${id}: inputs must be an object (use {} for a node without inputs)`, id)
  const title = isJsonObject(meta) && typeof meta.title === 'string' ? meta.title.slice(0, TITLE_LENGTH_KEPT) : null
  return { classType, inputs, title, ...(meta !== undefined && { meta }) }
}

function measureInputs(id: string, node: GraphNode): number {
  let size = node.meta === undefined ? 0 : measure(id, node.meta, 1)
  for (const [name, value] of Object.entries(node.inputs)) size += name.length + measure(id, value, 1)
  return size
}

function measure(id: string, value: JsonValue, depth: number): number {
  if (typeof value === 'string') return VALUE_CHARGE + value.length
  if (typeof value === 'bigint') {
    if (value >= INTEGER_LIMIT || value <= -INTEGER_LIMIT) refuse(`Node ${id}: a number has too many digits`, id)
    return VALUE_CHARGE
  }
  if (typeof value !== 'object' || value === null) return VALUE_CHARGE
  if (value instanceof NumberText) {
    if (value.text.length > MAX_NUMBER_LENGTH) refuse(`Node ${id}: a number has too many digits`, id)
    return VALUE_CHARGE
  }
  if (depth > MAX_DEPTH) refuse(`Node ${id}: values are nested deeper than ${MAX_DEPTH} levels`, id)
  let size = VALUE_CHARGE
  if (Array.isArray(value)) {
    for (const item of value) size += measure(id, item, depth + 1)
  } else {
    for (const [name, item] of Object.entries(value)) size += name.length + measure(id, item, depth + 1)
  }
  return size
}

// Writes a Graph as the API-format text that is stored, executed and shown. Numbers keep the digits they came with.

// How many values are written in one call, and about how many between two steps.
const SMALL_VALUES = 500
const STEP_VALUES = 2000

export function writeGraph(graph: Graph): string {
  return finishNow(writeGraphSteps(graph))
}

/** The same in steps, so that a large graph does not hold up other work on this thread. */
export function* writeGraphSteps(graph: Graph): Work<string> {
  const pieces: string[] = []
  let members: string[] = []
  let values = 0
  for (const [id, node] of graph) {
    const count = countValues(node.inputs, SMALL_VALUES) + countValues(node.meta ?? null, SMALL_VALUES)
    const written = count > SMALL_VALUES ? yield* writeJsonSteps(toDocument(node)) : writeNode(node)
    members.push(`${JSON.stringify(id)}:${written}`)
    values += count
    if (values < STEP_VALUES) continue
    pieces.push(members.join(','))
    members = []
    values = 0
    yield
  }
  if (members.length > 0) pieces.push(members.join(','))
  return `{${pieces.join(',')}}`
}

function writeNode(node: GraphNode): string {
  // The lossless writer calls back for every value; most graphs have nothing that needs it.
  const document = toDocument(node)
  const isRare = holdsRareNumber(node.inputs) || (node.meta !== undefined && holdsRareNumber(node.meta))
  return isRare ? stringifyLosslessJson(document) : JSON.stringify(document)
}

function toDocument({ classType, inputs, meta }: GraphNode): JsonObject {
  const node = { class_type: classType, inputs }
  return meta === undefined ? node : { ...node, _meta: meta }
}

/** The number of values, at least 1; a long text counts as several. Stops counting above `enough`. */
function countValues(value: JsonValue, enough: number): number {
  if (typeof value === 'string') return 1 + Math.floor(value.length / 1000)
  if (typeof value !== 'object' || value === null || value instanceof NumberText) return 1
  let count = 1
  // Not by `in`: that is slow for what a body was read into.
  for (const part of Array.isArray(value) ? value : Object.values(value)) {
    count += countValues(part, enough - count)
    if (count > enough) break
  }
  return count
}

function holdsRareNumber(value: JsonValue): boolean {
  if (typeof value === 'bigint') return true
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(holdsRareNumber)
  return value instanceof NumberText || Object.values(value).some(holdsRareNumber)
}

// The part of a graph that some of its output nodes need. Pure.

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
