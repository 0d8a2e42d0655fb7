/** An asset on its way out of the store: an upload, or a file that a job made. */
import type { Asset } from '../../../../../domain/assets/asset.ts'
import { type AssetRow, readAssetRow } from '../../../rows/asset-row.ts'

/** With the number by which rows are listed. */
export type NumberedAssetRow = readonly [seq: number, ...AssetRow]

const SHARED = 'seq, id, account_id, hash, size_bytes, content_type, file_path'

export const UPLOAD_COLUMNS = `${SHARED}, tags, created_at, expires_at, NULL::text AS job_id`
export const OUTPUT_COLUMNS = `${SHARED}, '[]' AS tags, created_at, expires_at, job_id::text AS job_id`

export function toAsset([, ...row]: NumberedAssetRow): Asset {
  return readAssetRow(row)
}
