/**
 * Takes an upload in: fields are judged before the first byte, bytes are stored before the record. Whatever refuses or breaks
 * it on the way mints nothing and leaves the idempotency key free; bytes that had already got their name are collected later.
 */
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import { forAccount, type PerAccount } from '../accounts/tiers.ts'
import { ServiceError } from '../errors.ts'
import type { IdempotencyStore } from '../idempotency/key-record.ts'
import type { Asset } from './asset.ts'
import { readContentType, readExpiry, readTags } from './asset-fields.ts'
import type { AssetStore } from './asset-store.ts'
import type { BlobStore, PendingBlob } from './blob-store.ts'
import { type FilePath, readFilePath } from './file-path.ts'
import { keyReuse, toKeyClaim } from './key-reuse.ts'
import type { ModelPlacement } from './model-placement.ts'
import { checkSafetensors } from './safetensors-header.ts'
import type { StorageRooms } from './storage-rooms.ts'
import { settleBlob } from './store-blob.ts'

export interface UploadRequest {
  readonly accountId: string
  readonly source: AsyncIterable<Uint8Array>
  readonly filePath: string
  readonly contentType: string
  /** Plain lower-case hex. */
  readonly expectedHash: string | null
  readonly tags: readonly string[]
  readonly expiresInSeconds: number | null
  readonly idempotencyKey: string | null
  readonly signal?: AbortSignal
}

export interface AssetCreation {
  readonly asset: Asset
  readonly createdNew: boolean
}

/** `createdNew` is false when the account already had these bytes. Throws ServiceError. */
export type UploadAsset = (request: UploadRequest) => Promise<AssetCreation>

export interface UploadDeps {
  readonly assets: AssetStore
  readonly blobs: BlobStore
  readonly keys: Pick<IdempotencyStore, 'findKey'>
  readonly placement: ModelPlacement
  readonly clock: Clock
  readonly newId: NewId
  readonly maxBytes: PerAccount
  readonly rooms: Pick<StorageRooms, 'admit'>
  /** null: uploads live for ever unless they say otherwise. */
  readonly retentionMs: number | null
}

export function createUploadAsset(deps: UploadDeps): UploadAsset {
  const { assets, blobs, keys, placement, clock, newId, maxBytes, rooms, retentionMs } = deps

  /** Everything that can be refused without reading the file is refused here. */
  async function admit(request: UploadRequest) {
    const filePath = readFilePath(request.filePath)
    const fields = { contentType: readContentType(request.contentType), tags: readTags(request.tags) }
    readExpiry(request.expiresInSeconds, { now: clock.now(), defaultMs: null })
    if (filePath.model !== null) await placement.admit(filePath.model)
    if (request.idempotencyKey !== null) {
      // The claim itself is made with the record; this only spares a repeated sender the gigabytes.
      const holder = await keys.findKey(request.accountId, request.idempotencyKey, clock.now())
      if (holder !== null) throw keyReuse(holder)
    }
    return { filePath, ...fields }
  }

  async function judge(pending: PendingBlob, request: UploadRequest, filePath: FilePath): Promise<void> {
    try {
      request.signal?.throwIfAborted()
      checkHash(pending.hash, request.expectedHash)
      if (filePath.model !== null) await placement.reserve(filePath.model, pending)
    } catch (error) {
      await pending.discard()
      throw error
    }
  }

  async function mint(
    request: UploadRequest,
    fields: Omit<Asset, 'id' | 'createdAt' | 'expiresAt' | 'accountId' | 'jobId'>,
  ) {
    const now = clock.now()
    const outcome = await assets.mint({
      asset: {
        ...fields,
        id: newId(),
        accountId: request.accountId,
        createdAt: now,
        expiresAt: readExpiry(request.expiresInSeconds, { now, defaultMs: retentionMs }),
        jobId: null,
      },
      keyClaim: toKeyClaim(request.idempotencyKey, now),
      mustOwnHash: false,
    })
    if (outcome.outcome === 'key_reused') throw keyReuse(outcome.holder)
    if (outcome.outcome === 'hash_unknown') throw new Error('an upload does not ask for a known hash')
    return { asset: outcome.asset, createdNew: outcome.outcome === 'minted' && outcome.newToAccount }
  }

  async function keep(
    pending: PendingBlob,
    request: UploadRequest,
    { filePath, contentType, tags }: { filePath: FilePath; contentType: string; tags: readonly string[] },
  ): Promise<AssetCreation> {
    const { model } = filePath
    await judge(pending, request, filePath)
    await settleBlob(pending, { assets, clock })
    const { hash, sizeBytes } = pending
    const undo = model === null ? null : await placement.place(model, { hash, sizeBytes })
    try {
      return await mint(request, { hash, sizeBytes, contentType, filePath: filePath.path, tags })
    } catch (error) {
      await undo?.()
      throw error
    }
  }

  return async function uploadAsset(request) {
    const { filePath, contentType, tags } = await admit(request)
    const { model } = filePath
    const source = model === null ? request.source : checkSafetensors(request.source)
    const admission = await rooms.admit(request.accountId, forAccount(maxBytes, request.accountId), (most) =>
      blobs.receive(source, { maxBytes: most, signal: request.signal }),
    )
    try {
      return await keep(admission.pending, request, { filePath, contentType, tags })
    } finally {
      admission.end()
    }
  }
}

function checkHash(hash: string, expected: string | null): void {
  if (expected === null || expected === hash) return
  throw new ServiceError('hash_mismatch', 'the received bytes do not have the expected hash; nothing was kept', {
    details: { expected_hash: `blake3:${expected}`, actual_hash: `blake3:${hash}` },
  })
}
