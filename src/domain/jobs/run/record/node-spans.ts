/**
 * When each node of a graph ran, folded from the events of its run. Nodes that expansion makes count for the node of the submitted
 * graph that stands for them. Bounded: nodes beyond the bound are not told of.
 */
import type { EngineEvent, NodeRef } from '../../../../../engine/graph/run-event.ts'
import type { LiveEvent } from '../../../events/live-event.ts'

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
export type SpanFields = readonly [
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
