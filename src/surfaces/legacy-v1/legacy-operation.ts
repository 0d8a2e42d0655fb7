/**
 * What every operation of this surface gets. A file of `operations/` holds the operations of one resource, each a function
 * `(api, deps) => void` that registers its routes; `api` puts them under `/api/x` and bare `/x`, where ComfyUI has both.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import type { NewId } from '../../../lib/ids.ts'
import type { Caller } from '../../domain/accounts/caller.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Right } from '../kit/guards/rights.ts'
import type { SurfaceParts } from '../kit/parts/surface-parts.ts'
import { lenientQueryOf } from '../kit/request-url.ts'
import type { AnnouncedFiles } from './files/announced-files.ts'
import type { JobClients } from './prompts/job-clients.ts'
import type { ExtraDataMemory } from './prompts/prompt-extra-data.ts'
import type { LogReaders } from './ws/log-news.ts'

export interface OperationDeps extends SurfaceParts {
  readonly jobClients: JobClients
  readonly extraData: ExtraDataMemory
  readonly announcedFiles: AnnouncedFiles
  readonly features: object
  readonly logReaders: LogReaders
  readonly newPromptId: NewId
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
