/**
 * What every operation of this surface gets besides its own dependencies. An operation file exports one function
 * `(app, deps) => void` that registers its route, with `deps` as narrow as it can be.
 */
import type { FastifyRequest } from 'fastify'
import type { Clock } from '../../../lib/clock.ts'
import type { JobReach } from './reachable-jobs.ts'

export interface RequestContext extends JobReach {
  /** What the credential may do; null: everything its account may. */
  readonly scopes: ReadonlySet<string> | null
  readonly requestId: string
  /** Scheme and authority that the caller used (or the configured public base), without a trailing slash. */
  readonly origin: string
  /** '' or '/some/prefix'. Host-relative links begin with it. */
  readonly mountPrefix: string
}

export interface OperationKit {
  readonly clock: Clock
  /** Set by the guards before any handler runs. */
  contextOf(request: FastifyRequest): RequestContext
}
