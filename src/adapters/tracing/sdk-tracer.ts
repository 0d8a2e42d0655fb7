/**
 * A tracer over an OpenTelemetry SDK: over the one that the operator has loaded into the process (`node --import …`), which then decides
 * which spans are reported and where, with spans of its own instrumentation and ours in one trace; or over ours (`otlp-spans.ts`).
 */
import {
  type Context,
  context,
  createContextKey,
  createTraceState,
  INVALID_TRACEID,
  type Span as SdkSpan,
  SpanKind as SdkSpanKind,
  type Tracer as SdkTracer,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import type { TraceContext } from '../../../lib/tracing/trace-context.ts'
import type { Attributes, Span, SpanKind, SpanOptions, Tracer } from '../../../lib/tracing/tracer.ts'

const KIND: Record<SpanKind, SdkSpanKind> = {
  internal: SdkSpanKind.INTERNAL,
  server: SdkSpanKind.SERVER,
  client: SdkSpanKind.CLIENT,
}

// Where a context has the span that was begun here, beside the SDK's own.
const OURS = createContextKey('atelier span')

// A trace is read by a person, so everything in it is short.
const MAX_NAME_LENGTH = 120

/** Which span is the active one, in the present code and all that it awaits. */
interface Contexts {
  active(): Context
  with<Result>(context: Context, body: () => Result): Result
}

/** null when none is registered. Ask once, when the process starts. */
export function findRegisteredSdk(): Tracer | null {
  const sdk = trace.getTracer('atelier')
  // The API's own stand-in gives out the all-zero trace id; a real SDK never does, sampled or not. The probe is never ended, so
  // it is never reported.
  if (sdk.startSpan('probe', { root: true }).spanContext().traceId === INVALID_TRACEID) return null
  return createSdkTracer(sdk, context)
}

export function createSdkTracer(sdk: SdkTracer, contexts: Contexts): Tracer {
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
      const startTime = startMs === undefined ? undefined : toSdkTime(startMs)
      const options = { kind: KIND[kind], attributes: { ...attributes }, startTime, root: parent === null }
      return new WrappedSpan(sdk.startSpan(name.slice(0, MAX_NAME_LENGTH), options, under))
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
  #isFailed = false

  constructor(inner: SdkSpan) {
    const { traceId, spanId, traceFlags, traceState } = inner.spanContext()
    const isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0
    this.context = { traceId, spanId, isSampled, state: traceState?.serialize() ?? '' }
    this.inner = inner
  }

  rename(name: string): void {
    this.inner.updateName(name.slice(0, MAX_NAME_LENGTH))
  }

  set(attributes: Attributes): void {
    this.inner.setAttributes({ ...attributes })
  }

  fail(reason: string): void {
    if (this.#isFailed) return
    this.#isFailed = true
    this.inner.setStatus({ code: SpanStatusCode.ERROR, message: reason })
  }

  end(atMs?: number): void {
    this.inner.end(atMs === undefined ? undefined : toSdkTime(atMs))
  }
}

/** As seconds and nanoseconds: an SDK takes a plain number from before the start of the process for one on another clock. */
function toSdkTime(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1000)
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)]
}

function toSdkContext({ traceId, spanId, isSampled, state }: TraceContext) {
  return {
    ...{ traceId, spanId, isRemote: true },
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    ...(state !== '' && { traceState: createTraceState(state) }),
  }
}
