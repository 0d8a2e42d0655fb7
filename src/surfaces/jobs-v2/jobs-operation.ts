/**
 * What every operation of this surface knows of its request. An operation is one function `(app, deps) => void` that registers
 * its route; it is named after its `operationId` in the contract.
 */
import type { FastifyRequest } from 'fastify'
import type { JobReach } from './reachable-jobs.ts'

export interface RequestContext extends JobReach {
  /** What the credential may do; null: everything its account may. */
  readonly scopes: ReadonlySet<string> | null
  /** The API key that was shown, if any. */
  readonly keyId: string | null
  readonly requestId: string
  /** Scheme and authority that the caller used (or the configured public base), without a trailing slash. */
  readonly origin: string
  /** '' or '/some/prefix'. Host-relative links begin with it. */
  readonly mountPrefix: string
}

/** The guards set the context before any handler runs. */
export type ContextOf = (request: FastifyRequest) => RequestContext
