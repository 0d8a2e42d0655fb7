/** Spans as an OTLP/HTTP request in JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding */
import type { SpanKind } from '../../../lib/tracing/tracer.ts'
import type { EndedSpan } from './otlp-tracer.ts'

type Value = string | number | boolean

const KIND: Record<SpanKind, number> = { internal: 1, server: 2, client: 3 }
const STATUS_ERROR = 2
const SAMPLED = 1

export function toOtlpJson(
  spans: readonly EndedSpan[],
  { resource, scope }: { readonly resource: Readonly<Record<string, string>>; readonly scope: object },
): string {
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: Object.entries(resource).map(toAttribute) },
        scopeSpans: [{ scope, spans: spans.map(toSpan) }],
      },
    ],
  })
}

function toSpan({ name, kind, context, parentSpanId, startMs, endMs, attributes, failure }: EndedSpan): object {
  return {
    traceId: context.traceId,
    spanId: context.spanId,
    ...(context.state !== '' && { traceState: context.state }),
    ...(parentSpanId !== null && { parentSpanId }),
    flags: SAMPLED,
    name,
    kind: KIND[kind],
    startTimeUnixNano: toNanoseconds(startMs),
    endTimeUnixNano: toNanoseconds(endMs),
    attributes: Array.from(attributes, toAttribute),
    ...(failure !== null && { status: { code: STATUS_ERROR, message: failure } }),
  }
}

function toAttribute([key, value]: readonly [string, Value]): object {
  if (typeof value === 'string') return { key, value: { stringValue: value } }
  if (typeof value === 'boolean') return { key, value: { boolValue: value } }
  // 64-bit integers are texts in this encoding.
  return { key, value: Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value } }
}

/** As a text, because the number has more digits than a double holds. */
function toNanoseconds(ms: number): string {
  const whole = Math.floor(ms)
  return `${whole}${String(Math.floor((ms - whole) * 1e6)).padStart(6, '0')}`
}
