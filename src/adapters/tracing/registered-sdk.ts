/**
 * A tracer over whatever OpenTelemetry SDK the operator has loaded into the process (`node --import …`). The SDK then decides which
 * spans are reported, and where; spans of its own instrumentation and ours are in one trace.
 */
import {
  context as contexts,
  createContextKey,
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

// Where a context has the span that was begun here, beside the SDK's own.
const OURS = createContextKey('atelier span')

/** null when none is registered. Ask once, when the process starts. */
export function findRegisteredSdk(): Tracer | null {
  const sdk = trace.getTracer('atelier')
  // The API's own stand-in gives out the all-zero trace id; a real SDK never does, sampled or not. The probe is never ended, so
  // it is never reported.
  if (sdk.startSpan('probe', { root: true }).spanContext().traceId === INVALID_TRACEID) return null
  return {
    active() {
      const active = contexts.active()
      const inner = trace.getSpan(active)
      if (inner === undefined) return undefined
      const ours = active.getValue(OURS)
      return ours instanceof WrappedSpan && ours.inner === inner ? ours : new WrappedSpan(inner)
    },
    start(name, { kind = 'internal', parent, startMs, attributes }: SpanOptions = {}) {
      const active = contexts.active()
      const under = parent == null ? active : trace.setSpanContext(active, toSdkContext(parent))
      const options = { kind: KIND[kind], attributes: { ...attributes }, startTime: startMs, root: parent === null }
      return new WrappedSpan(sdk.startSpan(name, options, under))
    },
    within(span, body) {
      if (!(span instanceof WrappedSpan)) return body()
      return contexts.with(trace.setSpan(contexts.active(), span.inner).setValue(OURS, span), body)
    },
  }
}

class WrappedSpan implements Span {
  readonly context: TraceContext
  readonly inner: SdkSpan

  constructor(inner: SdkSpan) {
    const { traceId, spanId, traceFlags, traceState } = inner.spanContext()
    const isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0
    this.context = { traceId, spanId, isSampled, state: traceState?.serialize() ?? '' }
    this.inner = inner
  }

  rename(name: string): void {
    this.inner.updateName(name)
  }

  set(attributes: Readonly<Record<string, string | number | boolean>>): void {
    this.inner.setAttributes({ ...attributes })
  }

  fail(reason: string): void {
    this.inner.setStatus({ code: SpanStatusCode.ERROR, message: reason })
  }

  end(atMs?: number): void {
    this.inner.end(atMs)
  }
}

function toSdkContext({ traceId, spanId, isSampled, state }: TraceContext) {
  return {
    ...{ traceId, spanId, isRemote: true },
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    ...(state !== '' && { traceState: createTraceState(state) }),
  }
}
