/**
 * Reads the editor's save format: version 0.4 (links as arrays) and 1.0 (links as objects), with or without subgraphs. Only the
 * shape is judged here. Members that the conversion does not need may hold anything.
 */
import { isJsonObject, type JsonObject, type JsonValue, NumberText } from '../../../../../lib/json/lossless-json.ts'
import { mapSteps, type Work } from '../../../../../lib/waiting/turns.ts'
import { refuseConversion } from '../../graph-refusals.ts'

/** A workflow as the editor saves it, read into one shape whatever its version: ids as text, links by id, slots as lists. */
export interface SavedInput {
  readonly name: string
  readonly type: string
  readonly link: string | null
  /** The widget that this input stands for. */
  readonly widget: string | null
}

interface SavedOutput {
  readonly type: string
  readonly links: readonly string[]
}

export interface SavedNode {
  readonly id: string
  readonly type: string
  readonly title: string
  readonly mode: number
  readonly inputs: readonly SavedInput[]
  readonly outputs: readonly SavedOutput[]
  /** In the order of the widgets; some packs save them by name. Absent: the node has none, or the file leaves them out. */
  readonly values: readonly JsonValue[] | JsonObject | null
  /** The same values by name, as newer editors write them beside the list. */
  readonly namedValues: JsonObject | null
  readonly properties: JsonObject
}

export interface SavedLink {
  readonly id: string
  readonly originId: string
  readonly originSlot: number
  readonly targetId: string
  readonly targetSlot: number
}

/** One input or output of a subgraph, seen from outside. */
export interface SavedIoSlot {
  readonly name: string
  readonly type: string
  readonly linkIds: readonly string[]
}

export interface SavedGraph {
  readonly nodes: readonly SavedNode[]
  readonly links: readonly SavedLink[]
}

export interface SavedSubgraph extends SavedGraph {
  readonly id: string
  readonly name: string
  readonly inputs: readonly SavedIoSlot[]
  readonly outputs: readonly SavedIoSlot[]
}

export interface SavedWorkflow extends SavedGraph {
  readonly subgraphs: readonly SavedSubgraph[]
  /** The highest node id that was given out, which new nodes count on from. */
  readonly lastNodeId: number
  /** Old group nodes by name, as they were written. */
  readonly groupNodes: JsonObject
}

/** The ids of the two places inside of a subgraph where its inputs come in and its outputs go out. */
export const IO_INPUT = '-10'
export const IO_OUTPUT = '-20'

export const MODE = { muted: 2, bypassed: 4 } as const

// Many times what real workflows have; all later work is bounded by these.
export const MAX_NODES = 20_000
export const MAX_LINKS = 100_000
const MAX_SLOTS = 1_000
const MAX_SUBGRAPHS = 2_000
const MAX_ID_LENGTH = 128
const MAX_NAME_LENGTH = 1_000
const MAX_NESTING = 100

/** Higher ids are no numbers to count on from: near 2^53 adding one changes nothing. */
export const MAX_COUNTED_ID = 2_147_483_647

interface Counts {
  nodes: number
  links: number
}

/** In steps, as everything here that a large file makes long. */
export function* readSavedSteps(value: JsonValue): Work<SavedWorkflow> {
  if (!isJsonObject(value) || !Array.isArray(value.nodes)) {
    refuseConversion('malformed_file', 'the file holds no workflow: an object with a list of nodes was expected')
  }
  const counts: Counts = { nodes: 0, links: 0 }
  const root = yield* readGraph(value, counts, 'the workflow')
  const subgraphs: SavedSubgraph[] = []
  yield* collectSubgraphs(value, { counts, subgraphs, depth: 0 })
  const extra = isJsonObject(value.extra) ? value.extra : {}
  const state = isJsonObject(value.state) ? value.state : {}
  return {
    ...root,
    subgraphs,
    lastNodeId: readCount(value.last_node_id) ?? readCount(state.lastNodeId) ?? 0,
    groupNodes: isJsonObject(extra.groupNodes) ? extra.groupNodes : {},
  }
}

