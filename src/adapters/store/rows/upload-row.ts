/** Uploads that can be continued, as both stores keep them. Columns and fields stand in the same order. */
import type { UploadFields } from '../../../domain/assets/create/upload-fields.ts'
import type { ResumableUpload } from '../../../domain/assets/resumable/upload-store.ts'

export const UPLOAD_COLUMNS =
  'id, account_id, length_bytes, fields, metadata, place, hash, asset_id, created_at, expires_at'

export type UploadRow = readonly [
  id: string,
  accountId: string,
  lengthBytes: number,
  fields: string,
  metadata: string,
  place: string | null,
  hash: string | null,
  assetId: string | null,
  createdAt: number,
  expiresAt: number,
]

export function toUpload(row: UploadRow): ResumableUpload {
  const [id, accountId, lengthBytes, fields, metadata, place, hash, assetId, createdAt, expiresAt] = row
  return {
    ...{ id, accountId, lengthBytes, fields: JSON.parse(fields) as UploadFields, metadata, place, hash, assetId },
    ...{ createdAt: new Date(createdAt), expiresAt: new Date(expiresAt) },
  }
}

export function toUploadRow(upload: ResumableUpload): UploadRow {
  const { id, accountId, lengthBytes, fields, metadata, place, hash, assetId, createdAt, expiresAt } = upload
  const texts = [id, accountId, lengthBytes, JSON.stringify(fields), metadata, place, hash, assetId] as const
  return [...texts, createdAt.getTime(), expiresAt.getTime()]
}
