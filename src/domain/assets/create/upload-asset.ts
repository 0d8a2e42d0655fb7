/**
 * Receives an upload. What is known of it is judged before the first byte, the rest after the last one; bytes are stored before
 * the record. An upload that is refused or breaks off makes no record and leaves the idempotency key free; bytes that had
 * already got their name are collected later.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { ServiceError } from '../../errors.ts'
import { type IdempotencyStore, keyReuse } from '../../idempotency/idempotency-key.ts'
import type { AssetStore } from '../asset-store.ts'
import { type PendingBlob, settleBlob } from '../blob-store.ts'
import type { ModelPlacement } from '../weights/model-placement.ts'
import { checkSafetensors } from '../weights/safetensors-header.ts'
import { type AdmittedFields, createAdmitFields, type UploadFields } from './upload-fields.ts'
import type { AssetCreation, UploadPolicy, UploadSource } from './upload-policy.ts'

export interface UploadRequest {
  readonly accountId: string
  readonly source: UploadSource
  /** As far as they are known before the first byte; null: too little is. */
  readonly fields: UploadFields | null
  /** All of them, once the source has ended; left out: they were known before. */
  readonly finalFields?: () => UploadFields
  readonly idempotencyKey: string | null
  /** Of the record that it becomes; left out: a new one. */
  readonly assetId?: string
  /** What was set aside for its bytes before; left out: nothing. */
  readonly reservedBytes?: number
  readonly signal?: AbortSignal
}

/** Throws ServiceError. */
export type UploadAsset = (request: UploadRequest) => Promise<AssetCreation>

interface UploadDeps {
  readonly uploads: UploadPolicy
  readonly assets: Pick<AssetStore, 'announceBlob'>
  readonly keys: Pick<IdempotencyStore, 'findKey'>
  readonly placement: ModelPlacement
  readonly clock: Clock
}

export function createUploadAsset(deps: UploadDeps): UploadAsset {
  const { uploads, assets, keys, placement, clock } = deps
  const admit = createAdmitFields(deps)

  /** The key is claimed together with the record; this check only spares a client that repeats itself the gigabytes. */
  async function refuseUsedKey({ accountId, idempotencyKey }: UploadRequest): Promise<void> {
    if (idempotencyKey === null) return
    const holder = await keys.findKey(accountId, idempotencyKey, clock.now())
    if (holder !== null) throw keyReuse(holder)
  }

  async function judge(pending: PendingBlob, request: UploadRequest, early: AdmittedFields | null) {
    try {
      request.signal?.throwIfAborted()
      const fields = request.finalFields === undefined ? null : await admit(request.finalFields())
      const judged = fields ?? early
      if (judged === null) throw new Error('an upload came without its fields')
      checkHash(pending.hash, judged.expectedHash)
      if (judged.filePath.model !== null) await placement.reserve(judged.filePath.model, pending)
      return judged
    } catch (error) {
      await pending.discard()
      throw error
    }
  }

  async function keep(
    pending: PendingBlob,
    request: UploadRequest,
    early: AdmittedFields | null,
  ): Promise<AssetCreation> {
    const { filePath, contentType, tags, expiresInSeconds } = await judge(pending, request, early)
    const { accountId, assetId, idempotencyKey } = request
    await settleBlob(pending, { assets, clock })
    const { hash, sizeBytes } = pending
    const { model } = filePath
    if (model !== null && !isCheckedOnItsWay(request, early)) await placement.checkStored({ hash, sizeBytes })
    const undo = model === null ? null : await placement.place(model, { hash, sizeBytes })
    try {
      const fields = { hash, sizeBytes, contentType, filePath: filePath.path, tags, expiresInSeconds }
      return await uploads.record({ ...fields, accountId, idempotencyKey, ...(assetId !== undefined && { assetId }) })
    } catch (error) {
      await undo?.()
      throw error
    }
  }

  return async function uploadAsset(request) {
    const early = request.fields === null ? null : await admit(request.fields)
    await refuseUsedKey(request)
    const { accountId, signal, reservedBytes } = request
    const source = isCheckedOnItsWay(request, early)
      ? checkSafetensors(request.source as AsyncIterable<Uint8Array>)
      : request.source
    const admission = await uploads.admit(accountId, source, { signal, reservedBytes })
    try {
      return await keep(admission.pending, request, early)
    } finally {
      admission.end()
    }
  }
}

/** A stream that is known to be a model before its bytes come. */
function isCheckedOnItsWay({ source }: UploadRequest, early: AdmittedFields | null): boolean {
  return !('receive' in source) && early !== null && early.filePath.model !== null
}

function checkHash(hash: string, expected: string | null): void {
  if (expected === null || expected === hash) return
  throw new ServiceError('hash_mismatch', 'the received bytes do not have the expected hash; nothing was kept', {
    details: { expectedHash: `blake3:${expected}`, actualHash: `blake3:${hash}` },
  })
}
