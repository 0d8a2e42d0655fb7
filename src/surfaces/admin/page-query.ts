/** The query of a page: `limit`, and where it begins. Strict, like every query here: what is not understood is refused. */
import type { FastifyRequest } from 'fastify'
import { ServiceError } from '../../domain/errors.ts'
import { readQuery, refuseRepeated } from '../kit/request-url.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000

/** Every parameter at most once, none that the operation does not name. */
export function readParameters(request: FastifyRequest, names: readonly string[]): ReadonlyMap<string, string> {
  const pairs = readQuery(request.raw.url ?? '')
  if (pairs === null) throw malformed('the query holds a raw ";" or a bad percent escape')
  const unknown = pairs.find(([name]) => !names.includes(name))?.[0]
  if (unknown !== undefined)
    throw malformed(`${unknown.slice(0, 64)} is no parameter here; there are ${names.join(', ')}`)
  refuseRepeated(pairs, names)
  return new Map(pairs)
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

export function readNumber(
  parameters: ReadonlyMap<string, string>,
  name: string,
  { fallback, max }: { readonly fallback: number; readonly max: number },
): number {
  const text = parameters.get(name)
  if (text === undefined) return fallback
  const value = /^\d{1,16}$/.test(text) ? Number(text) : 0
  if (value >= 1 && value <= max) return value
  throw malformed(`${name} must be a whole number from 1 to ${max}`)
}

function malformed(message: string): ServiceError {
  return new ServiceError('invalid_request', message)
}
