import { ServiceError } from '../../domain/errors.ts'
import type { Place } from '../kit/gate.ts'

/**
 * The pool that an address is limited to; null for an address that names no deployment. Throws not_found for a deployment that
 * this account may not use, exactly as for one that does not exist.
 */
export type PoolOf = (place: Place, accountId: string) => string | null

/** Where there are no deployments at all. */
export function noDeployments({ deploymentId }: Place): null {
  if (deploymentId === null) return null
  throw new ServiceError('not_found', 'there is nothing under this address')
}
