/**
 * Mint: the same account, hash, path and tags (in the same order) give the same record; anything else a new one. Everything is
 * decided under the row of the account, so two mints of the same bytes, or two claims of one key, follow each other.
 */
import type { MintOutcome, MintRequest } from '../../../../../domain/assets/asset-store.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { addRecords } from './account-storage.ts'
import { type NumberedAssetRow, toAsset, UPLOAD_COLUMNS } from './asset-row.ts'

const LOCK = statement<[number]>('assets.lock-account', 'SELECT 1 FROM account WHERE id = $1 FOR NO KEY UPDATE')
const FIND_HOLDER = statement<[jobId: string | null, assetId: string | null, batchId: string | null]>(
  'assets.find-key-holder',
  'SELECT job_id::text, asset_id, batch_id::text FROM idempotency_key WHERE account_id = $1 AND key = $2 AND expires_at > $3',
)
const CLAIM_KEY = statement(
  'assets.claim-key',
  `INSERT INTO idempotency_key (account_id, key, expires_at, job_id, asset_id) VALUES ($1, $2, $3, NULL, $4)
   ON CONFLICT (account_id, key) DO UPDATE
     SET expires_at = excluded.expires_at, job_id = NULL, asset_id = excluded.asset_id, batch_id = NULL`,
)
const OWNS_HASH = statement<[boolean]>(
  'assets.owns-hash',
  `SELECT EXISTS (SELECT 1 FROM asset WHERE hash = $1 AND account_id = $2 AND (expires_at IS NULL OR expires_at > $3))
     OR EXISTS (SELECT 1 FROM output WHERE hash = $1 AND account_id = $2 AND expires_at > $3)`,
)
// The same record already: made the newest and kept at least as long as asked.
const RENEW = statement<NumberedAssetRow>(
  'assets.renew',
  `WITH same AS MATERIALIZED (
     SELECT id AS same_id FROM asset WHERE account_id = $1 AND hash = $2 AND file_path IS NOT DISTINCT FROM $3 AND tags = $4
       AND (expires_at IS NULL OR expires_at > $6)
     ORDER BY seq DESC LIMIT 1)
   UPDATE asset SET seq = nextval('asset_seq'),
     expires_at = CASE WHEN expires_at IS NULL OR $5::bigint IS NULL THEN NULL ELSE greatest(expires_at, $5::bigint) END
   FROM same WHERE id = same_id RETURNING ${UPLOAD_COLUMNS}`,
)
const INSERT = statement<[number]>(
  'assets.insert',
  `INSERT INTO asset (id, account_id, hash, size_bytes, content_type, file_path, tags, created_at, expires_at)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING RETURNING 1`,
)

export async function mintAsset(tx: Queryable, request: MintRequest): Promise<MintOutcome> {
  const { asset, keyClaim, mustOwnHash } = request
  const { accountId, hash, sizeBytes, contentType, filePath } = asset
  const now = (keyClaim?.claimedAt ?? asset.createdAt).getTime()
  const expiresAt = asset.expiresAt?.getTime() ?? null
  const tags = JSON.stringify(asset.tags)
  if ((await tx.get(LOCK, [accountId])) === undefined) throw new Error(`No account ${accountId}.`)
  const [holder, owns] = await Promise.all([
    keyClaim === null ? undefined : tx.get(FIND_HOLDER, [accountId, keyClaim.key, now]),
    tx.get(OWNS_HASH, [hash, accountId, now]),
  ])
  if (holder !== undefined) {
    const [jobId, assetId, batchId] = holder
    return { outcome: 'key_reused', holder: { jobId, assetId, ...(batchId !== null && { batchId }) } }
  }
  const isOwned = owns?.[0] === true
  if (mustOwnHash && !isOwned) return { outcome: 'hash_unknown' }
  const same = isOwned ? await tx.get(RENEW, [accountId, hash, filePath, tags, expiresAt, now]) : undefined
  const minted = same === undefined ? asset : toAsset(same)
  const createdAt = asset.createdAt.getTime()
  const fields = [asset.id, accountId, hash, sizeBytes, contentType, filePath, tags, createdAt, expiresAt]
  if (same === undefined && (await tx.get(INSERT, fields)) === undefined) return { outcome: 'id_taken' }
  if (keyClaim !== null) await tx.run(CLAIM_KEY, [accountId, keyClaim.key, keyClaim.expiresAt.getTime(), minted.id])
  if (same !== undefined) return { outcome: 'existing', asset: minted }
  await addRecords(tx, [{ accountId, hash, sizeBytes }])
  return { outcome: 'minted', asset, newToAccount: !isOwned }
}
