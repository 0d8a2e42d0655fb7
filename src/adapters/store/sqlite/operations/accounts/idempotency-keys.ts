/** Idempotency keys: one namespace per account, single use until they expire. */
import type { DatabaseSync } from 'node:sqlite'
import type { KeyHolder } from '../../../../../domain/idempotency/idempotency-key.ts'
import { prepareRows } from '../statement.ts'

interface KeyQuery {
  readonly accountId: string
  readonly key: string
  readonly now: number
}

interface ClaimedKey {
  readonly accountId: string
  readonly key: string
  readonly expiresAt: number
  readonly jobId: string | null
  readonly assetId: string | null
  readonly batchId?: string
}

/** What holds the key, or null when it is free. */
export function prepareFindHolder(database: DatabaseSync): (query: KeyQuery) => KeyHolder | null {
  const select = prepareRows<[string | null, string | null, string | null]>(
    database,
    'SELECT job_id, asset_id, batch_id FROM idempotency_key WHERE account_id = ? AND key = ? AND expires_at > ?',
  )
  return ({ accountId, key, now }) => {
    const row = select.get(accountId, key, now)
    if (row === undefined) return null
    const [jobId, assetId, batchId] = row
    return { jobId, assetId, ...(batchId !== null && { batchId }) }
  }
}

/** Takes a key that `prepareFindHolder` found free, also when an expired claim of it has not been swept yet. */
export function prepareClaimKey(database: DatabaseSync): (claim: ClaimedKey) => void {
  const upsert = database.prepare(`
    INSERT OR REPLACE INTO idempotency_key (account_id, key, expires_at, job_id, asset_id, batch_id)
    VALUES (?, ?, ?, ?, ?, ?)`)
  return ({ accountId, key, expiresAt, jobId, assetId, batchId = null }) => {
    upsert.run(accountId, key, expiresAt, jobId, assetId, batchId)
  }
}
