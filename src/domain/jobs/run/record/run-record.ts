/**
 * What clients saw of a run, in the engine's own terms: which nodes were cached, what each node showed, where it stopped. A client
 * that shows the run later needs it besides the outputs. Bounded whatever a node reports; written once, with the end of the run.
 */
import type { EngineEvent, EngineFailure, NodeRef } from '../../../../../engine/graph/run-event.ts'
import { type JsonValue, stringifyLosslessJson } from '../../../../../lib/json/lossless-json.ts'
import type { LiveEvent, LiveReport } from '../../../events/live-event.ts'

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
  /** When each node ran, as far as it is known now. */
  spans(): readonly NodeSpan[]
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
    spans: () => spans.list(),
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

export interface NodeSpan {
  readonly nodeId: string
  /** null: it was cached and did not run. */
  readonly startedAtMs: number | null
  /** null: it has not ended. */
  readonly endedAtMs: number | null
  /** The last step that it told of; null: it told of none. */
  readonly step: number | null
  readonly steps: number | null
}

export interface NodeSpans {
  take(event: EngineEvent | LiveEvent, atMs: number): void
  /** The same objects as before for those that did not change, and the same list when none did. */
  list(): readonly NodeSpan[]
  isCut(): boolean
}

const MAX_SPANS = 10_000

interface OpenSpan {
  startedAtMs: number | null
  endedAtMs: number | null
  step: number | null
  steps: number | null
  /** Nodes under it that run, itself among them. */
  readonly running: Set<string>
  /** As it was listed; null: it has changed since then. */
  listed: NodeSpan | null
}

/**
 * When each node of a graph ran, folded from the events of its run. Nodes that expansion makes count for the node of the submitted
 * graph that stands for them. Bounded: nodes beyond the bound are not told of.
 */
export function createNodeSpans(): NodeSpans {
  const spans = new Map<string, OpenSpan>()
  let cut = false
  let listed: readonly NodeSpan[] | null = null

  function touch(span: OpenSpan): void {
    span.listed = null
    listed = null
  }

  function toListed(nodeId: string, span: OpenSpan): NodeSpan {
    const { startedAtMs, endedAtMs, step, steps } = span
    span.listed ??= { nodeId, startedAtMs, endedAtMs, step, steps }
    return span.listed
  }

  function spanOf(nodeId: string): OpenSpan | null {
    const known = spans.get(nodeId)
    if (known !== undefined) return known
    cut ||= spans.size >= MAX_SPANS
    if (spans.size >= MAX_SPANS) return null
    const span: OpenSpan = {
      startedAtMs: null,
      endedAtMs: null,
      step: null,
      steps: null,
      running: new Set(),
      listed: null,
    }
    spans.set(nodeId, span)
    listed = null
    return span
  }

  /** A node that ends and never began was found in the cache while the graph ran: an equal one had just been made elsewhere. */
  function end({ nodeId, displayNodeId }: NodeRef, atMs: number): void {
    const span = spanOf(displayNodeId)
    if (span === null || !span.running.delete(nodeId) || span.running.size > 0) return
    span.endedAtMs = atMs
    touch(span)
  }

  return {
    take(event, atMs) {
      if (event.type === 'cached') for (const nodeId of event.nodeIds) spanOf(nodeId)
      else if (event.type === 'node_started') {
        const span = spanOf(event.displayNodeId)
        if (span === null) return
        span.startedAtMs ??= atMs
        span.endedAtMs = null
        span.running.add(event.nodeId)
        touch(span)
      } else if (event.type === 'node_progress') {
        const span = spans.get(event.displayNodeId)
        if (span === undefined || !Number.isFinite(event.max)) return
        span.step = Math.floor(event.value)
        span.steps = Math.ceil(event.max)
        touch(span)
      } else if (event.type === 'node_finished') end(event, atMs)
    },
    list() {
      listed ??= [...spans].map(([nodeId, span]) => toListed(nodeId, span))
      return listed
    },
    isCut: () => cut,
  }
}

/** As it is kept with a job: lists are shorter than objects. */
type SpanFields = readonly [
  nodeId: string,
  startedAtMs: number | null,
  endedAtMs: number | null,
  step: number | null,
  steps: number | null,
]

export function toSpanFields({ nodeId, startedAtMs, endedAtMs, step, steps }: NodeSpan): SpanFields {
  return [nodeId, startedAtMs, endedAtMs, step, steps]
}

export function toNodeSpan([nodeId, startedAtMs, endedAtMs, step, steps]: SpanFields): NodeSpan {
  return { nodeId, startedAtMs, endedAtMs, step, steps }
}

/** The first characters of a text, as a copy: a slice would keep the whole text in memory. */
export function copyHead(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : Buffer.from(text.slice(0, maxLength), 'utf16le').toString('utf16le')
}

/** The JSON text of a value that a node reported; of one that cannot be written as JSON (a cycle), its string form. */
export function toJsonText(value: unknown): string {
  try {
    return stringifyLosslessJson(value as JsonValue) ?? 'null'
  } catch {
    return JSON.stringify(String(value))
  }
}
