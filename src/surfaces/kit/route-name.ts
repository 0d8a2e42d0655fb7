/** Which route took a raw request, as its template: what spans, samples and logs are grouped by. */
import type { IncomingMessage } from 'node:http'

const ROUTE = Symbol('route')
type Marked = IncomingMessage & { [ROUTE]?: string }

export function markRoute(request: IncomingMessage, template: string): void {
  ;(request as Marked)[ROUTE] = template
}

/** '' when no route took it. */
export function routeOf(request: IncomingMessage): string {
  return (request as Marked)[ROUTE] ?? ''
}
