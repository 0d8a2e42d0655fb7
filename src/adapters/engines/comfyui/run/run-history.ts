/** What `/history` says about a run: how it ended, which alone decides, and whether it told all of its outputs. Pure. */

import type { Graph } from '../../../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'

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
