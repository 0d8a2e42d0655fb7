/**
 * Spans as an OTLP/HTTP request in JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. Written piece by piece: objects
 * for a general writer would cost several times as much, and requests share the thread with it.
 */
import type { SpanKind } from '../../../lib/tracing/tracer.ts'
import type { EndedSpan } from './otlp-tracer.ts'

type Value = string | number | boolean

const KIND: Record<SpanKind, number> = { internal: 1, server: 2, client: 3 }
const STATUS_ERROR = 2

export function toOtlpJson(
  spans: readonly EndedSpan[],
  { resource, scope }: { readonly resource: Readonly<Record<string, string>>; readonly scope: object },
): string {
  const about = Object.entries(resource).map(([key, value]) => toAttribute(key, value))
  const head = `{"resourceSpans":[{"resource":{"attributes":[${about.join()}]},"scopeSpans":[{"scope":${JSON.stringify(scope)}`
  return `${head},"spans":[${spans.map(toSpan).join()}]}]}]}`
}

function toSpan({ name, kind, context, parentSpanId, startMs, endMs, attributes, failure }: EndedSpan): string {
  const { traceId, spanId, state } = context
  let text = `{"traceId":"${traceId}","spanId":"${spanId}","name":${JSON.stringify(name)},"kind":${KIND[kind]}`
  if (parentSpanId !== null) text += `,"parentSpanId":"${parentSpanId}"`
  if (state !== '') text += `,"traceState":${JSON.stringify(state)}`
  text += `,"startTimeUnixNano":"${toNanoseconds(startMs)}","endTimeUnixNano":"${toNanoseconds(endMs)}","attributes":[`
  let separator = ''
  for (const [key, value] of attributes) {
    text += separator + toAttribute(key, value)
    separator = ','
  }
  text += ']'
  if (failure !== null) text += `,"status":{"code":${STATUS_ERROR},"message":${JSON.stringify(failure)}}`
  return `${text}}`
}

function toAttribute(key: string, value: Value): string {
  return `{"key":${JSON.stringify(key)},"value":${toValue(value)}}`
}

function toValue(value: Value): string {
  if (typeof value === 'string') return `{"stringValue":${JSON.stringify(value)}}`
  if (typeof value === 'boolean') return `{"boolValue":${value}}`
  // 64-bit integers are texts in this encoding, and what is no number has no place in JSON.
  if (Number.isSafeInteger(value)) return `{"intValue":"${value}"}`
  return `{"doubleValue":${Number.isFinite(value) ? value : 0}}`
}

/** As a text, because the number has more digits than a double holds. */
function toNanoseconds(ms: number): string {
  const whole = Math.floor(ms)
  return `${whole}${String(Math.floor((ms - whole) * 1e6)).padStart(6, '0')}`
}
