/** A server span per request, which continues the trace of the caller. It carries the route, never the query or a header. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { readTraceContext } from '../../../lib/tracing/trace-context.ts'
import type { Tracer } from '../../../lib/tracing/tracer.ts'
import { requestIdOf, routeOf } from './request-identity.ts'
import { pathOf } from './request-url.ts'

/** Runs the handler inside a span that ends with the response. */
export type TraceRequest = (request: IncomingMessage, response: ServerResponse, handle: () => void) => void

// Asked every few seconds by whoever watches the process: traces of these would bury all others.
const UNTRACED: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics'])
const FIRST_FAILURE = 500

export function createTraceRequest(tracer: Tracer): TraceRequest {
  return (request, response, handle) => {
    const method = request.method ?? ''
    if (UNTRACED.has(pathOf(request.url ?? ''))) return handle()
    const parent = readTraceContext(request.headers['traceparent'], request.headers['tracestate']) ?? undefined
    const attributes = { 'http.request.method': method, 'atelier.request.id': requestIdOf(request) }
    const span = tracer.start(method, { kind: 'server', parent, attributes })
    response.once('close', () => {
      const route = routeOf(request)
      const { statusCode } = response
      if (route !== '') span.rename(`${method} ${route}`)
      span.set({ ...(route !== '' && { 'http.route': route }), 'http.response.status_code': statusCode })
      if (statusCode >= FIRST_FAILURE) span.fail(String(statusCode))
      span.end()
    })
    tracer.within(span, handle)
  }
}
