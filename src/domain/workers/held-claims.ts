/**
 * What the leases of joined workers hold, remembered for a moment: a run asks for inputs, numbers and models many times, and the
 * commit, which decides, is fenced by the store anyway.
 */
import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Clock } from '../../../lib/clock.ts'
import { isUuid } from '../../../lib/ids.ts'
import { ServiceError } from '../errors.ts'
import type { Claim, JobStore, Lease } from '../jobs/job-store.ts'
import type { WorkerIdentity } from './worker-keys.ts'

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

/**
 * Names of what belongs to joined workers. The service puts the id of the worker's key into each, so that whatever a worker names
 * is its own: it cannot even spell the lease, the engine or the process of somebody else.
 */
type Key = Pick<WorkerIdentity, 'keyId'>

/** What a worker calls a lease is an id that it made up. */
export function toLeaseId({ keyId }: Key, name: string): string {
  return `${keyId}.${name}`
}

export function toLease(key: Key, { jobId, leaseId }: Lease): Lease {
  return { jobId, leaseId: toLeaseId(key, leaseId) }
}

/** Processes that share a key are told apart by an id that each made at its start. */
export function toNodeId({ keyId }: Key, instanceId: string): string {
  return `${keyId}-${instanceId}`
}

/** The id that a process of this key made for itself; null: it is no process of this key. */
export function toInstanceId({ keyId }: Key, nodeId: string): string | null {
  const instanceId = nodeId.slice(keyId.length + 1)
  return nodeId.startsWith(`${keyId}-`) && isUuid(instanceId) ? instanceId : null
}

export function toEngineId({ keyId }: Key, name: string): string {
  return `${name}@${keyId}`
}

export function toEngineName({ keyId }: Key, engineId: string): string {
  return engineId.endsWith(`@${keyId}`) ? engineId.slice(0, -keyId.length - 1) : engineId
}

/** The key of the joined worker that a process is; null: it is one of the service's own. */
export function keyIdOfNode(nodeId: string): string | null {
  return JOINED_NODE.exec(nodeId)?.[1] ?? null
}

const JOINED_NODE = /^([0-9A-Za-z]{12})-[0-9a-f]{8}-/
const JOINED = /@([0-9A-Za-z]{12})$/

/** The key of the joined worker that an engine belongs to; null: it is one of the service's own. */
export function keyIdOf(engineId: string): string | null {
  return JOINED.exec(engineId)?.[1] ?? null
}
