/**
 * What is kept of a submit, to be shown with the job later: the key that it came with, the files that its graph names, and where
 * an editor had put its nodes. Bounded, and without a word that the run needs: what the run needs goes with its end.
 */
import { NumberText } from '../../../../lib/json/lossless-json.ts'
import { readTraceContext, type TraceContext, toTraceparent } from '../../../../lib/tracing/trace-context.ts'
import type { JobInput } from '../job.ts'

export interface JobOrigin {
  readonly idempotencyKey: string | null
  readonly inputs: readonly JobInput[]
  /** There were more files than are listed. */
  readonly areInputsCut: boolean
  readonly layout: GraphLayout | null
  /** The trace that the submit belonged to; null: none. */
  readonly trace: TraceContext | null
}

export const NO_ORIGIN: JobOrigin = {
  ...{ idempotencyKey: null, inputs: [], areInputsCut: false, layout: null, trace: null },
}

const MAX_INPUTS = 200
const MAX_NAME_LENGTH = 500

/** null: there is nothing to keep. */
export function toOrigin(
  idempotencyKey: string | null,
  inputs: readonly JobInput[],
  layout: GraphLayout | null,
  trace: TraceContext | null,
): JobOrigin | null {
  if (idempotencyKey === null && inputs.length === 0 && layout === null && trace === null) return null
  const kept = inputs.filter(({ name }) => name.length <= MAX_NAME_LENGTH).slice(0, MAX_INPUTS)
  return { idempotencyKey, inputs: kept, areInputsCut: kept.length < inputs.length, layout, trace }
}

/** As it is stored: what is not there is left out, and lists are shorter than objects. */
interface StoredOrigin {
  readonly key?: string
  readonly inputs?: readonly (readonly [name: string, hash: string, sizeBytes: number, contentType: string])[]
  readonly areInputsCut?: true
  readonly layout?: GraphLayout
  readonly trace?: StoredTrace
}

/** As its two headers were. */
type StoredTrace = readonly [traceparent: string, tracestate?: string]

export function writeOrigin({ idempotencyKey, inputs, areInputsCut, layout, trace }: JobOrigin): string {
  // With traces on, most jobs have this alone. It has no letter that JSON writes otherwise.
  const isTraceAlone = trace !== null && idempotencyKey === null && inputs.length === 0 && layout === null
  if (isTraceAlone && trace.state === '') return `{"trace":["${toTraceparent(trace)}"]}`
  const stored: StoredOrigin = {
    ...(idempotencyKey !== null && { key: idempotencyKey }),
    ...(inputs.length > 0 && {
      inputs: inputs.map(({ name, hash, sizeBytes, contentType }) => [name, hash, sizeBytes, contentType] as const),
    }),
    ...(areInputsCut && { areInputsCut }),
    ...(layout !== null && { layout }),
    ...(trace !== null && { trace: writeTrace(trace) }),
  }
  return JSON.stringify(stored)
}

export function readOrigin(text: string | null): JobOrigin {
  if (text === null) return NO_ORIGIN
  const { key = null, inputs = [], areInputsCut = false, layout = null, trace } = JSON.parse(text) as StoredOrigin
  return {
    idempotencyKey: key,
    inputs: inputs.map(([name, hash, sizeBytes, contentType]) => ({ name, hash, sizeBytes, contentType })),
    areInputsCut,
    layout,
    trace: trace === undefined ? null : readTraceContext(...trace),
  }
}

function writeTrace(trace: TraceContext): StoredTrace {
  return trace.state === '' ? [toTraceparent(trace)] : [toTraceparent(trace), trace.state]
}

/** Where an editor had put the nodes of a workflow, read from what it sent along. Nothing in it is trusted, and all of it is bounded. */
interface PlacedNode {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
  readonly title: string | null
  readonly color: string | null
}

interface PlacedGroup extends Omit<PlacedNode, 'title'> {
  readonly title: string
}

