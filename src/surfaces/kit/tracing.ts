/** A server span per request, which continues the trace of the caller. It carries the route, never the query or a header. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { readTraceContext } from '../../../lib/tracing/trace-context.ts'
import type { Tracer } from '../../../lib/tracing/tracer.ts'
import { pathOf, requestIdOf, routeOf } from './request.ts'

/** Runs the handler inside a span that ends with the response. */
export type TraceRequest = (request: IncomingMessage, response: ServerResponse, handle: () => void) => void

// Probes request these every few seconds: their traces would bury all others.
const UNTRACED: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics'])
const FIRST_FAILURE = 500

export function createTraceRequest(tracer: Tracer): TraceRequest {
  // Routes are known from the start, so there are few names.
  const names = new Map<string, Map<string, string>>()
  const nameOf = (method: string, route: string): string => {
    const known = names.get(method) ?? new Map<string, string>()
    names.set(method, known)
    const name = known.get(route) ?? `${method} ${route}`
    known.set(route, name)
    return name
  }
  return (request, response, handle) => {
    const method = request.method ?? ''
    if (UNTRACED.has(pathOf(request.url ?? ''))) return handle()
    const parent = readTraceContext(request.headers['traceparent'], request.headers['tracestate']) ?? undefined
    const span = tracer.start(method, { kind: 'server', parent })
    response.once('close', () => {
      const route = routeOf(request)
      const { statusCode } = response
      span.set({
        'http.request.method': method,
        'http.response.status_code': statusCode,
        'atelier.request.id': requestIdOf(request),
      })
      if (route !== '') {
        span.rename(nameOf(method, route))
        span.set({ 'http.route': route })
      }
      if (statusCode >= FIRST_FAILURE) span.fail(String(statusCode))
      span.end()
    })
    tracer.within(span, handle)
  }
}
