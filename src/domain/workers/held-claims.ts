/**
 * What the leases of joined workers hold, remembered for a moment: a run asks for inputs, numbers and models many times, and the
 * commit, which decides, is fenced by the store anyway.
 */
import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Clock } from '../../../lib/clock.ts'
import { ServiceError } from '../errors.ts'
import type { Claim, JobStore, Lease } from '../jobs/job-store.ts'

/** Without the graph, which may be large. */
export type HeldClaim = Omit<Claim, 'workflow' | 'earlierOutputs'>

export interface HeldClaims {
  learn(claim: Claim): void
  /** Throws not_found when the lease holds nothing, or another job. */
  mustFind(lease: Lease): Promise<HeldClaim>
  forget(leaseId: string): void
}

interface HeldClaimsDeps {
  readonly store: Pick<JobStore, 'findClaim'>
  readonly clock: Clock
}

const MAX_REMEMBERED = 2000
const FRESH_MS = 5000

export function createHeldClaims({ store, clock }: HeldClaimsDeps): HeldClaims {
  const remembered = new BoundedMap<string, { readonly claim: HeldClaim; readonly untilMs: number }>(MAX_REMEMBERED)

  function learn({ workflow: _workflow, earlierOutputs: _outputs, ...claim }: Claim): HeldClaim {
    remembered.set(claim.leaseId, { claim, untilMs: clock.now().getTime() + FRESH_MS })
    return claim
  }

  /** A lease may hold another job than it did: after a lost answer its claim was made again, perhaps by another process. */
  async function find({ jobId, leaseId }: Lease): Promise<HeldClaim | null> {
    const known = remembered.get(leaseId)
    if (known?.claim.job.id === jobId && known.untilMs > clock.now().getTime()) return known.claim
    const claim = await store.findClaim(leaseId)
    if (claim !== null) return learn(claim)
    remembered.delete(leaseId)
    return null
  }

  return {
    learn: (claim) => void learn(claim),
    async mustFind(lease) {
      const claim = await find(lease)
      if (claim?.job.id !== lease.jobId) throw new ServiceError('not_found', 'this lease holds no such job')
      return claim
    },
    forget: (leaseId) => remembered.delete(leaseId),
  }
}
