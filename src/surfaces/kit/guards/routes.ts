/**
 * What a caller must have for a route. Every route declares it where it is registered, with `needs`; a surface says once, with
 * `createRouteGuard`, how it finds out who asks. A server with a route that declares nothing, or that declares a right which nobody would
 * check, does not start. Behind that the gate as hooks of the framework, and which methods a path has.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { type Caller, isScope, mustHaveScope, type Scope } from '../../../domain/accounts/caller.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { dropRestOf, keepOpenFor } from '../bodies/gather-body.ts'
import { markRoute, pathOf } from '../request.ts'
import type { AnswerError, ErrorAnswer } from '../surface.ts'
import type { Gate, ServiceAddress } from './gate.ts'

/**
 * A scope: a credential of an account with this scope. `any_scope`: a credential of an account, whatever its scopes. `asset`: which scope is
 * needed depends on what the asset is, and the operation asks `mustRead`. `public`: no credential.
 */
export type Right = Scope | 'any_scope' | 'asset' | 'operator' | 'worker' | 'public'

interface RightConfig {
  readonly right?: Right
  /** A guard of the surface will check the right. */
  readonly isGuarded?: boolean
}

/** The options of a route that needs this right. */
export function needs(right: Right): { readonly config: { readonly right: Right } } {
  return { config: { right } }
}

/** For pages that a link on another site may lead to, too; they hold no data of anybody. */
export const PUBLIC_PAGE = { config: { right: 'public', isPublicPage: true } } as const

interface Guards<Known> {
  /** Comes first, whatever the route needs. */
  readonly before?: (request: FastifyRequest, reply: FastifyReply) => void
  /** Who the caller is. Throws, or rejects with, unauthorized. */
  readonly account?: (request: FastifyRequest) => (Known & Caller) | Promise<Known & Caller>
  readonly worker?: (request: FastifyRequest, reply: FastifyReply) => Known
  /** Throws, or rejects with, unauthorized. */
  readonly operator?: (request: FastifyRequest) => unknown
}

export interface RouteGuard<Known> {
  /** Guards all routes that are registered from here on, and below. */
  protect(app: FastifyInstance): void
  /** What the guard found out about the caller of this request. */
  knownOf(request: FastifyRequest): Known
}

export function createRouteGuard<Known>(guards: Guards<Known>): RouteGuard<Known> {
  const KNOWN = Symbol('known of the caller')
  type Guarded = FastifyRequest & { [KNOWN]?: Known }

  async function check(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    guards.before?.(request, reply)
    const { right = 'public' } = request.routeOptions.config as RightConfig
    if (right === 'public') return
    const kind = guardOf(right)
    if (kind === 'operator') await guards.operator?.(request)
    else if (kind === 'worker') (request as Guarded)[KNOWN] = guards.worker?.(request, reply)
    else {
      const caller = await guards.account?.(request)
      if (caller !== undefined && isScope(right)) mustHaveScope(caller, right)
      ;(request as Guarded)[KNOWN] = caller
    }
  }

  return {
    protect(app) {
      app.decorateRequest(KNOWN, undefined)
      app.addHook('onRoute', (route) => {
        const { right } = (route.config ?? {}) as RightConfig
        if (right === undefined || right === 'public' || guards[guardOf(right)] === undefined) return
        route.config = { ...route.config, isGuarded: true } as RouteOptions['config']
      })
      app.addHook('onRequest', check)
    },
    knownOf(request) {
      const known = (request as Guarded)[KNOWN]
      if (known === undefined) throw new Error('this route is not behind the guard that knows the caller')
      return known
    },
  }
}

function guardOf(right: Exclude<Right, 'public'>): 'account' | 'operator' | 'worker' {
  return right === 'operator' || right === 'worker' ? right : 'account'
}

export interface DeclaredRoute {
  readonly method: string
  /** With parameters as `:name`, and `*` for whatever follows. */
  readonly url: string
  readonly right: Right
}

/** Notes every route that is registered from here on. The answer, once all are there, throws if one of them is open by mistake. */
export function watchRoutes(app: FastifyInstance): () => readonly DeclaredRoute[] {
  const routes: RouteOptions[] = []
  app.addHook('onRoute', (route) => void routes.push(route))
  return () => routes.flatMap(mustBeDeclared)
}

function mustBeDeclared({ method, url, config }: RouteOptions): DeclaredRoute[] {
  const { right, isGuarded } = (config ?? {}) as RightConfig
  const methods = [method].flat()
  const name = `${methods.join(', ')} ${url}`
  if (right === undefined)
    throw new Error(`the route ${name} does not declare what it needs; register it with needs(…)`)
  if (right !== 'public' && isGuarded !== true)
    throw new Error(`the route ${name} needs ${right}, but its surface has no guard that would check it`)
  return methods.map((one) => ({ method: one, url, right }))
}

/**
 * The gate as hooks of the framework, for every route and for addresses that have none: answer headers first, so that each
 * refusal carries them too, then the guards, then OPTIONS. Surfaces that must know the caller add `authenticate`.
 */
interface GuardOptions {
  readonly gate: Gate
  /** The error envelope of the surface that the path belongs to. */
  readonly answerErrorFor: (path: string) => AnswerError
  readonly allowedMethods: (path: string) => readonly string[]
}

const ADDRESS = Symbol('address')
type Addressed = FastifyRequest & { [ADDRESS]?: ServiceAddress }

/** How this caller reached us; known once the guards have run. */
export function serviceAddressOf(request: FastifyRequest): ServiceAddress {
  const address = (request as Addressed)[ADDRESS]
  if (address === undefined) throw new Error('the guards have not run for this request')
  return address
}

