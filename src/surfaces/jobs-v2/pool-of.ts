import type { ServiceAddress } from '../kit/guards/gate.ts'

/**
 * The pool that an address is limited to; null for an address that names no deployment. Throws not_found for a deployment that
 * this account may not use, exactly as for one that does not exist.
 */
export type PoolOf = (address: ServiceAddress, accountId: string) => string | null
