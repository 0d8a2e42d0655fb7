/**
 * Idempotency keys: one namespace per account, single use until they expire. Whoever claims a key holds the lock of its account
 * (`lockAccounts`), looks for a holder in a later statement, and writes what it created in the same transaction.
 */
import type { KeyHolder } from '../../../../../domain/idempotency/idempotency-key.ts'
import { type Queryable, statement } from '../../database/statement.ts'

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

const FIND = statement<[place: number, jobId: string | null, assetId: string | null, batchId: string | null]>(
  'keys.find',
  `SELECT asked.place::int, k.job_id, k.asset_id, k.batch_id
   FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS asked(account_id, key, now, place)
   JOIN idempotency_key AS k ON k.account_id = asked.account_id AND k.key = asked.key AND k.expires_at > asked.now`,
)

/** What holds each of the keys, or null where one is free. */
export async function findHolders(db: Queryable, queries: readonly KeyQuery[]): Promise<(KeyHolder | null)[]> {
  if (queries.length === 0) return []
  const rows = await db.all(FIND, [
    queries.map(({ accountId }) => accountId),
    queries.map(({ key }) => key),
    queries.map(({ now }) => now),
  ])
  const holders = queries.map((): KeyHolder | null => null)
  for (const [place, jobId, assetId, batchId] of rows)
    holders[place - 1] = { jobId, assetId, ...(batchId !== null && { batchId }) }
  return holders
}

// The guard repeats what `findHolders` has decided: a claim never replaces a live one, whatever the caller overlooked. A key may
// not end at null, so the whole transaction fails.
const CLAIM = statement(
  'keys.claim',
  `INSERT INTO idempotency_key (account_id, key, expires_at, job_id, asset_id, batch_id)
   SELECT account_id, key, expires_at, job_id, asset_id, batch_id
   FROM unnest($1::text[], $2::text[], $3::bigint[], $4::uuid[], $5::text[], $7::uuid[])
     AS c(account_id, key, expires_at, job_id, asset_id, batch_id)
   ON CONFLICT (account_id, key) DO UPDATE
     SET expires_at = CASE WHEN idempotency_key.expires_at <= $6 THEN excluded.expires_at END,
       job_id = excluded.job_id, asset_id = excluded.asset_id, batch_id = excluded.batch_id`,
)

/** Takes keys that `findHolders` found free, also where an expired claim has not been swept yet. Each key may be there only once. */
export async function claimKeys(tx: Queryable, claims: readonly ClaimedKey[]): Promise<void> {
  if (claims.length === 0) return
  await tx.run(CLAIM, [
    claims.map(({ accountId }) => accountId),
    claims.map(({ key }) => key),
    claims.map(({ expiresAt }) => expiresAt),
    claims.map(({ jobId }) => jobId),
    claims.map(({ assetId }) => assetId),
    Math.max(...claims.map(({ claimedAt }) => claimedAt)),
    claims.map(({ batchId = null }) => batchId),
  ])
}
