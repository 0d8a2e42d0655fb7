/**
 * What every operation of this surface gets. A file of `operations/` holds the operations of one resource, each a function
 * `(api, deps) => void` that registers its routes; `api` puts them under `/api/x` and bare `/x`, where ComfyUI has both.
 */

import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import type { NewId } from '../../../lib/ids.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import type { Caller } from '../../domain/accounts/caller.ts'
import { ServiceError } from '../../domain/errors.ts'
import { parseLosslessBody, readBodyBytes } from '../kit/bodies/json-body.ts'
import type { Right } from '../kit/guards/routes.ts'
import { lenientQueryOf } from '../kit/request.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import type { AnnouncedFiles } from './files/announced-files.ts'
import type { ExtraDataMemory } from './prompts/prompt-extra-data.ts'
import type { JobClients } from './ws/client-news.ts'
import type { LogReaders } from './ws/log-news.ts'

export interface OperationDeps extends SurfaceParts {
  readonly jobClients: JobClients
  readonly extraData: ExtraDataMemory
  readonly announcedFiles: AnnouncedFiles
  readonly features: object
  readonly logReaders: LogReaders
  readonly newPromptId: NewId
  /** A message for every socket of the account in this process. */
  tell(accountId: string, message: string): void
  callerOf(request: FastifyRequest): Caller
  accountOf(request: FastifyRequest): string
}

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

export interface Api {
  /** Under `/api` and bare. */
  both(method: HTTPMethods, path: string, right: Right, handler: Handler): void
  /** Under `/api` only. */
  apiOnly(method: HTTPMethods, path: string, right: Right, handler: Handler): void
  /** What is registered, as `METHOD /path`, for the specification and the `Allow` header. */
  readonly routes: readonly string[]
}

export function createApi(app: FastifyInstance): Api {
  const routes: string[] = []
  const add = (method: HTTPMethods, config: RouteConfig, handler: Handler): void => {
    const url = config.isApi ? `/api${config.barePath}` : config.barePath
    routes.push(`${method} ${url}`)
    app.route({ method, url, handler, config })
  }
  return {
    routes,
    both(method, barePath, right, handler) {
      add(method, { isApi: true, barePath, right }, handler)
      add(method, { isApi: false, barePath, right }, handler)
    },
    apiOnly: (method, barePath, right, handler) => add(method, { isApi: true, barePath, right }, handler),
  }
}

const JSON_TYPE = 'application/json; charset=utf-8'

export function sendJson(reply: FastifyReply, value: object | null, status = 200): FastifyReply {
  return sendJsonText(reply, JSON.stringify(value), status)
}

/** `text` is JSON already. */
export function sendJsonText(reply: FastifyReply, text: string, status = 200): FastifyReply {
  return reply.code(status).header('content-type', JSON_TYPE).send(Buffer.from(text))
}

export function sendText(reply: FastifyReply, status: number, text: string): FastifyReply {
  return reply.code(status).header('content-type', 'text/plain; charset=utf-8').send(text)
}

/** The query, read as leniently as ComfyUI does: clients send empty values, raw semicolons and brackets. */
export function queryOf(request: FastifyRequest): URLSearchParams {
  return lenientQueryOf(request.raw.url ?? '')
}

/** An integer of the query; null when it is left out or empty. */
export function readInteger(query: URLSearchParams, name: string): number | null {
  const text = query.get(name)?.trim() ?? ''
  if (text === '') return null
  if (!/^[+-]?\d{1,9}$/.test(text)) throw new ServiceError('invalid_request', `${name} must be an integer`)
  return Number(text)
}

export function paramOf(request: FastifyRequest, name: string): string {
  return (request.params as Readonly<Record<string, string>>)[name] ?? ''
}

/** True for `/api/x`, false for bare `/x`. */
export function isApiPath(request: FastifyRequest): boolean {
  return configOf(request).isApi === true
}

/** The route's template, without `/api`; empty for routes that only refuse a method. */
export function barePathOf(request: FastifyRequest): string {
  return configOf(request).barePath ?? ''
}

interface RouteConfig {
  readonly right: Right
  readonly isApi: boolean
  readonly barePath: string
}

function configOf(request: FastifyRequest): Partial<RouteConfig> {
  return request.routeOptions.config as Partial<RouteConfig>
}

/**
 * JSON bodies read as leniently as ComfyUI does: whatever the content type says, and an empty body is an empty object, because
 * clients post nothing where JSON is expected.
 */
export async function readLooseJson(request: FastifyRequest, maxBytes: number): Promise<JsonValue> {
  const bytes = await readBodyBytes(request.raw, { maxBytes })
  return isBlank(bytes) ? {} : parseLosslessBody(request.raw, bytes)
}

/** Throws `invalid_request` for anything but an object. */
export async function readLooseObject(request: FastifyRequest, maxBytes: number): Promise<JsonObject> {
  const value = await readLooseJson(request, maxBytes)
  if (!isJsonObject(value)) throw new ServiceError('invalid_request', 'the body must be a JSON object')
  return value
}

function isBlank(bytes: Buffer): boolean {
  return bytes.length === 0 || (bytes.length < 64 && isUtf8(bytes) && bytes.toString('utf8').trim() === '')
}

const MAX_IDS = 1000

/** The ids of a member: a list, or one id alone. null is as if left out; anything else is refused. */
export function readIds(body: JsonObject, name: string): readonly string[] {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  if (value === undefined || value === null) return []
  const list = Array.isArray(value) ? value : [value]
  if (list.length > MAX_IDS) throw new ServiceError('invalid_request', `${name} may hold at most ${MAX_IDS} ids`)
  if (!list.every((id) => typeof id === 'string'))
    throw new ServiceError('invalid_request', `${name} must be a list of ids`)
  return list
}

/** A switch of a body; off when it is null or left out. */
export function readSwitch(body: JsonObject, name: string): boolean {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean') throw new ServiceError('invalid_request', `${name} must be true or false`)
  return value
}

// This surface is deprecated: every answer says so, and where its successor is (RFC 9745, RFC 8288).

// The first day of the year in which the Jobs API v2 became the contract.
const DEPRECATED_SINCE = '@1767225600'

/** By the beginning of a path below `/api`; the first match counts. */
const SUCCESSORS: readonly (readonly [start: string, successor: string])[] = [
  ['/upload/', '/api/v2/assets'],
  ['/view', '/api/v2/assets'],
  ['/prompt', '/api/v2/jobs'],
  ['/queue', '/api/v2/jobs'],
  ['/interrupt', '/api/v2/jobs'],
  ['/history', '/api/v2/jobs'],
  ['/job', '/api/v2/jobs'],
  ['/ws', '/api/v2/jobs'],
]
const OTHER_SUCCESSOR = '/api/v2/openapi.json'

export function deprecationHeaders(path: string, mountPrefix: string): Readonly<Record<string, string>> {
  const own = path.startsWith(mountPrefix) ? path.slice(mountPrefix.length) : path
  const bare = own.startsWith('/api/') ? own.slice('/api'.length) : own
  const [, successor] = SUCCESSORS.find(([start]) => bare.startsWith(start)) ?? ['', OTHER_SUCCESSOR]
  return { Deprecation: DEPRECATED_SINCE, Link: `<${mountPrefix}${successor}>; rel="successor-version"` }
}
