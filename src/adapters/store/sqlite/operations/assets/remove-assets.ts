/** The end of asset records, by request or by age. The blob behind each becomes a candidate for collection. */
import type { DatabaseSync } from 'node:sqlite'
import type { RemoveOutcome } from '../../../../../domain/assets/asset-store.ts'
import { prepareRows } from '../statement.ts'
import { IS_ALIVE } from './asset-row.ts'
import { prepareOfferBlob } from './blob-references.ts'

interface RemoveAssetInput {
  readonly accountId: string
  readonly assetId: string
  readonly now: number
}

interface ExpireAssetsInput {
  readonly now: number
  readonly limit: number
}

type Removed = [hash: string, sizeBytes: number]

export function prepareRemoveAsset(database: DatabaseSync): (input: RemoveAssetInput) => RemoveOutcome {
  const select = prepareRows<[seq: number, isOutput: number]>(
    database,
    `SELECT seq, EXISTS (SELECT 1 FROM job WHERE job.id = asset.job_id) FROM asset
     WHERE id = ? AND account_id = ? AND ${IS_ALIVE}`,
  )
  const remove = prepareRows<Removed>(database, 'DELETE FROM asset WHERE seq = ? RETURNING hash, size_bytes')
  const offerBlob = prepareOfferBlob(database)
  return ({ accountId, assetId, now }) => {
    const row = select.get(assetId, accountId, now)
    if (row === undefined) return 'not_found'
    const [seq, isOutput] = row
    // The record lives exactly as long as its job, so a record that is alive belongs to a job that is retained.
    if (isOutput === 1) return 'in_use'
    for (const [hash, sizeBytes] of remove.all(seq)) offerBlob({ hash, sizeBytes, now })
    return 'removed'
  }
}

export function prepareExpireAssets(database: DatabaseSync): (input: ExpireAssetsInput) => number {
  const remove = prepareRows<Removed>(
    database,
    `DELETE FROM asset WHERE seq IN
       (SELECT seq FROM asset WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?)
     RETURNING hash, size_bytes`,
  )
  const offerBlob = prepareOfferBlob(database)
  return ({ now, limit }) => {
    const removed = remove.all(now, limit)
    for (const [hash, sizeBytes] of removed) offerBlob({ hash, sizeBytes, now })
    return removed.length
  }
}
