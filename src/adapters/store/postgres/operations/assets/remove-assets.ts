/** The end of uploads, by request or by age. The blob behind each becomes a candidate for collection. Outputs go with their jobs. */
import type { RemoveOutcome } from '../../../../../domain/assets/asset-store.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { removeRecords } from './account-storage.ts'
import { offerBlobs } from './blob-references.ts'

type Removed = [accountId: string, hash: string, sizeBytes: number]

const REMOVE = statement<Removed>(
  'assets.remove',
  `DELETE FROM asset WHERE id = $1 AND account_id = $2 AND (expires_at IS NULL OR expires_at > $3)
   RETURNING account_id, hash, size_bytes`,
)
// The record lives exactly as long as its job, so a record that is alive belongs to a job that is retained.
const IS_OUTPUT = statement<[number]>(
  'assets.is-output',
  'SELECT 1 FROM output WHERE id = $1 AND account_id = $2 AND expires_at > $3 LIMIT 1',
)
const EXPIRE = statement<Removed>(
  'assets.expire',
  // By an array: the planner takes the limit, which it does not know, for a tenth of the table, and would walk it for a join.
  `DELETE FROM asset WHERE id = ANY (ARRAY(
     SELECT id FROM asset WHERE expires_at IS NOT NULL AND expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))
   RETURNING account_id, hash, size_bytes`,
)

interface RemoveQuery {
  readonly accountId: string
  readonly assetId: string
  readonly now: number
}

export async function removeAsset(tx: Queryable, { accountId, assetId, now }: RemoveQuery): Promise<RemoveOutcome> {
  const removed = await tx.all(REMOVE, [assetId, accountId, now])
  await letGo(tx, removed, now)
  if (removed.length > 0) return 'removed'
  return (await tx.get(IS_OUTPUT, [assetId, accountId, now])) === undefined ? 'not_found' : 'in_use'
}

export async function expireAssets(tx: Queryable, now: number, limit: number): Promise<number> {
  const removed = await tx.all(EXPIRE, [now, limit])
  await letGo(tx, removed, now)
  return removed.length
}

async function letGo(tx: Queryable, removed: readonly Removed[], now: number): Promise<void> {
  const records = removed.map(([accountId, hash, sizeBytes]) => ({ accountId, hash, sizeBytes }))
  await removeRecords(tx, records)
  await offerBlobs(tx, records, now)
}
