/**
 * What holds for every upload, by whichever API it comes: how many bytes of it are taken, and the record that it becomes. Bytes
 * count against the account's quota from their arrival until the record counts them.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import { forAccount, type PerAccount } from '../../accounts/limits/tiers.ts'
import { ServiceError } from '../../errors.ts'
import { keyReuse, toKeyClaim } from '../../idempotency/idempotency-key.ts'
import type { Asset } from '../asset.ts'
import type { AssetStore } from '../asset-store.ts'
import type { BlobStore, PendingBlob, PutOptions } from '../blob-store.ts'
import type { Admission, StorageQuota } from '../storage-quota.ts'
import { readExpiry } from './asset-fields.ts'

/** A stream of bytes, or bytes that come by another way and are taken in within the same bounds. */
export type UploadSource = AsyncIterable<Uint8Array> | { receive(options: PutOptions): Promise<PendingBlob> }

export interface UploadPolicy {
  /**
   * Receives no more than the largest upload of the account, and no more than it may still keep. Throws payload_too_large and
   * storage_full.
   */
  admit(accountId: string, source: UploadSource, options: AdmitOptions): Promise<Admission>
  /** Makes the record of bytes that are stored. Throws idempotency_key_reuse, and hash_mismatch where other bytes have the id. */
  record(upload: NewUpload): Promise<AssetCreation>
}

interface AdmitOptions {
  readonly signal?: AbortSignal
  /** What was set aside for these bytes before; left out: nothing. */
  readonly reservedBytes?: number
}

interface NewUpload extends Pick<Asset, 'accountId' | 'hash' | 'sizeBytes' | 'contentType' | 'filePath' | 'tags'> {
  /** null: as long as uploads live that do not say. */
  readonly expiresInSeconds: number | null
  readonly idempotencyKey: string | null
  /** Left out: a new one. */
  readonly assetId?: string
}

export interface AssetCreation {
  readonly asset: Asset
  /** False when the account already had these bytes. */
  readonly createdNew: boolean
}

interface UploadPolicyDeps {
  readonly assets: Pick<AssetStore, 'mint'>
  readonly blobs: Pick<BlobStore, 'receive'>
  readonly clock: Clock
  readonly newId: NewId
  readonly maxBytes: PerAccount
  readonly quota: Pick<StorageQuota, 'admit'>
  /** null: uploads live for ever unless they say otherwise. */
  readonly retentionMs: number | null
}

export function createUploadPolicy(deps: UploadPolicyDeps): UploadPolicy {
  const { assets, blobs, clock, newId, quota, retentionMs } = deps
  return {
    admit: (accountId, source, { signal, reservedBytes }) =>
      quota.admit(accountId, { maxBytes: forAccount(deps.maxBytes, accountId), reservedBytes }, (maxBytes) =>
        'receive' in source ? source.receive({ maxBytes, signal }) : blobs.receive(source, { maxBytes, signal }),
      ),
    async record({ expiresInSeconds, idempotencyKey, assetId = newId(), ...fields }) {
      const now = clock.now()
      const expiresAt = readExpiry(expiresInSeconds, { now, defaultMs: retentionMs })
      const outcome = await assets.mint({
        asset: { ...fields, id: assetId, createdAt: now, expiresAt, jobId: null },
        keyClaim: toKeyClaim(idempotencyKey, now),
        mustOwnHash: false,
      })
      if (outcome.outcome === 'key_reused') throw keyReuse(outcome.holder)
      if (outcome.outcome === 'id_taken')
        throw new ServiceError(
          'hash_mismatch',
          'other bytes came to this address before, and stay; ask for a new address',
        )
      if (outcome.outcome === 'hash_unknown') throw new Error('an upload does not ask for a known hash')
      return { asset: outcome.asset, createdNew: outcome.outcome === 'minted' && outcome.newToAccount }
    },
  }
}
