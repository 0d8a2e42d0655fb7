/** What every surface shares that offers endpoints in the words of another service: who calls, at which address, and where results are. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from '../../../domain/accounts/caller.ts'
import type { Job, Output } from '../../../domain/jobs/job.ts'
import { createRouteGuard, serviceAddressOf } from '../guards/routes.ts'
import type { SurfaceParts } from '../surface-parts.ts'

export interface DoorContext extends Caller {
  /** Of the deployment that the address names; null: it names none. */
  readonly pool: string | null
  /** Scheme, host and mount prefix. */
  readonly baseUrl: string
}

export interface Door {
  protect(app: FastifyInstance): void
  contextOf(request: FastifyRequest): DoorContext
  /** An address of the output that needs no credential, for an hour. */
  linkTo(output: Pick<Output, 'assetId'>, job: Pick<Job, 'accountId' | 'expiresAt'>, baseUrl: string): string
}

// As long as the other services keep theirs.
const LINK_MS = 60 * 60 * 1000

export function createDoor({ gate, poolOf, content, clock }: SurfaceParts): Door {
  const guard = createRouteGuard<Omit<DoorContext, 'baseUrl'>>({
    async account(request) {
      const caller = await gate.authenticate(request.raw, 'bearer')
      return { ...caller, pool: poolOf(serviceAddressOf(request), caller.accountId) }
    },
  })
  return {
    protect: guard.protect,
    contextOf(request) {
      const { origin, mountPrefix } = serviceAddressOf(request)
      return { ...guard.knownOf(request), baseUrl: origin + mountPrefix }
    },
    linkTo({ assetId }, { accountId, expiresAt: endsAt }, baseUrl) {
      const expiresAt = new Date(Math.min(clock.now().getTime() + LINK_MS, endsAt.getTime()))
      const path = content.sign?.({ accountId, assetId, expiresAt }) ?? `/api/v2/assets/${assetId}/content`
      return baseUrl + path
    },
  }
}