export function guardRequests(app: FastifyInstance, options: GuardOptions): void {
  const { gate, answerErrorFor, allowedMethods } = options
  app.decorateRequest(ADDRESS, undefined)

  app.addHook('onRequest', (request, reply, done) => {
    setHeaders(reply, gate.answerHeaders(request.headers.origin, request.id))
    markRoute(request.raw, request.routeOptions.url ?? '')
    const { isPublicPage, answersOptions, answersPreflights } = request.routeOptions.config as RouteConfig
    ;(request as Addressed)[ADDRESS] = isPublicPage === true ? gate.addressOf(request.raw) : gate.admit(request.raw)
    const isOwn = isPreflight(request) ? answersPreflights : answersOptions
    if (request.method !== 'OPTIONS' || isOwn === true) done()
    else answerOptions(request, reply)
  })

  // An answer that comes before the whole request was read must not cut the sender off in mid-sentence.
  app.addHook('onResponse', (request, _reply, done) => {
    dropRestOf(request.raw)
    done()
  })

  app.setErrorHandler((error, request, reply) =>
    sendError(reply, answerErrorFor(pathOf(request.raw.url ?? ''))(error, request.id)),
  )

  app.setNotFoundHandler((request, reply) => {
    const methods = allowedMethods(pathOf(request.raw.url ?? ''))
    if (methods.length > 0) reply.header('Allow', methods.join(', '))
    const error =
      methods.length > 0
        ? wrongMethod(request.method, methods)
        : new ServiceError('not_found', 'there is nothing under this address')
    return sendError(reply, answerErrorFor(pathOf(request.raw.url ?? ''))(error, request.id))
  })

  function answerOptions(request: FastifyRequest, reply: FastifyReply): void {
    const { origin } = request.headers
    if (isPreflight(request) && origin !== undefined && gate.cors.isAllowed(origin)) {
      setHeaders(reply, gate.cors.preflightHeaders(origin))
    } else {
      const methods = new Set([...allowedMethods(pathOf(request.raw.url ?? '')), 'OPTIONS'])
      reply.header('Allow', [...methods].join(', '))
    }
    reply.code(204).send()
  }
}

interface RouteConfig {
  readonly isPublicPage?: boolean
  /** The route says more of itself than which methods it has. */
  readonly answersOptions?: boolean
  /** The route knows which pages of other origins may use it. */
  readonly answersPreflights?: boolean
}

function isPreflight({ headers }: FastifyRequest): boolean {
  return headers['access-control-request-method'] !== undefined
}

export function sendError(reply: FastifyReply, { status, headers, body }: ErrorAnswer): FastifyReply {
  keepOpenFor(reply.request.raw, reply.raw)
  return reply.code(status).headers(headers).send(Buffer.from(body))
}

function setHeaders(reply: FastifyReply, headers: readonly string[]): void {
  for (let at = 0; at < headers.length; at += 2) reply.header(headers[at], headers[at + 1])
}

/**
 * Which methods exist under a path, for 405 and `Allow`. As in OpenAPI, a path without parameters wins over one with them, so
 * `/assets/from-hash` is not also an `/assets/{id}`; a router alone would let the second one answer what the first lacks.
 */
export interface PathMethods {
  /** With parameters in braces. */
  readonly template: string
  readonly methods: readonly string[]
  /** What GET answers never ends. */
  readonly isStream?: boolean
}

/** Methods of a path below the mount; empty when the path is none of ours. */
export type MethodsOf = (path: string) => readonly string[]

export function compileMethods(paths: readonly PathMethods[]): MethodsOf {
  const routes = paths
    .map((path) => ({ ...path, pattern: toPattern(path.template), parameters: countParameters(path.template) }))
    .sort((left, right) => left.parameters - right.parameters)
  return (path) => {
    const found = routes.filter((route) => route.pattern.test(path))
    const nearest = found.filter(({ parameters }) => parameters === found[0].parameters)
    const methods = new Set(nearest.flatMap((route) => route.methods))
    // Whatever can be read can be asked about, except a stream.
    if (methods.has('GET') && !nearest.some(({ isStream }) => isStream)) methods.add('HEAD')
    return [...methods].sort()
  }
}

/** Routes that keep a path with parameters from answering for one with fewer: `/runs/{id}` for `/runs/batch`. */
export function refuseShadowedMethods(
  app: FastifyInstance,
  { paths, methodsOf }: { readonly paths: readonly PathMethods[]; readonly methodsOf: MethodsOf },
  right: Right,
): void {
  const known = paths.map(({ template, methods }) => {
    const parameters = countParameters(template)
    return { template, methods, parameters, pattern: toPattern(template) }
  })
  for (const { template, parameters: least } of known) {
    const own = methodsOf(template)
    const others = known.filter(({ pattern, parameters }) => parameters > least && pattern.test(template))
    const method = [...new Set(others.flatMap(({ methods }) => methods))].filter((one) => !own.includes(one))
    if (method.length === 0) continue
    app.route({
      method,
      url: template.replaceAll(/\{(\w+)\}/g, ':$1'),
      ...needs(right),
      handler(request, reply) {
        reply.header('Allow', own.join(', '))
        throw wrongMethod(request.method, own)
      },
    })
  }
}

export function wrongMethod(method: string, allowed: readonly string[]): ServiceError {
  return new ServiceError('wrong_method', `${method} is not possible here; use ${allowed.join(', ')}`)
}

function toPattern(template: string): RegExp {
  return new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`)
}

function countParameters(template: string): number {
  return template.split('{').length - 1
}
