/**
 * A tracer over whatever OpenTelemetry SDK the operator has loaded into the process (`node --import …`). The SDK then decides which
 * spans are reported, and where; spans of its own instrumentation and ours are in one trace.
 */
import {
  context as contexts,
  createTraceState,
  INVALID_TRACEID,
  type Span as SdkSpan,
  SpanKind as SdkSpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import type { TraceContext } from '../../../lib/tracing/trace-context.ts'
import type { Span, SpanKind, SpanOptions, Tracer } from '../../../lib/tracing/tracer.ts'

const KIND: Record<SpanKind, SdkSpanKind> = {
  internal: SdkSpanKind.INTERNAL,
  server: SdkSpanKind.SERVER,
  client: SdkSpanKind.CLIENT,
}

/** null when none is registered. Ask once, when the process starts. */
export function findRegisteredSdk(): Tracer | null {
  const sdk = trace.getTracer('atelier')
  // The API's own stand-in gives out the all-zero trace id; a real SDK never does, sampled or not. The probe is never ended, so
  // it is never reported.
  if (sdk.startSpan('probe', { root: true }).spanContext().traceId === INVALID_TRACEID) return null
  const wrapped = new WeakMap<SdkSpan, Span>()
  const kept = new WeakMap<Span, SdkSpan>()

  function wrap(inner: SdkSpan): Span {
    const known = wrapped.get(inner)
    if (known !== undefined) return known
    const span = new WrappedSpan(inner)
    wrapped.set(inner, span)
    kept.set(span, inner)
    return span
  }

  return {
    active() {
      const inner = trace.getSpan(contexts.active())
      return inner === undefined ? undefined : wrap(inner)
    },
    start(name, { kind = 'internal', parent, startMs, attributes }: SpanOptions = {}) {
      const active = contexts.active()
      const under = parent == null ? active : trace.setSpanContext(active, toSdkContext(parent))
      const options = { kind: KIND[kind], attributes: { ...attributes }, startTime: startMs, root: parent === null }
      return wrap(sdk.startSpan(name, options, under))
    },
    within(span, body) {
      const inner = kept.get(span)
      return inner === undefined ? body() : contexts.with(trace.setSpan(contexts.active(), inner), body)
    },
  }
}

class WrappedSpan implements Span {
  readonly context: TraceContext
  readonly #inner: SdkSpan

  constructor(inner: SdkSpan) {
    const { traceId, spanId, traceFlags, traceState } = inner.spanContext()
    const isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0
    this.context = { traceId, spanId, isSampled, state: traceState?.serialize() ?? '' }
    this.#inner = inner
  }

  rename(name: string): void {
    this.#inner.updateName(name)
  }

  set(attributes: Readonly<Record<string, string | number | boolean>>): void {
    this.#inner.setAttributes({ ...attributes })
  }

  fail(reason: string): void {
    this.#inner.setStatus({ code: SpanStatusCode.ERROR, message: reason })
  }

  end(atMs?: number): void {
    this.#inner.end(atMs)
  }
}

function toSdkContext({ traceId, spanId, isSampled, state }: TraceContext) {
  return {
    ...{ traceId, spanId, isRemote: true },
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    ...(state !== '' && { traceState: createTraceState(state) }),
  }
}
