/**
 * Every answer carries an id of its own making under each brand's header name. An id that a caller sends is not taken over:
 * it would let anybody write into our logs. Ids rise with time: whatever is stored under them lies together on the disk.
 */
import type { IncomingMessage } from 'node:http'
import { createUuidV7 } from '../../../lib/ids.ts'

export const DEFAULT_BRANDS: readonly string[] = ['Service', 'Comfy']

const REQUEST_ID = Symbol('request id')
const newRequestId = createUuidV7(Date.now)

type Marked = IncomingMessage & { [REQUEST_ID]?: string }

/** The same id for the same request, whoever asks first. */
export function requestIdOf(request: IncomingMessage): string {
  const marked = request as Marked
  marked[REQUEST_ID] ??= newRequestId()
  return marked[REQUEST_ID]
}

export function requestIdHeaderNames(brands: readonly string[]): readonly string[] {
  return brands.map((brand) => `X-${brand}-Request-Id`)
}
