/**
 * A tracer whose spans go to a collector over OTLP. A span is a small object that is handed on when it ends. Whether a trace is
 * reported at all is decided where it begins, and every later span follows that decision.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomFillSync } from 'node:crypto'
import type { TraceContext } from '../../../lib/tracing/trace-context.ts'
import type { Attributes, Span, SpanKind, SpanOptions, Tracer } from '../../../lib/tracing/tracer.ts'

/** A span that has ended, as it is reported. */
export interface EndedSpan {
  readonly name: string
  readonly kind: SpanKind
  readonly context: TraceContext
  readonly parentSpanId: string | null
  readonly startMs: number
  readonly endMs: number
  readonly attributes: readonly (readonly [key: string, value: string | number | boolean])[]
  /** null: it went well, as far as is known. */
  readonly failure: string | null
}

/** Whether a trace is reported. `parent`: the context that it continues; null: it begins here. */
export type Sampler = (traceId: string, parent: TraceContext | null) => boolean

interface OtlpTracerDeps {
  readonly sampler: Sampler
  /** Must not wait and must not throw. */
  readonly onEnded: (span: EndedSpan) => void
  /** Milliseconds since 1970, with fractions. */
  readonly now: () => number
}

// A trace is read by a person, so everything in it is short.
const MAX_NAME_LENGTH = 120
const MAX_ATTRIBUTES = 32
const MAX_KEY_LENGTH = 64
const MAX_VALUE_LENGTH = 256

export function createOtlpTracer({ sampler, onEnded, now }: OtlpTracerDeps): Tracer {
  const storage = new AsyncLocalStorage<Span>()
  const newId = createIds()
  return {
    active: () => storage.getStore(),
    start(name, { kind = 'internal', parent: given, startMs, attributes }: SpanOptions = {}) {
      const parent = given === undefined ? (storage.getStore()?.context ?? null) : given
      const traceId = parent?.traceId ?? newId(16)
      const isSampled = sampler(traceId, parent)
      const context: TraceContext = { traceId, spanId: newId(8), isSampled, state: parent?.state ?? '' }
      if (!isSampled) return { context, ...SILENT }
      const span = new RecordedSpan(name, kind, context, parent?.spanId ?? null, startMs ?? now(), { onEnded, now })
      if (attributes !== undefined) span.set(attributes)
      return span
    },
    within: (span, body) => storage.run(span, body),
  }
}

/** A span of a trace that is not reported. Its context is passed on, so that called services do not report the trace either. */
const SILENT: Omit<Span, 'context'> = { rename() {}, set() {}, fail() {}, end() {} }

class RecordedSpan implements Span, EndedSpan {
  name: string
  readonly kind: SpanKind
  readonly context: TraceContext
  readonly parentSpanId: string | null
  readonly startMs: number
  readonly attributes: [key: string, value: string | number | boolean][] = []
  failure: string | null = null
  endMs = Number.NaN
  readonly #deps: Pick<OtlpTracerDeps, 'onEnded' | 'now'>

  constructor(
    name: string,
    kind: SpanKind,
    context: TraceContext,
    parentSpanId: string | null,
    startMs: number,
    deps: Pick<OtlpTracerDeps, 'onEnded' | 'now'>,
  ) {
    this.name = cut(name, MAX_NAME_LENGTH)
    this.kind = kind
    this.context = context
    this.parentSpanId = parentSpanId
    this.startMs = startMs
    this.#deps = deps
  }

  rename(name: string): void {
    this.name = cut(name, MAX_NAME_LENGTH)
  }

  set(attributes: Attributes): void {
    for (const key in attributes) {
      if (this.attributes.length >= MAX_ATTRIBUTES) return
      const value = attributes[key]!
      this.attributes.push([cut(key, MAX_KEY_LENGTH), typeof value === 'string' ? cut(value, MAX_VALUE_LENGTH) : value])
    }
  }

  fail(reason: string): void {
    this.failure ??= cut(reason, MAX_VALUE_LENGTH)
  }

  end(atMs: number = this.#deps.now()): void {
    if (!Number.isNaN(this.endMs)) return
    // A clock that was set back must not give a span a negative length.
    this.endMs = Math.max(atMs, this.startMs)
    this.#deps.onEnded(this)
  }
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : text.slice(0, length).toWellFormed()
}

// One call for many ids: each alone would cost more than the rest of a span.
const RANDOM_BYTES = 4096

function createIds(): (bytes: 8 | 16) => string {
  const random = Buffer.alloc(RANDOM_BYTES)
  let used = RANDOM_BYTES
  return (bytes) => {
    if (used + bytes > RANDOM_BYTES) {
      randomFillSync(random)
      used = 0
    }
    used += bytes
    return random.toString('hex', used - bytes, used)
  }
}

// How far the monotonic clock may drift from the wall clock before it is set by it again: the wall clock may have been changed.
const MAX_APART_MS = 2

/** The time of day with fractions of a millisecond, which the wall clock alone does not tell. */
export function createFineClock(): () => number {
  let offset = Date.now() - performance.now()
  return () => {
    const fine = performance.now() + offset
    const wall = Date.now()
    if (Math.abs(fine - wall) <= MAX_APART_MS) return fine
    offset += wall - fine
    return wall
  }
}
