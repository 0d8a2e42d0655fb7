/**
 * Names of what belongs to joined workers. The service puts the id of the worker's key into each, so that whatever a worker names
 * is its own: it cannot even spell the lease, the engine or the process of somebody else.
 */
import { isUuid } from '../../../lib/ids.ts'
import type { Lease } from '../jobs/job-store.ts'
import type { WorkerIdentity } from './worker-keys.ts'

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

const JOINED = /@([0-9A-Za-z]{12})$/

/** The key of the joined worker that an engine belongs to; null: it is one of the service's own. */
export function keyIdOf(engineId: string): string | null {
  return JOINED.exec(engineId)?.[1] ?? null
}
