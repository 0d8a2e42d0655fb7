/**
 * From the messages of a ComfyUI socket to engine events, for one run, purely: the same messages give the same events. Only
 * messages of this run arrive here (see message-dispatcher.ts). Nothing here ends a run: what a message that looks like an end
 * is worth is decided by whoever follows the run. Newer servers tell a node's state twice (`progress_state` beside `executing` and `progress`); it
 * becomes one event.
 */

import type { Graph } from '../../../../../engine/graph/graph.ts'
import type { EngineEvent, NodeRef } from '../../../../../engine/graph/run-event.ts'
import { isJsonObject, type JsonObject, type JsonValue, NumberText } from '../../../../../lib/json/lossless-json.ts'
import {
  type EngineMessage,
  type JsonMessage,
  type PreviewMessage,
  type TextMessage,
  toText,
} from '../wire/socket-frames.ts'

/** A node's UI output as the server words it; the files in it are read later. */
export interface Executed extends NodeRef {
  readonly type: 'executed'
  readonly output: JsonObject
  readonly cached: boolean
}

type NodeEvent = Exclude<EngineEvent, { type: 'node_report' | 'started' | 'succeeded' | 'failed' | 'interrupted' }>

export type Translated = NodeEvent | Executed

interface NodeState {
  readonly ref: NodeRef
  readonly isRunning: boolean
  readonly value: number
  readonly max: number
  /** An event has told this step. */
  readonly isTold: boolean
}

/** A class whose pictures are sent over the socket and exist nowhere else. */
export const SENDS_RESULTS = 'SaveImageWebsocket'

export interface TranslateState {
  readonly graph: Graph
  readonly cached: ReadonlySet<string>
  readonly nodes: ReadonlyMap<string, NodeState>
  /** The node that the server last reported as executing. */
  readonly current: NodeRef | null
  /** The server said that it has recorded the run and goes on to the next. */
  readonly isRecorded: boolean
  /** The server tells `progress_state`; then `executing` says nothing about ends. */
  readonly tellsStates: boolean
  /** The error that came over the socket; the history may have fewer details. */
  readonly error: JsonObject | null
  /** The server said that the run is over, and how. */
  readonly end: 'success' | 'error' | 'interrupted' | 'over' | null
}

interface Translation {
  readonly state: TranslateState
  readonly events: readonly Translated[]
}

export function startTranslation(graph: Graph): TranslateState {
  return {
    graph,
    cached: new Set(),
    nodes: new Map(),
    current: null,
    isRecorded: false,
    tellsStates: false,
    error: null,
    end: null,
  }
}

const NOTHING: readonly Translated[] = []

type Handler = (state: TranslateState, data: JsonObject) => Translation

const HANDLERS: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['execution_cached', onCached],
  ['progress_state', onProgressState],
  ['executing', onExecuting],
  ['progress', onProgress],
  ['executed', onExecuted],
  ['execution_error', onError],
  ['execution_success', (state) => silent({ ...state, end: 'success' })],
  ['execution_interrupted', (state) => silent({ ...state, end: 'interrupted' })],
])

export function translate(state: TranslateState, message: EngineMessage): Translation {
  if (message.kind === 'preview') return onPreview(state, message)
  if (message.kind === 'text') return onText(state, message)
  return onJson(state, message)
}

function onJson(state: TranslateState, { type, data }: JsonMessage): Translation {
  return HANDLERS.get(type)?.(state, data) ?? silent(state)
}

function silent(state: TranslateState): Translation {
  return { state, events: NOTHING }
}

function onCached(state: TranslateState, { nodes }: JsonObject): Translation {
  const nodeIds = Array.isArray(nodes) ? nodes.filter((id) => typeof id === 'string') : []
  return { state: { ...state, cached: new Set(nodeIds) }, events: [{ type: 'cached', nodeIds }] }
}

function onProgressState(state: TranslateState, { nodes }: JsonObject): Translation {
  if (!isJsonObject(nodes)) return silent(state)
  const known = new Map(state.nodes)
  const events: Translated[] = []
  for (const [nodeId, told] of Object.entries(nodes)) {
    if (!isJsonObject(told)) continue
    const ref = toRef(state.graph, {
      nodeId,
      displayNodeId: toText(told.display_node_id) ?? toText(told.real_node_id),
      parentNodeId: toText(told.parent_node_id),
    })
    const before = known.get(nodeId)
    const [value, max] = [toNumber(told.value), toNumber(told.max)]
    const isRunning = told.state === 'running'
    // A cached output only ever shows as finished: it never ran.
    if (state.cached.has(nodeId) && !isRunning) continue
    // Every node begins with 0 of 1; a value that differs from the last one told is a step.
    const isStep = isRunning && (value !== (before?.value ?? 0) || max !== (before?.max ?? 1))
    const isTold = isStep || (before?.isTold === true && before.value === value && before.max === max)
    if (isRunning && !before?.isRunning) events.push({ type: 'node_started', ...ref })
    if (isStep) events.push({ type: 'node_progress', ...ref, value, max })
    if (told.state === 'finished' && before?.isRunning !== false) events.push({ type: 'node_finished', ...ref })
    known.set(nodeId, { ref, isRunning, value, max, isTold })
  }
  return { state: { ...state, nodes: known, tellsStates: true }, events }
}

