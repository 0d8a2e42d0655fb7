/** The query of a page: `limit`, and where it begins. Strict, like every query here: what is not understood is refused. */
import type { FastifyRequest } from 'fastify'
import { readNumber, readParameters as readUrlParameters } from '../kit/request-url.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000

/** Every parameter at most once, none that the operation does not name. */
export function readParameters(request: FastifyRequest, names: readonly string[]): ReadonlyMap<string, string> {
  return readUrlParameters(request.raw.url ?? '', names)
}

export function readLimit(parameters: ReadonlyMap<string, string>): number {
  return readNumber(parameters, 'limit', { fallback: DEFAULT_LIMIT, max: MAX_LIMIT })
}

/** A page of records and the `before` of the next one; `found` holds one record more than the page when there is a next one. */
export function toPage<Listed extends { readonly seq: number }>(found: readonly Listed[], limit: number) {
  const page = found.slice(0, limit)
  return { page, next: found.length > limit ? (page.at(-1)?.seq ?? null) : null }
}

/** null: from the newest on. */
export function readBefore(parameters: ReadonlyMap<string, string>): number | null {
  if (!parameters.has('before')) return null
  return readNumber(parameters, 'before', { fallback: 1, max: Number.MAX_SAFE_INTEGER })
}
