/**
 * What a raw request is known by while it is answered: its id, and the route that took it. Every answer carries the id under
 * each brand's header name. An id that a caller sends is not taken over: it would let anybody write into our logs. Ids rise
 * with time, so that records stored under them lie together on the disk.
 */
import type { IncomingMessage } from 'node:http'
import { createUuidV7 } from '../../../lib/ids.ts'

export const DEFAULT_BRANDS: readonly string[] = ['Service', 'Comfy']

const REQUEST_ID = Symbol('request id')
const ROUTE = Symbol('route')
const newRequestId = createUuidV7(Date.now)

type Marked = IncomingMessage & { [REQUEST_ID]?: string; [ROUTE]?: string }

/** The same id for the same request, whoever asks first. */
export function requestIdOf(request: IncomingMessage): string {
  const marked = request as Marked
  marked[REQUEST_ID] ??= newRequestId()
  return marked[REQUEST_ID]
}

export function requestIdHeaderNames(brands: readonly string[]): readonly string[] {
  return brands.map((brand) => `X-${brand}-Request-Id`)
}

/** `template` is what spans, samples and log lines are grouped by. */
export function markRoute(request: IncomingMessage, template: string): void {
  ;(request as Marked)[ROUTE] = template
}

/** '' when no route took it. */
export function routeOf(request: IncomingMessage): string {
  return (request as Marked)[ROUTE] ?? ''
}
