/** An asset on its way out of the store: an upload, or a file that a job made. */
import type { Asset } from '../../../../../domain/assets/asset.ts'

export type AssetRow = readonly [
  seq: number,
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

const SHARED = 'seq, id, account_id, hash, size_bytes, content_type, file_path'

export const UPLOAD_COLUMNS = `${SHARED}, tags, created_at, expires_at, NULL::text AS job_id`
export const OUTPUT_COLUMNS = `${SHARED}, '[]' AS tags, created_at, expires_at, job_id::text AS job_id`

export function toAsset(row: AssetRow): Asset {
  const [, id, accountId, hash, sizeBytes, contentType, filePath, tags, createdAt, expiresAt, jobId] = row
  return {
    ...{ id, accountId, hash, sizeBytes, contentType, filePath, jobId },
    tags: JSON.parse(tags) as string[],
    createdAt: new Date(createdAt),
    expiresAt: expiresAt === null ? null : new Date(expiresAt),
  }
}