interface Collecting {
  readonly counts: Counts
  readonly subgraphs: SavedSubgraph[]
  readonly depth: number
}

function* collectSubgraphs(graph: JsonObject, { counts, subgraphs, depth }: Collecting): Work<void> {
  const definitions = isJsonObject(graph.definitions) ? graph.definitions.subgraphs : undefined
  if (definitions === undefined || definitions === null) return
  if (!Array.isArray(definitions)) refuseConversion('malformed_file', 'definitions.subgraphs must be a list')
  if (depth > MAX_NESTING) refuseConversion('file_too_large', `subgraphs are defined more than ${MAX_NESTING} deep`)
  for (const definition of definitions) {
    subgraphs.push(yield* readSubgraph(definition, counts))
    if (subgraphs.length > MAX_SUBGRAPHS) {
      refuseConversion('file_too_large', `the file defines more than ${MAX_SUBGRAPHS} subgraphs`)
    }
    yield* collectSubgraphs(definition as JsonObject, { counts, subgraphs, depth: depth + 1 })
  }
}

function* readSubgraph(value: JsonValue, counts: Counts): Work<SavedSubgraph> {
  if (!isJsonObject(value) || typeof value.id !== 'string' || value.id.length > MAX_ID_LENGTH) {
    refuseConversion('malformed_file', 'a subgraph must be an object with an id')
  }
  const name = typeof value.name === 'string' ? value.name : value.id
  const place = `subgraph ${JSON.stringify(name)}`
  return {
    ...(yield* readGraph(value, counts, place)),
    id: value.id,
    name,
    inputs: readIoSlots(value.inputs, `${place}: inputs`),
    outputs: readIoSlots(value.outputs, `${place}: outputs`),
  }
}

function* readGraph(value: JsonObject, counts: Counts, place: string): Work<SavedGraph> {
  const nodes = readList(value.nodes, `${place}: nodes`)
  counts.nodes += nodes.length
  if (counts.nodes > MAX_NODES) refuseConversion('file_too_large', `the file has more than ${MAX_NODES} nodes`)
  const { links: written } = value
  // Some old tools write links as an object by id.
  const links = isJsonObject(written) ? Object.values(written) : readList(written, `${place}: links`)
  counts.links += links.length
  if (counts.links > MAX_LINKS) refuseConversion('file_too_large', `the file has more than ${MAX_LINKS} links`)
  return {
    nodes: yield* mapSteps(nodes, (node) => readNode(node, place)),
    // Deleted links leave holes in lists of old editors.
    links: yield* mapSteps(
      links.filter((link) => link !== null),
      (link) => readLink(link, place),
    ),
  }
}

function readNode(value: JsonValue, place: string): SavedNode {
  const id = isJsonObject(value) ? readId(value.id) : null
  if (!isJsonObject(value) || id === null) refuseConversion('malformed_file', `${place}: a node has no id`)
  const { type, title, mode, properties } = value
  if (typeof type !== 'string' || type.length > MAX_NAME_LENGTH)
    refuseConversion('malformed_file', `node ${id} has no type`, { nodeId: id })
  const values = value.widgets_values
  return {
    id,
    type,
    title: typeof title === 'string' ? title : '',
    mode: typeof mode === 'number' ? mode : 0,
    inputs: readSlots(value.inputs, id, 'inputs').map((slot) => readInput(slot, id)),
    outputs: readSlots(value.outputs, id, 'outputs').map((slot) => readOutput(slot, id)),
    values: Array.isArray(values) || isJsonObject(values) ? values : null,
    namedValues: isJsonObject(value.widgets_values_named) ? value.widgets_values_named : null,
    properties: isJsonObject(properties) ? properties : {},
  }
}

