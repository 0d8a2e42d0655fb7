/**
 * What clients saw of a run, in the engine's own terms: which nodes were cached, what each node showed, where it stopped. A client
 * that shows the run later needs it besides the outputs. Bounded whatever a node reports; written once, with the end of the run.
 */
import type { EngineEvent, EngineFailure } from '../../../../../engine/graph/run-event.ts'
import type { LiveReport } from '../../../events/live-event.ts'
import { createNodeSpans, type SpanFields, toSpanFields } from './node-spans.ts'
import { copyHead } from './report-text.ts'

/** A file as the engine named it, or a plain value. */
export type ShownItem =
  | { readonly filename: string; readonly subfolder: string; readonly type: 'output' | 'temp' | 'input' }
  | string
  | number
  | boolean
  | null
  | object

export interface ShownNode {
  readonly nodeId: string
  readonly displayNodeId: string
  readonly parentNodeId: string | null
  readonly output: Readonly<Record<string, readonly ShownItem[]>>
}

interface RunFailure {
  readonly exceptionType: string
  readonly currentInputs: Readonly<Record<string, readonly unknown[]>>
  readonly currentOutputs: readonly string[]
}

export interface RunRecord {
  readonly startedAtMs: number
  readonly cached: { readonly nodeIds: readonly string[]; readonly atMs: number }
  /** In the order in which they were shown first. */
  readonly nodes: readonly ShownNode[]
  /** Nodes that this run itself finished. */
  readonly executed: readonly string[]
  /** The node at work when the run stopped before its end. */
  readonly stoppedAt: { readonly nodeId: string; readonly classType: string } | null
  readonly failure: RunFailure | null
  readonly endedAtMs: number
  /** When each node ran; left out: it was not noted. */
  readonly spans?: readonly SpanFields[]
  /** There were more nodes than are told of. */
  readonly areSpansCut?: true
}

/** The record as it grows. Mutable, because a run has thousands of events and exactly one owner. */
export interface RunRecorder {
  take(event: EngineEvent, atMs: number): void
  /** null when the engine never began. */
  finish(atMs: number): RunRecord | null
}

// A history entry is read whole: what is shown must stay small, and the outputs of the job hold everything anyway.
const MAX_TEXT_LENGTH = 65_536
const MAX_SHOWN_LENGTH = 2 * 1024 * 1024
const MAX_ITEMS = 10_000
const MAX_FAILURE_LENGTH = 65_536

export function createRunRecorder(): RunRecorder {
  const nodes = new Map<string, ShownNode>()
  const executed = new Set<string>()
  const running = new Map<string, string>()
  let startedAtMs: number | null = null
  let cached: RunRecord['cached'] | null = null
  let failure: RunFailure | null = null
  let stoppedAt: RunRecord['stoppedAt'] = null
  let room = MAX_SHOWN_LENGTH
  let items = 0
  const spans = createNodeSpans()

  function show(event: Extract<EngineEvent, { type: 'node_report' }>): void {
    const { nodeId, displayNodeId, parentNodeId, report } = event
    const shown = toShownOutput(report)
    const length = JSON.stringify(shown).length
    items += Object.values(shown).reduce((sum, list) => sum + list.length, 0)
    if (length > room || items > MAX_ITEMS) return
    room -= length
    nodes.set(nodeId, { nodeId, displayNodeId, parentNodeId, output: shown })
  }

  function stop(): void {
    const [last] = [...running].slice(-1)
    stoppedAt = last === undefined ? null : { nodeId: last[0], classType: last[1] }
  }

  return {
    take(event, atMs) {
      spans.take(event, atMs)
      if (event.type === 'started') startedAtMs = atMs
      else if (event.type === 'cached') cached = { nodeIds: event.nodeIds, atMs }
      else if (event.type === 'node_started') running.set(event.nodeId, event.classType)
      else if (event.type === 'node_report') show(event)
      else if (event.type === 'node_finished') {
        if (running.delete(event.nodeId)) executed.add(event.nodeId)
      } else if (event.type === 'failed' && event.failure.exceptionType !== 'ExecutionBlocked') {
        failure = toRunFailure(event.failure)
        for (const nodeId of event.failure.executed ?? []) executed.add(nodeId)
        stop()
      } else if (event.type === 'interrupted') stop()
    },
    finish(atMs) {
      if (startedAtMs === null) return null
      return {
        startedAtMs,
        cached: cached ?? { nodeIds: [], atMs: startedAtMs },
        nodes: [...nodes.values()],
        executed: [...executed],
        stoppedAt,
        failure,
        endedAtMs: atMs,
        spans: spans.list().map(toSpanFields),
        ...(spans.isCut() && { areSpansCut: true }),
      }
    },
  }
}

/** A node's report in the form in which it is shown: files by their names, texts within bounds. */
export function toShownOutput(report: LiveReport): Readonly<Record<string, readonly ShownItem[]>> {
  // Not by assignment: a key may be called `__proto__`.
  return Object.fromEntries(Object.entries(report).map(([key, list]) => [key, list.map(toShownItem)]))
}

function toShownItem(item: LiveReport[string][number]): ShownItem {
  if (item.kind === 'file') return { filename: item.filename, subfolder: item.subfolder, type: item.folder }
  if (typeof item.value === 'string') return copyHead(item.value, MAX_TEXT_LENGTH)
  return toPlainValue(item.value)
}

/** Only what JSON can express is kept; a bigint becomes a text, because as a number it might lose digits. */
function toPlainValue(value: unknown): ShownItem {
  try {
    const text = JSON.stringify(value, (_key, one: unknown) => (typeof one === 'bigint' ? String(one) : one))
    return text === undefined || text.length > MAX_TEXT_LENGTH ? null : (JSON.parse(text) as ShownItem)
  } catch {
    return null
  }
}

function toRunFailure({ exceptionType, currentInputs = {}, currentOutputs = [] }: EngineFailure): RunFailure {
  const inputs = toPlainValue(currentInputs)
  return {
    exceptionType: exceptionType.slice(0, 512),
    currentInputs: inputs === null ? {} : (inputs as RunFailure['currentInputs']),
    currentOutputs: JSON.stringify(currentOutputs).length > MAX_FAILURE_LENGTH ? [] : currentOutputs,
  }
}