function onExecuting(state: TranslateState, data: JsonObject): Translation {
  const nodeId = toText(data.node)
  const ended = state.tellsStates || state.current === null ? NOTHING : finish(state, state.current)
  if (nodeId === null) {
    return { state: { ...state, current: null, end: state.end ?? 'over', isRecorded: true }, events: ended }
  }
  const ref = toRef(state.graph, { nodeId, displayNodeId: toText(data.display_node), parentNodeId: null })
  const known = state.nodes.get(nodeId)
  if (known?.isRunning) return { state: { ...state, current: known.ref }, events: NOTHING }
  const nodes = new Map(state.nodes).set(nodeId, { ref, isRunning: true, value: 0, max: 1, isTold: false })
  return { state: { ...state, current: ref, nodes }, events: [...ended, { type: 'node_started', ...ref }] }
}

/** For servers that never say that a node has finished: it has when the next one begins. */
function finish(state: TranslateState, ref: NodeRef): readonly Translated[] {
  return state.end === 'error' || state.end === 'interrupted' ? NOTHING : [{ type: 'node_finished', ...ref }]
}

function onProgress(state: TranslateState, data: JsonObject): Translation {
  const nodeId = toText(data.node) ?? state.current?.nodeId ?? null
  if (nodeId === null) return silent(state)
  const [value, max] = [toNumber(data.value), toNumber(data.max)]
  const known = state.nodes.get(nodeId)
  // `progress_state` has told the same step just before.
  if (known?.isTold && known.value === value && known.max === max) return silent(state)
  const ref = known?.ref ?? toRef(state.graph, { nodeId, displayNodeId: null, parentNodeId: null })
  const nodes = new Map(state.nodes).set(nodeId, { ref, isRunning: true, value, max, isTold: true })
  return { state: { ...state, nodes }, events: [{ type: 'node_progress', ...ref, value, max }] }
}

function onExecuted(state: TranslateState, data: JsonObject): Translation {
  const nodeId = toText(data.node)
  if (nodeId === null || !isJsonObject(data.output)) return silent(state)
  const displayNodeId = toText(data.display_node)
  const parentNodeId = state.nodes.get(nodeId)?.ref.parentNodeId ?? null
  const ref = toRef(state.graph, { nodeId, displayNodeId, parentNodeId })
  return {
    state,
    events: [{ type: 'executed', ...ref, output: data.output, cached: state.cached.has(nodeId) }],
  }
}

const BLOCKED = 'ExecutionBlocked'
const BLOCKED_PREFIX = /^Execution Blocked: /

function onError(state: TranslateState, data: JsonObject): Translation {
  if (data.exception_type !== BLOCKED) return silent({ ...state, error: data, end: 'error' })
  const nodeId = toText(data.node_id) ?? ''
  const ref = toRef(state.graph, { nodeId, displayNodeId: null, parentNodeId: null })
  const message = (toText(data.exception_message) ?? '').replace(BLOCKED_PREFIX, '').trimEnd()
  return { state, events: [{ type: 'node_blocked', ...ref, message }] }
}

/** A preview belongs to the step before it; one that comes ahead of its step brings the step with it. */
function onPreview(state: TranslateState, message: PreviewMessage): Translation {
  const { contentType, bytes, displayNodeId, parentNodeId, nodeId } = message
  const ref = nodeId === null ? state.current : toRef(state.graph, { nodeId, displayNodeId, parentNodeId })
  if (ref === null) return silent(state)
  const isResult = ref.classType === SENDS_RESULTS
  const preview: Translated = { type: 'preview', ...ref, contentType, bytes, ...(isResult && { isResult }) }
  const known = state.nodes.get(ref.nodeId)
  if (known === undefined || known.isTold || !isResult) return { state, events: [preview] }
  const { value, max } = known
  const nodes = new Map(state.nodes).set(ref.nodeId, { ...known, isTold: true })
  return { state: { ...state, nodes }, events: [{ type: 'node_progress', ...ref, value, max }, preview] }
}

function onText(state: TranslateState, { nodeId, text }: TextMessage): Translation {
  const known = state.nodes.get(nodeId)?.ref
  // Such frames go to all clients: a node that is not in this graph belongs to another run.
  if (known === undefined && !state.graph.has(nodeId)) return silent(state)
  const ref = known ?? toRef(state.graph, { nodeId, displayNodeId: null, parentNodeId: null })
  return { state, events: [{ type: 'node_text', ...ref, text }] }
}

interface NodeIds {
  readonly nodeId: string
  readonly displayNodeId: string | null
  readonly parentNodeId: string | null
}

/** For nodes made by expansion the server does not tell the class, so they get that of the node they were expanded from. */
export function toRef(graph: Graph, { nodeId, displayNodeId, parentNodeId }: NodeIds): NodeRef {
  const display = displayNodeId ?? nodeId
  const classType = (graph.get(nodeId) ?? graph.get(display))?.classType ?? ''
  return { nodeId, classType, displayNodeId: display, parentNodeId }
}

function toNumber(value: JsonValue | undefined): number {
  if (typeof value === 'number') return value
  if (value instanceof NumberText) return value.value
  return typeof value === 'bigint' ? Number(value) : 0
}