function readSlots(value: JsonValue | undefined, nodeId: string, member: string): readonly JsonValue[] {
  const slots = readList(value, `node ${nodeId}: ${member}`)
  if (slots.length > MAX_SLOTS) {
    refuseConversion('file_too_large', `node ${nodeId} has more than ${MAX_SLOTS} ${member}`, { nodeId })
  }
  return slots
}

function readInput(value: JsonValue, nodeId: string): SavedInput {
  if (!isJsonObject(value)) refuseConversion('malformed_file', `node ${nodeId}: an input is not an object`, { nodeId })
  const { name, link, widget } = value
  return {
    name: readName(name, nodeId),
    type: readType(value.type),
    link: readId(link),
    widget: isJsonObject(widget) && typeof widget.name === 'string' ? widget.name : null,
  }
}

function readName(value: JsonValue | undefined, nodeId: string): string {
  if (typeof value !== 'string') return ''
  if (value.length <= MAX_NAME_LENGTH) return value
  return refuseConversion('malformed_file', `node ${nodeId}: the name of an input is too long`, { nodeId })
}

function readOutput(value: JsonValue, nodeId: string): SavedOutput {
  if (!isJsonObject(value)) refuseConversion('malformed_file', `node ${nodeId}: an output is not an object`, { nodeId })
  return { type: readType(value.type), links: readIds(value.links) }
}

function readIoSlots(value: JsonValue | undefined, place: string): SavedIoSlot[] {
  const slots = readList(value, place)
  if (slots.length > MAX_SLOTS) refuseConversion('file_too_large', `${place}: there are more than ${MAX_SLOTS}`)
  return slots.map((slot) => readIoSlot(slot, place))
}

function readIoSlot(value: JsonValue, place: string): SavedIoSlot {
  if (!isJsonObject(value)) refuseConversion('malformed_file', `${place}: an input or output is not an object`)
  const { name } = value
  return { name: typeof name === 'string' ? name : '', type: readType(value.type), linkIds: readIds(value.linkIds) }
}

function readLink(value: JsonValue, place: string): SavedLink {
  const [id, origin, originSlot, target, targetSlot] = isJsonObject(value)
    ? [value.id, value.origin_id, value.origin_slot, value.target_id, value.target_slot]
    : Array.isArray(value)
      ? value
      : []
  const ids = [readId(id), readId(origin), readId(target)] as const
  if (ids.includes(null)) refuseConversion('malformed_file', `${place}: a link does not say what it connects`)
  return {
    id: ids[0] as string,
    originId: ids[1] as string,
    originSlot: readSlotIndex(originSlot),
    targetId: ids[2] as string,
    targetSlot: readSlotIndex(targetSlot),
  }
}

/** The wildcard for anything that is no type; a list of choices is what old editors wrote for a combo. */
function readType(value: JsonValue | undefined): string {
  if (Array.isArray(value)) return 'COMBO'
  return typeof value === 'string' && value !== '' && value.length <= MAX_NAME_LENGTH ? value : '*'
}

export function readId(value: JsonValue | undefined): string | null {
  if (typeof value === 'string' && value.length <= MAX_ID_LENGTH) return value
  if (typeof value === 'number' || typeof value === 'bigint') return String(value)
  return value instanceof NumberText ? String(value.value) : null
}

function readIds(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.map(readId).filter((id) => id !== null) : []
}

/** -1, which no slot has, for anything that is no index. */
function readSlotIndex(value: JsonValue | undefined): number {
  const index = typeof value === 'string' ? Number.parseInt(value, 10) : value
  return typeof index === 'number' && Number.isSafeInteger(index) && index >= 0 ? index : -1
}

function readCount(value: JsonValue | undefined): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_COUNTED_ID ? value : null
}

function readList(value: JsonValue | undefined, place: string): readonly JsonValue[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) refuseConversion('malformed_file', `${place} must be a list`)
  return value
}
