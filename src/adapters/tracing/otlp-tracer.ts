/**
 * A tracer whose spans go to a collector over OTLP. A span is a small object that is handed on when it ends. Whether a trace is
 * reported at all is decided where it begins, and every later span follows that decision.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomFillSync } from 'node:crypto'
import type { TraceContext } from '../../../lib/tracing/trace-context.ts'
import type { Attributes, Span, SpanKind, SpanOptions, Tracer } from '../../../lib/tracing/tracer.ts'
import type { EndedSpan } from './otlp-proto.ts'

/** Whether a trace is reported. `parent`: the context that it continues; null: it begins here. */
export type Sampler = (traceId: string, parent: TraceContext | null) => boolean

interface OtlpTracerDeps {
  readonly sampler: Sampler
  /** Must not wait and must not throw. */
  readonly onEnded: (span: EndedSpan) => void
  /** Milliseconds since 1970, with fractions. */
  readonly now: () => number
}

type Report = Pick<OtlpTracerDeps, 'onEnded' | 'now'>

export function createOtlpTracer({ sampler, onEnded, now }: OtlpTracerDeps): Tracer {
  const storage = new AsyncLocalStorage<Span>()
  const newId = createIds()
  const report: Report = { onEnded, now }
  return {
    active: () => storage.getStore(),
    start(name, { kind = 'internal', parent: given, startMs, attributes }: SpanOptions = NO_OPTIONS) {
      const parent = given === undefined ? (storage.getStore()?.context ?? null) : given
      const traceId = parent === null ? newId(TRACE_ID_DIGITS) : parent.traceId
      const isSampled = sampler(traceId, parent)
      const state = parent === null ? '' : parent.state
      const context: TraceContext = { traceId, spanId: newId(SPAN_ID_DIGITS), isSampled, state }
      if (!isSampled) return { context, ...SILENT }
      const span = new RecordedSpan(context, parent === null ? '' : parent.spanId, report)
      span.name = name
      span.kind = kind
      span.startMs = startMs ?? now()
      if (attributes !== undefined) span.set(attributes)
      return span
    },
    within: (span, body) => storage.run(span, body),
  }
}

const NO_OPTIONS: SpanOptions = {}

/** A span of a trace that is not reported. Its context is passed on, so that called services do not report the trace either. */
const SILENT: Omit<Span, 'context'> = { rename() {}, set() {}, fail() {}, end() {} }

/** It is bounded where it is written, once it has ended. */
class RecordedSpan implements Span, EndedSpan {
  readonly context: TraceContext
  readonly parentSpanId: string
  readonly attributes: Attributes[] = []
  name = ''
  kind: SpanKind = 'internal'
  startMs = 0
  endMs = Number.NaN
  failure: string | null = null
  readonly #report: Report

  constructor(context: TraceContext, parentSpanId: string, report: Report) {
    this.context = context
    this.parentSpanId = parentSpanId
    this.#report = report
  }

  rename(name: string): void {
    this.name = name
  }

  set(attributes: Attributes): void {
    this.attributes.push(attributes)
  }

  fail(reason: string): void {
    this.failure ??= reason
  }

  end(atMs?: number): void {
    if (!Number.isNaN(this.endMs)) return
    // A clock that was set back must not give a span a negative length.
    this.endMs = Math.max(atMs ?? this.#report.now(), this.startMs)
    this.#report.onEnded(this)
  }
}

const TRACE_ID_DIGITS = 32
const SPAN_ID_DIGITS = 16
// Many ids are made at once, and each is a part of one long text: alone it would cost more than the rest of a span.
const RANDOM_BYTES = 4096

function createIds(): (digits: number) => string {
  const random = Buffer.alloc(RANDOM_BYTES)
  let text = ''
  let used = 0
  return (digits) => {
    if (used + digits > text.length) {
      text = randomFillSync(random).toString('hex')
      used = 0
    }
    used += digits
    return text.slice(used - digits, used)
  }
}

// How far the monotonic clock may drift from the wall clock before it is set by it again: the wall clock may have been changed.
const MAX_APART_MS = 2
const COMPARE_EVERY_MS = 50

/** The time of day with fractions of a millisecond, which the wall clock alone does not tell. */
export function createFineClock(): () => number {
  let offset = Date.now() - performance.now()
  let comparedAt = performance.now()
  return () => {
    const since = performance.now()
    if (since - comparedAt < COMPARE_EVERY_MS) return since + offset
    comparedAt = since
    const wall = Date.now()
    if (Math.abs(since + offset - wall) > MAX_APART_MS) offset = wall - since
    return since + offset
  }
}
