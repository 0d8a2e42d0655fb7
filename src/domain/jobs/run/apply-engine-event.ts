/**
 * Folds the engine's events of one attempt into progress, log, reported items and, at the end, an outcome.
 * It decides nothing about leases, cancels or storage. Engines may repeat themselves: a repeated report brings nothing new,
 * and whatever follows the outcome is ignored. States of one attempt share what they count, so only the newest may be used.
 */
import type { Graph } from '../../../../engine/graph/graph.ts'
import type { EngineEvent, EngineFailure, NodeReport, ReportedItem } from '../../../../engine/graph/run-event.ts'
import { keepHead, keepTail } from '../../../../lib/text/cut-text.ts'
import type { JobError, Progress } from '../job.ts'
import {
  completeProgress,
  countNodes,
  nodeFinished,
  nodeStarted,
  nodeStepped,
  type ProgressState,
  skipCached,
  startProgress,
} from './progress.ts'
import { appendLog, EMPTY_LOG, type LogTail } from './record/log-lines.ts'
import { copyHead, toJsonText } from './record/report-text.ts'

/** One item of a node's report, with its key and index there. */
export interface Reported {
  readonly nodeId: string
  readonly key: string
  readonly index: number
  readonly item: ReportedItem
}

export type RunOutcome =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed'; readonly error: JobError }
  | { readonly kind: 'interrupted' }

export interface RunFold {
  readonly progress: ProgressState
  readonly log: LogTail
  readonly outputsReused: boolean
  /** Some of what was reported is an earlier run's: its files remember the graph and the notes of that run. */
  readonly hasOldReport: boolean
  /** What the latest event reported; empty after every other event. */
  readonly fresh: readonly Reported[]
  readonly reportedCount: number
  readonly seenReports: Set<string>
  readonly outcome: RunOutcome | null
}

interface StartOptions {
  readonly graph: Graph
  readonly earlierProgress: Progress | null
}

const NOTHING: readonly Reported[] = []
// A message is read by people and a traceback by developers; an engine that prints megabytes must not fill the job row.
const MESSAGE_MAX_BYTES = 16_384
const TRACEBACK_MAX_BYTES = 65_536
const NAME_MAX_LENGTH = 512
const SIGNATURE_VALUE_LENGTH = 256

export function startFold({ graph, earlierProgress }: StartOptions): RunFold {
  return {
    progress: startProgress(graph, earlierProgress),
    log: EMPTY_LOG,
    outputsReused: false,
    hasOldReport: false,
    fresh: NOTHING,
    reportedCount: 0,
    seenReports: new Set(),
    outcome: null,
  }
}

export function applyEngineEvent(before: RunFold, event: EngineEvent): RunFold {
  if (before.outcome !== null) return before.fresh === NOTHING ? before : { ...before, fresh: NOTHING }
  const state = before.fresh === NOTHING ? before : { ...before, fresh: NOTHING }
  switch (event.type) {
    case 'started':
      return { ...state, progress: countNodes(state.progress, event.nodesTotal) }
    case 'cached':
      if (event.nodeIds.length === 0) return state
      return { ...state, outputsReused: true, progress: skipCached(state.progress, event.nodeIds) }
    case 'node_started':
      return { ...state, progress: nodeStarted(state.progress, event) }
    case 'node_progress':
      return { ...state, progress: nodeStepped(state.progress, event, event) }
    case 'node_finished':
      return { ...state, progress: nodeFinished(state.progress, event) }
    case 'node_report':
      return applyReport(state, event.displayNodeId, event)
    case 'node_blocked':
      // A blocked branch is no failure: the run goes on and may succeed. Its author finds the reason in the log.
      return { ...state, log: appendLog(state.log, `[${event.displayNodeId}] Execution Blocked: ${event.message}\n`) }
    case 'log':
      return { ...state, log: appendLog(state.log, event.text) }
    case 'preview':
    case 'node_text':
      return state
    case 'succeeded':
      return { ...state, outcome: { kind: 'succeeded' }, progress: completeProgress(state.progress) }
    case 'failed':
      if (event.failure.exceptionType === 'ExecutionBlocked') return state
      return { ...state, outcome: { kind: 'failed', error: toJobError(event.failure) } }
    case 'interrupted':
      return { ...state, outcome: { kind: 'interrupted' } }
  }
}

function applyReport(
  state: RunFold,
  nodeId: string,
  event: { readonly nodeId: string; readonly report: NodeReport; readonly cached: boolean },
): RunFold {
  const fresh: Reported[] = []
  let signature = event.nodeId
  for (const [key, items] of Object.entries(event.report)) {
    signature += `\n${key}`
    for (const [index, item] of items.entries()) {
      fresh.push({ nodeId, key, index, item })
      signature += `\t${signItem(item)}`
    }
  }
  if (state.seenReports.has(signature)) return state
  state.seenReports.add(signature)
  return {
    ...state,
    fresh,
    reportedCount: state.reportedCount + fresh.length,
    outputsReused: state.outputsReused || event.cached,
    hasOldReport: state.hasOldReport || event.cached,
  }
}

function signItem(item: ReportedItem): string {
  if (item.kind === 'file') return `${item.folder}/${item.subfolder}/${item.filename}`
  const text = typeof item.value === 'string' ? item.value : toJsonText(item.value)
  return `${text.length}:${copyHead(text, SIGNATURE_VALUE_LENGTH)}`
}

function toJobError(failure: EngineFailure): JobError {
  return {
    code: failure.code.slice(0, NAME_MAX_LENGTH),
    message: keepHead(failure.message, MESSAGE_MAX_BYTES),
    nodeId: failure.nodeId?.slice(0, NAME_MAX_LENGTH) ?? null,
    classType: failure.classType?.slice(0, NAME_MAX_LENGTH) ?? null,
    // The innermost frame stands last.
    traceback: failure.traceback === null ? null : keepTail(failure.traceback, TRACEBACK_MAX_BYTES),
  }
}
