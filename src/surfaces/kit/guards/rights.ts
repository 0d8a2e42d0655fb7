/**
 * What a caller must have for a route. Every route declares it where it is registered, with `needs`; a surface says once, with
 * `createRouteGuard`, how it finds out who asks. A server with a route that declares nothing, or that declares a right which nobody would
 * check, does not start.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { type Caller, isScope, mustHaveScope, type Scope } from '../../../domain/accounts/caller.ts'

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
