/** An asset on its way out of the store. */
import type { Asset } from '../../../../../domain/assets/asset.ts'

export const ASSET_COLUMNS =
  'id, account_id, hash, size_bytes, content_type, file_path, tags, created_at, expires_at, job_id'

export type AssetRow = readonly [
  id: string,
  accountId: string,
  hash: string,
  sizeBytes: number,
  contentType: string,
  filePath: string | null,
  tags: string,
  createdAt: number,
  expiresAt: number | null,
  jobId: string | null,
]

/** A record past its life is gone for every reader, swept or not. The parameter is the current time. */
export const IS_ALIVE = '(expires_at IS NULL OR expires_at > ?)'

export function toAsset(row: AssetRow): Asset {
  const [id, accountId, hash, sizeBytes, contentType, filePath, tags, createdAt, expiresAt, jobId] = row
  return {
    id,
    accountId,
    hash,
    sizeBytes,
    contentType,
    filePath,
    tags: JSON.parse(tags) as string[],
    createdAt: new Date(createdAt),
    expiresAt: expiresAt === null ? null : new Date(expiresAt),
    jobId,
  }
}

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