export interface GraphLayout {
  /** By the id of the node. */
  readonly nodes: Readonly<Record<string, PlacedNode>>
  readonly groups: readonly PlacedGroup[]
}

type Json = unknown

const MAX_NODES = 10_000
const MAX_GROUPS = 1000
const MAX_TITLE = 200
// Of an id and of a node without its title, in JSON.
const MAX_ID = 100
const NODE_LENGTH = 80
// Kept with every such job: a layout that is larger is not.
const MAX_KEPT_LENGTH = 262_144

/** `extraData` as it was sent. null: nothing was sent along, or nothing that says where nodes are. */
export function readLayout(extraData: Json): GraphLayout | null {
  const workflow = member(member(extraData, 'extra_pnginfo'), 'workflow')
  const nodes = nodesOf(extraData).slice(0, MAX_NODES)
  const placed = nodes.flatMap((node): [string, PlacedNode][] => {
    const [x, y] = toNumbers(member(node, 'pos'), 2)
    const id = member(node, 'id')
    if (x === undefined || y === undefined || !isId(id)) return []
    const [w = 210, h = 100] = toNumbers(member(node, 'size'), 2)
    return [[String(id), { x, y, w, h, title: toText(member(node, 'title')), color: toColor(member(node, 'color')) }]]
  })
  if (placed.length === 0) return null
  const groups = listOf(member(workflow, 'groups')).slice(0, MAX_GROUPS).flatMap(toGroup)
  return { nodes: Object.fromEntries(placed), groups }
}

/** As a job keeps it; null also where it would be too large, which is known before it is read. */
export function readKeptLayout(extraData: Json): GraphLayout | null {
  return nodesOf(extraData).length * NODE_LENGTH > MAX_KEPT_LENGTH ? null : toKeptLayout(readLayout(extraData))
}

function nodesOf(extraData: Json): Json[] {
  return listOf(member(member(member(extraData, 'extra_pnginfo'), 'workflow'), 'nodes'))
}

/** null where it is too large to be kept with a job. */
export function toKeptLayout(layout: GraphLayout | null): GraphLayout | null {
  if (layout === null) return null
  const parts = [...Object.entries(layout.nodes), ...layout.groups.map((group) => ['', group] as const)]
  const length = parts.reduce((sum, [id, { title }]) => sum + NODE_LENGTH + id.length + (title?.length ?? 0), 0)
  return length <= MAX_KEPT_LENGTH ? layout : null
}

function isId(id: Json): id is number | bigint | string {
  return typeof id === 'number' || typeof id === 'bigint' || (typeof id === 'string' && id.length <= MAX_ID)
}

function toGroup(group: Json): PlacedGroup[] {
  const [x, y, w, h] = toNumbers(member(group, 'bounding'), 4)
  if (x === undefined || y === undefined || w === undefined || h === undefined) return []
  return [{ title: toText(member(group, 'title')) ?? '', x, y, w, h, color: toColor(member(group, 'color')) }]
}

function member(value: Json, name: string): Json {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, Json>)[name]
    : undefined
}

function listOf(value: Json): Json[] {
  return Array.isArray(value) ? value : []
}

/** Editors write a pair as a list, or as an object with the names 0 and 1. */
function toNumbers(value: Json, count: number): number[] {
  const list = Array.isArray(value) ? value : Array.from({ length: count }, (_, index) => member(value, String(index)))
  const numbers = list
    .slice(0, count)
    .map((each) => (each instanceof NumberText ? each.value : typeof each === 'bigint' ? Number(each) : each))
  return numbers.every((each) => typeof each === 'number' && Number.isFinite(each)) ? (numbers as number[]) : []
}

function toText(value: Json): string | null {
  return typeof value === 'string' ? value.slice(0, MAX_TITLE).toWellFormed() : null
}

const COLOR = /^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i

function toColor(value: Json): string | null {
  return typeof value === 'string' && COLOR.test(value) ? value : null
}
