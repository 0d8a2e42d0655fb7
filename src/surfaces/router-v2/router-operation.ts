/** What every operation of this surface shares: its paths, what it knows of its request, and how documents are sent. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { MICROS_PER_USD } from '../../../lib/text/usd.ts'
import type { Caller } from '../../domain/accounts/caller.ts'
import type { Served } from '../../domain/models/calls/call-plan.ts'
import type { Spend } from '../../domain/models/router-error.ts'
import { matchesEtag, toEtag } from '../kit/content/send-content.ts'
import { sendJson } from '../kit/request.ts'

export const MODELS_PATH = '/v2/models'
export const MODEL_ROUTE = `${MODELS_PATH}/:provider/:model`
/** For running a model, also in front of the framework. */
export const RUN_RIGHT = 'models:run'

export interface ModelParams {
  readonly provider: string
  readonly model: string
}

export interface RequestContext {
  readonly caller: Caller
  readonly requestId: string
  /** Scheme, authority and mount prefix, without a trailing slash: what absolute links begin with. */
  readonly baseUrl: string
}

/** The guards set the context before any handler runs. */
export type ContextOf = (request: FastifyRequest) => RequestContext

// Private: what a caller sees depends on who it is.
const CACHE_CONTROL = 'private, max-age=300, must-revalidate'

/** Sends a document that callers may cache: with an ETag, and without a body if the caller already has it. */
export function sendCached(
  request: FastifyRequest,
  reply: FastifyReply,
  body: string | Buffer,
  etag = toEtag(body),
): FastifyReply {
  reply.header('etag', etag).header('cache-control', CACHE_CONTROL)
  if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send()
  return sendJson(reply, 200, body)
}

// Headers of this surface's answers, as name, value, name, value: what a call cost, and what its account has left.

/** Header names that bear the service's name, once per brand: official clients read only their own. */
export type BrandHeaders = Readonly<
  Record<
    'errorType' | 'upstreamStatus' | 'upstreamDetail' | 'creditsUsed' | 'fallbackProvider' | 'droppedParams',
    readonly string[]
  >
>

export function createBrandHeaders(brands: readonly string[]): BrandHeaders {
  const named = (name: string) => brands.map((brand) => `X-${brand}-${name}`)
  return {
    errorType: named('Error-Type'),
    upstreamStatus: named('Upstream-Status'),
    upstreamDetail: named('Upstream-Detail'),
    creditsUsed: named('Credits-Used'),
    fallbackProvider: named('Router-Fallback-Provider'),
    droppedParams: named('Router-Dropped-Params'),
  }
}

/** null: the cost is not known, and the header is left out. */
export type CostHeaders = (costMicros: number | null) => readonly string[]

/** In credits for our own clients, and in dollars for gateways that read those. */
export function createCostHeaders(brand: BrandHeaders, creditsPerUsd: number): CostHeaders {
  return (costMicros) => {
    if (costMicros === null) return []
    const usd = costMicros / MICROS_PER_USD
    const credits = (usd * creditsPerUsd).toFixed(2)
    const headers: string[] = []
    for (const name of brand.creditsUsed) headers.push(name, credits)
    headers.push('x-litellm-response-cost', String(usd), 'x-litellm-total-tokens', '0')
    return headers
  }
}

/** Who served a result, where it was not who was asked, and what the translation of its input left out. */
export type ServedHeaders = (served: Served | null) => readonly string[]

export function createServedHeaders(brand: BrandHeaders): ServedHeaders {
  return (served) => {
    if (served === null) return []
    const { fallbackProvider, dropped } = served
    const headers = fallbackProvider === null ? [] : brand.fallbackProvider.flatMap((name) => [name, fallbackProvider])
    if (dropped.length === 0) return headers
    const value = writeDropped(dropped)
    return [...headers, ...brand.droppedParams.flatMap((name) => [name, value])]
  }
}

const MAX_DROPPED = 64
const MAX_ENTRY_BYTES = 300
const MAX_DROPPED_BYTES = 4096
const REST_BYTES = 40

/** A JSON array of texts in ASCII, within the bounds that clients are promised; the last one says how many more there are. */
function writeDropped(dropped: readonly string[]): string {
  const entries: string[] = []
  let bytes = 2
  for (const [index, text] of dropped.entries()) {
    const entry = toAscii(JSON.stringify(cutBytes(text.replace(/(https?:\/\/[^\s?#"']*)[?#][^\s"']*/g, '$1'))))
    const isLast = index === dropped.length - 1
    const isFull = entries.length >= MAX_DROPPED - (isLast ? 0 : 1)
    if (isFull || bytes + entry.length + 1 + (isLast ? 0 : REST_BYTES) > MAX_DROPPED_BYTES) {
      entries.push(JSON.stringify(`and ${dropped.length - index} more`))
      break
    }
    entries.push(entry)
    bytes += entry.length + 1
  }
  return `[${entries.join(',')}]`
}

function cutBytes(text: string): string {
  if (Buffer.byteLength(text) <= MAX_ENTRY_BYTES) return text
  // A character that was cut in two is left out.
  return `${Buffer.from(text)
    .subarray(0, MAX_ENTRY_BYTES - 3)
    .toString()
    .replace(/\ufffd+$/, '')}…`
}

function toAscii(json: string): string {
  return json.replaceAll(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const MICROS_PER_CENT = MICROS_PER_USD / 100

/** What the account has committed to calls under way; only limits that exist are listed. */
export function toSpendHeaders(spend: Spend | null): readonly string[] {
  if (spend === null) return []
  const headers: string[] = []
  const { limitMicros, committedMicros, maxCalls, runningCalls } = spend
  if (limitMicros !== null) {
    const limit = Math.floor(limitMicros / MICROS_PER_CENT)
    // Rounded up, so that what is left is never promised twice.
    const current = Math.ceil(committedMicros / MICROS_PER_CENT)
    headers.push('X-Committed-Spend-Limit', String(limit), 'X-Committed-Spend-Current', String(current))
    headers.push('X-Committed-Spend-Remaining', String(Math.max(0, limit - current)))
  }
  if (maxCalls !== null) {
    headers.push('X-Concurrency-Limit', String(maxCalls), 'X-Concurrency-Current', String(runningCalls))
    headers.push('X-Concurrency-Remaining', String(Math.max(0, maxCalls - runningCalls)))
  }
  return headers
}
