/**
 * How a run ends when the server's history does not say it: as an outcome of the job where that much is known, else as a lost
 * attempt (EngineLostError), which another engine may repeat. Pure.
 */

import type { Graph } from '../../../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import type { EngineFailure, OutcomeEvent } from '../../../../../engine/graph/run-event.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import { EngineLostError } from '../../../../domain/engine/engine-lost-error.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import type { CallError } from '../wire/comfy-http.ts'
import { type FailureCode, type FailureContext, toFailure } from './node-failure.ts'
import type { TranslateState } from './translate-messages.ts'

/** Why a waiting run was withdrawn. `idle`: nothing ran on the server. `still`: the same prompt ran for too long. */
export type Standstill = 'idle' | 'still'

export interface EndingContext {
  readonly bounds: Pick<ComfyBounds, 'idleMs' | 'queueStillMs' | 'stallMs'>
  /** The run was to be stopped: then whatever else ended it, it was interrupted. */
  readonly isStopped: boolean
  readonly emitter: {
    /** What the socket said. */
    readonly heard: Pick<TranslateState, 'end' | 'error' | 'current'>
    /** Nodes whose report was emitted. */
    readonly reported: ReadonlySet<string>
  }
  readonly failure: FailureContext
}

const INTERRUPTED: OutcomeEvent = { type: 'interrupted' }

export function endWithdrawn(why: Standstill, { bounds, isStopped }: EndingContext): OutcomeEvent {
  if (isStopped) return INTERRUPTED
  const isIdle = why === 'idle'
  const seconds = Math.round((isIdle ? bounds.idleMs : bounds.queueStillMs) / 1000)
  const what = isIdle ? 'nothing ran there' : 'it stood behind the same prompt, and nothing was heard of that'
  const message = `the engine did not begin the run: for ${seconds} s ${what}`
  throw new EngineLostError('engine_idle', message, { isUnfit: isIdle, isUntouched: true })
}

/** The server began the run while it was being withdrawn, and the interrupt ended it. */
export function beganLate(): EngineLostError {
  return new EngineLostError('engine_idle', 'the engine began the run only while it was withdrawn')
}

/** The server's thread that runs prompts seems dead. A node that was running is blamed: repeated, it would kill the next server. */
export function endUnrecorded({ emitter, failure, isStopped }: EndingContext): OutcomeEvent {
  const { error, current } = emitter.heard
  if (hasSucceeded(emitter)) return { type: 'succeeded' }
  if (error !== null) return { type: 'failed', failure: toFailure(error, failure) }
  if (isStopped) return INTERRUPTED
  if (current !== null) return failAtNode(emitter, 'node_execution_error', (node) => `the engine's worker died${node}`)
  throw new EngineLostError('engine_stuck', 'the thread of the engine that runs prompts has died', { isUnfit: true })
}

export function endStalled({ emitter, bounds }: EndingContext): OutcomeEvent {
  const seconds = Math.round((bounds.stallMs ?? 0) / 1000)
  return failAtNode(emitter, 'stalled', (node) => `nothing happened${node} for ${seconds} s; the run was stopped`)
}

/** The run is in neither queue nor history. null: the server has forgotten it, and what became of it is not known. */
export function endForgotten({ emitter, isStopped }: EndingContext): OutcomeEvent | null {
  if (hasSucceeded(emitter)) return { type: 'succeeded' }
  return isStopped ? INTERRUPTED : null
}

/** An attempt that was lost because the server could not be talked to. */
export function lostByCall(what: string, cause: CallError): EngineLostError {
  const code = cause.fault === 'status' || cause.fault === 'malformed' ? 'engine_overloaded' : 'engine_unreachable'
  return new EngineLostError(code, `${what}: ${cause.message}`, { cause })
}

export function failed(code: FailureCode, message: string, node: Partial<EngineFailure> = {}): OutcomeEvent {
  const unknown = { nodeId: null, classType: null, traceback: null, exceptionType: 'EngineError' }
  return { type: 'failed', failure: { code, message, ...unknown, ...node } }
}

/** The socket told of a success, and outputs came with it. */
function hasSucceeded({ heard, reported }: EndingContext['emitter']): boolean {
  return heard.end === 'success' && reported.size > 0
}

/** In the node that was running, as far as that is known. */
function failAtNode(
  { heard }: EndingContext['emitter'],
  code: FailureCode,
  toMessage: (node: string) => string,
): OutcomeEvent {
  const { current } = heard
  const node = current === null ? '' : ` in node ${current.displayNodeId} (${current.classType})`
  const about = { nodeId: current?.displayNodeId ?? null, classType: current?.classType ?? null }
  return failed(code, toMessage(node), about)
}

