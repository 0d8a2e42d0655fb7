/** Idempotency keys inside the transactions that claim them. */
import type { KeyHolder } from '../../../../../domain/idempotency/idempotency-key.ts'
import { claimKeys as claimSteps, findHolders as findSteps } from '../../../stores/idempotency-store.ts'
import type { Queryable } from '../../database/statement.ts'
import { runOn } from '../../shared-stores.ts'

interface KeyQuery {
  readonly accountId: string
  readonly key: string
  readonly now: number
}

export interface ClaimedKey {
  readonly accountId: string
  readonly key: string
  readonly claimedAt: number
  readonly expiresAt: number
  readonly jobId: string | null
  readonly assetId: string | null
  readonly batchId?: string
}

export function findHolders(db: Queryable, queries: readonly KeyQuery[]): Promise<(KeyHolder | null)[]> {
  return runOn(db, findSteps(queries.map(({ now, ...query }) => ({ ...query, now: new Date(now) }))))
}

export function claimKeys(tx: Queryable, claims: readonly ClaimedKey[]): Promise<void> {
  const steps = claims.map(({ accountId, key, claimedAt, expiresAt, jobId, batchId }) => ({
    ...{ accountId, key, now: new Date(claimedAt), expiresAt: new Date(expiresAt) },
    ...(jobId !== null && { jobId }),
    ...(batchId !== undefined && { batchId }),
  }))
  return runOn(tx, claimSteps(steps))
}
