/** The columns of an asset, and one on its way into the store. */
import type { Asset } from '../../../../../domain/assets/asset.ts'
import type { AssetRow } from '../../../rows/asset-row.ts'

export const ASSET_COLUMNS =
  'id, account_id, hash, size_bytes, content_type, file_path, tags, created_at, expires_at, job_id'

/** A record past its life is gone for every reader, swept or not. The parameter is the current time. */
export const IS_ALIVE = '(expires_at IS NULL OR expires_at > ?)'

export function toAssetRow(asset: Asset): AssetRow {
  const { id, accountId, hash, sizeBytes, contentType, filePath, tags, createdAt, expiresAt, jobId } = asset
  const expiry = expiresAt === null ? null : expiresAt.getTime()
  return [
    id,
    accountId,
    hash,
    sizeBytes,
    contentType,
    filePath,
    JSON.stringify(tags),
    createdAt.getTime(),
    expiry,
    jobId,
  ]
}