/** What `/history` says about a run: how it ended, which alone decides, and whether it told all of its outputs. Pure. */
export interface HistoryEntry {
  readonly outcome: 'success' | 'error' | 'interrupted'
  /** The body of `execution_error`, when there is one. */
  readonly error: JsonObject | null
  readonly cached: ReadonlySet<string>
  /** UI outputs by node, as far as the run came. */
  readonly outputs: readonly (readonly [nodeId: string, output: JsonObject])[]
  /** By the server's clock; null when it does not say. */
  readonly startedAt: number | null
  readonly endedAt: number | null
  /** By node: for nodes made by expansion it names the node that they were expanded from. */
  readonly meta: JsonObject
}

type Messages = ReadonlyMap<string, JsonObject>

export function readHistory(entry: JsonObject): HistoryEntry {
  const status = isJsonObject(entry.status) ? entry.status : null
  const messages = readMessages(status?.messages)
  const error = messages.get('execution_error') ?? null
  const outputs = isJsonObject(entry.outputs) ? entry.outputs : {}
  return {
    outcome: readOutcome(status, messages),
    error,
    cached: new Set(readIds(messages.get('execution_cached')?.nodes)),
    outputs: Object.entries(outputs).filter((pair): pair is [string, JsonObject] => isJsonObject(pair[1])),
    startedAt: timeOf(messages, ['execution_start']),
    endedAt: timeOf(messages, ['execution_success', 'execution_error', 'execution_interrupted']),
    meta: isJsonObject(entry.meta) ? entry.meta : {},
  }
}

function readOutcome(status: JsonObject | null, messages: Messages): HistoryEntry['outcome'] {
  if (messages.has('execution_interrupted')) return 'interrupted'
  if (status === null) return 'success' // servers before status existed only record runs that went well
  if (status.status_str !== 'success' || messages.has('execution_error')) return 'error'
  // A cycle that is found at run time is recorded with the status `success` but without its message: it never ran to its end.
  const hasEnded = messages.has('execution_success') || !messages.has('execution_start')
  return hasEnded ? 'success' : 'error'
}

function readMessages(value: JsonValue | undefined): Messages {
  const messages = new Map<string, JsonObject>()
  if (!Array.isArray(value)) return messages
  for (const message of value) {
    if (!Array.isArray(message) || typeof message[0] !== 'string') continue
    messages.set(message[0], isJsonObject(message[1]) ? message[1] : {})
  }
  return messages
}

function timeOf(messages: Messages, types: readonly string[]): number | null {
  const times = types.map((type) => messages.get(type)?.timestamp)
  return times.find((time) => typeof time === 'number') ?? null
}

function readIds(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((id) => typeof id === 'string') : []
}

interface ReportsOfRun {
  readonly graph: Graph
  readonly catalog: NodeCatalog
  readonly entry: HistoryEntry
  /** Nodes whose report came over the socket. */
  readonly reported: ReadonlySet<string>
  /** Nodes that were seen to run. */
  readonly ran: ReadonlySet<string>
  /** Classes that were found to report nothing even when they run. */
  readonly silentClasses: ReadonlySet<string>
}

/** Classes that report a file or a text whenever they run. */
export const ALWAYS_REPORTS: ReadonlySet<string> = new Set([
  'SaveImage',
  'PreviewImage',
  'PreviewAny',
  'SaveAnimatedWEBP',
  'SaveAnimatedPNG',
  'SaveImageAdvanced',
  'SaveVideo',
  'SaveWEBM',
  'SaveAudio',
  'SaveAudioMP3',
  'SaveAudioOpus',
  'PreviewAudio',
  'SaveLatent',
  'SaveText',
])

/**
 * Output nodes that should have reported and did not. Some servers answer a run whose outputs were cached with success and no
 * outputs at all: such a node has to be made to run. A node that ran and reported nothing has nothing to report, and neither has
 * one in the cache of a server that tells what others in its cache had.
 */
export function missingReports({ graph, catalog, entry, reported, ran, silentClasses }: ReportsOfRun): string[] {
  const told = new Set([...reported, ...entry.outputs.map(([nodeId]) => nodeId)])
  const tellsCached = told.values().some((nodeId) => entry.cached.has(nodeId))
  return [...graph].flatMap(([nodeId, { classType }]) => {
    if (catalog.find(classType)?.output_node !== true || told.has(nodeId) || silentClasses.has(classType)) return []
    const isCached = entry.cached.has(nodeId) && !tellsCached
    const isEmptied = told.size === 0 && !ran.has(nodeId) && ALWAYS_REPORTS.has(classType)
    return isCached || isEmptied ? [nodeId] : []
  })
}
