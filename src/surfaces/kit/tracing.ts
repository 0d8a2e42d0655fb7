/**
 * A server span per request, only when the process has registered a tracer provider; otherwise there is no tracing object at
 * all and requests pay nothing. The trace of the caller is continued. Spans carry the route, never the query or a header.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { context, INVALID_TRACEID, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { routeOf } from './request-identity.ts'

/** Runs the handler inside a span that ends with the response. */
export type TraceRequest = (request: IncomingMessage, response: ServerResponse, handle: () => void) => void

const TRACER_NAME = 'atelier'

/** null when nobody listens. Ask once, after start-up registered its provider. */
export function openTracing(): TraceRequest | null {
  const tracer = trace.getTracer(TRACER_NAME)
  // The API's own stand-in gives out the all-zero trace id; a real provider never does, sampled or not. The probe is never
  // ended, so it is never exported.
  if (tracer.startSpan('probe', { root: true }).spanContext().traceId === INVALID_TRACEID) return null
  return (request, response, handle) => {
    const method = request.method ?? ''
    const parent = propagation.extract(context.active(), request.headers)
    const attributes = { 'http.request.method': method }
    const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, parent)
    response.once('close', () => {
      const route = routeOf(request)
      if (route !== '') span.updateName(`${method} ${route}`).setAttribute('http.route', route)
      span.setAttribute('http.response.status_code', response.statusCode)
      if (response.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    })
    context.with(trace.setSpan(parent, span), handle)
  }
}
