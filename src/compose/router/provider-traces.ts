/** A client span for every exchange with a provider, when the process has registered a tracer provider; otherwise nothing. */
import { INVALID_TRACEID, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { ObserveExchange } from '../metrics/provider-metrics.ts'

const TRACER_NAME = 'atelier'
const FIRST_FAILURE = 500

/** A span names the provider, the step and the outcome, never an address, a header or a body. */
export function withTraces(observe: ObserveExchange): ObserveExchange {
  const tracer = trace.getTracer(TRACER_NAME)
  if (tracer.startSpan('probe', { root: true }).spanContext().traceId === INVALID_TRACEID) return observe
  return (exchange) => {
    observe(exchange)
    const { provider, model, kind, status, milliseconds } = exchange
    const endMs = Date.now()
    const attributes = { 'atelier.provider': provider, 'atelier.model': model }
    const span = tracer.startSpan(`${provider} ${kind}`, {
      kind: SpanKind.CLIENT,
      startTime: endMs - milliseconds,
      attributes,
    })
    if (status !== null) span.setAttribute('http.response.status_code', status)
    if (status === null || status >= FIRST_FAILURE) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end(endMs)
  }
}
