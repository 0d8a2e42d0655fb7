/** Reading the target of a request (its path and its query, leniently or strictly), what it is known by, and a JSON answer to it. */

import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createUuidV7 } from '../../../lib/ids.ts'
import { ServiceError } from '../../domain/errors.ts'

/** Without the query. */
export function pathOf(url: string): string {
  const mark = url.indexOf('?')
  return mark === -1 ? url : url.slice(0, mark)
}

/** As it was sent, without the mark. */
export function rawQueryOf(url: string): string {
  const mark = url.indexOf('?')
  return mark === -1 ? '' : url.slice(mark + 1)
}

/** The query as browsers read it: nothing is refused, and what cannot be decoded stays as it is. */
export function lenientQueryOf(url: string): URLSearchParams {
  return new URLSearchParams(rawQueryOf(url))
}

export type QueryPair = readonly [name: string, value: string]

/**
 * The decoded pairs of a query, read strictly where frameworks decode leniently: a raw `;` and a bad `%` escape are reported,
 * never guessed at. null when the query cannot be read without guessing.
 */
export function readQuery(url: string): readonly QueryPair[] | null {
  const raw = rawQueryOf(url)
  if (raw.includes(';')) return null
  const pairs: QueryPair[] = []
  for (const part of raw.split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const name = decode(equals === -1 ? part : part.slice(0, equals))
    const value = decode(equals === -1 ? '' : part.slice(equals + 1))
    if (name === null || value === null) return null
    pairs.push([name, value])
  }
  return pairs
}

/** The first of these parameters that is given more than once; null when there is none. */
export function findRepeated(pairs: readonly QueryPair[], names: readonly string[]): string | null {
  const seen = new Set<string>()
  for (const [name] of pairs) {
    if (seen.has(name)) return name
    if (names.includes(name)) seen.add(name)
  }
  return null
}

/** Throws invalid_request. */
export function refuseRepeated(pairs: readonly QueryPair[], names: readonly string[]): void {
  const repeated = findRepeated(pairs, names)
  if (repeated !== null) throw new ServiceError('invalid_request', `${repeated} is given more than once`)
}

const MAX_SHOWN_NAME = 64

/** Every parameter at most once, none that the operation does not name. Throws invalid_request. */
export function readParameters(url: string, names: readonly string[]): ReadonlyMap<string, string> {
  const pairs = readQuery(url)
  if (pairs === null) throw malformed('the query holds a raw ";" or a bad percent escape')
  const unknown = pairs.find(([name]) => !names.includes(name))?.[0]
  if (unknown !== undefined)
    throw malformed(
      `${unknown.slice(0, MAX_SHOWN_NAME)} is not a parameter of this request; there are ${names.join(', ')}`,
    )
  refuseRepeated(pairs, names)
  return new Map(pairs)
}

/** A whole number from 1 to `max`. Throws invalid_request. */
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

/** `true`, or `false`, which is the same as left out. Throws invalid_request. */
export function readFlag(parameters: ReadonlyMap<string, string>, name: string): boolean {
  const text = parameters.get(name) ?? 'false'
  if (text === 'true' || text === 'false') return text === 'true'
  throw malformed(`${name} must be true or false`)
}

function malformed(message: string): ServiceError {
  return new ServiceError('invalid_request', message)
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return null
  }
}

// What a raw request is known by while it is answered: its id, and the route that took it. Every answer carries the id under
// each brand's header name. An id that a caller sends is not taken over: it would let anybody write into our logs. Ids rise
// with time, so that records stored under them lie together on the disk.

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

const MAX_WAIT_SECONDS = 60

/** Of a header `Prefer`: how many milliseconds the answer may be held; null: not at all. Other preferences are nothing to us. */
export function readWait(header: string | string[] | undefined): number | null {
  for (const part of String(header ?? '').split(/[,;]/)) {
    const found = /^\s*wait(?:\s*=\s*"?(\d{1,6})"?)?\s*$/i.exec(part)
    if (found === null) continue
    const seconds = found[1] === undefined ? MAX_WAIT_SECONDS : Number(found[1])
    return Math.min(Math.max(seconds, 1), MAX_WAIT_SECONDS) * 1000
  }
  return null
}

/** A text or a buffer is JSON already. The media type is exactly this one, because JSON has no charset parameter. */
export function sendJson(reply: FastifyReply, status: number, body: object | string | Buffer): FastifyReply {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  return reply.code(status).header('content-type', 'application/json').send(bytes)
}

/** A table as JSON, or as CSV where that is named in `Accept` and JSON is not named before it. */
export function sendTable(
  request: FastifyRequest,
  reply: FastifyReply,
  { json, csv }: { readonly json: () => object; readonly csv: () => string },
): FastifyReply {
  const types = (request.headers.accept ?? '').split(',').map((type) => type.split(';')[0]?.trim().toLowerCase())
  const [csvAt, jsonAt] = [types.indexOf('text/csv'), types.indexOf('application/json')]
  void reply.header('vary', 'accept')
  if (csvAt === -1 || (jsonAt !== -1 && jsonAt < csvAt)) return sendJson(reply, 200, json())
  return reply.type('text/csv; charset=utf-8').send(csv())
}

/** The parameter `:id` of the route. */
export function idOf(request: FastifyRequest): string {
  return (request.params as { readonly id: string }).id
}

/**
 * Aborted when the caller disconnects before the answer was written. One that ends its side of the connection has gone: it waits for
 * nothing any more, and what is under way for it must not go on.
 */
export function untilGone({ raw: { socket } }: FastifyRequest, reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  const leave = () => gone.abort(new ServiceError('invalid_request', 'the caller has gone'))
  socket.once('end', leave)
  reply.raw.once('close', () => {
    socket.off('end', leave)
    if (!reply.raw.writableFinished) leave()
  })
  if (reply.raw.destroyed || socket.readableEnded) leave()
  return gone.signal
}
