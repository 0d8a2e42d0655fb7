/** An asset as both stores select it. */
import type { Asset } from '../../../domain/assets/asset.ts'
import { toDate } from './row-date.ts'

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

export function readAssetRow(row: AssetRow): Asset {
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
    expiresAt: toDate(expiresAt),
    jobId,
  }
}
