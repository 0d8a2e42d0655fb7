/**
 * The end of an upload whose last byte has arrived: the whole gets its name, and the record is made as for any other upload. Each step
 * may be the last one before a crash, and each finds what an earlier try has left: the hash is noted before the bytes move, and
 * the asset has the id of the upload.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { invalidField, ServiceError, storageUnavailable } from '../../errors.ts'
import type { AssetStore } from '../asset-store.ts'
import type { BlobStore, PendingBlob, PutOptions } from '../blob-store.ts'
import type { UploadAsset } from '../create/upload-asset.ts'
import type { UploadHold } from './upload-leases.ts'
import type { ResumableUpload, UploadStore } from './upload-store.ts'

/** Returns the id of the asset; null when the bytes are not there any more and must be sent anew. Throws ServiceError. */
export type FinishUpload = (hold: UploadHold) => Promise<string | null>

interface FinishDeps {
  readonly store: Pick<UploadStore, 'noteHash' | 'remove'>
  readonly blobs: Pick<BlobStore, 'stat' | 'receive' | 'partials'>
  readonly assets: Pick<AssetStore, 'find'>
  readonly uploadAsset: UploadAsset
  readonly clock: Clock
}

export function createFinishUpload({ store, blobs, assets, uploadAsset, clock }: FinishDeps): FinishUpload {
  const { partials } = blobs

  /** The hash of the bytes, where an earlier try has already given them their final name. */
  async function findKept({ hash, lengthBytes }: ResumableUpload): Promise<string | null> {
    if (hash === null) return null
    return (await blobs.stat(hash))?.sizeBytes === lengthBytes ? hash : null
  }

  async function hasBytes({ place, lengthBytes }: ResumableUpload): Promise<boolean> {
    return place === null || (await partials.sizeOf(place)) === lengthBytes
  }

  async function complete({ upload, leaseId }: UploadHold, options: PutOptions): Promise<PendingBlob> {
    const { place, lengthBytes: sizeBytes } = upload
    if (place === null) return blobs.receive(nothing(), options)
    const pending = await partials.complete(place, { ...options, sizeBytes })
    if (await store.noteHash(upload.id, leaseId, pending.hash)) return pending
    throw new ServiceError('upload_locked', 'another request ends this upload')
  }

  function toKept(hash: string, sizeBytes: number): PendingBlob {
    return {
      hash,
      sizeBytes,
      async keep() {
        // The blob was announced again just before, so no sweep takes it from now on.
        if ((await blobs.stat(hash)) === null) throw storageUnavailable(null)
      },
      async discard() {},
    }
  }

  async function forget({ upload, leaseId }: UploadHold): Promise<void> {
    if (upload.place !== null) await partials.remove(upload.place)
    await store.remove(upload.id, leaseId)
  }

  return async function finishUpload(hold) {
    const { id, accountId, lengthBytes, fields, place } = hold.upload
    const made = await assets.find(accountId, id, clock.now())
    if (made !== null) return made.id
    const kept = await findKept(hold.upload)
    if (kept === null && !(await hasBytes(hold.upload))) {
      await store.noteHash(id, hold.leaseId, null)
      return null
    }
    const source = {
      receive: async (options: PutOptions) => (kept === null ? complete(hold, options) : toKept(kept, lengthBytes)),
    }
    try {
      const request = { accountId, source, fields, assetId: id, idempotencyKey: null, reservedBytes: lengthBytes }
      const { asset } = await uploadAsset({ ...request, signal: hold.signal })
      // The asset is made; parts that cannot be removed now are swept later.
      if (place !== null) await partials.remove(place).catch(() => {})
      return asset.id
    } catch (error) {
      if (!isHopeless(error)) throw error
      await forget(hold)
      throw toLasting(error)
    }
  }
}

/** Whether the same bytes would be refused at every further try. */
function isHopeless(error: unknown): error is ServiceError {
  return error instanceof ServiceError && (error.refusal === 'hash_mismatch' || error.refusal === 'invalid_field')
}

/** A mismatch is not told as a conflict, because clients of the protocol answer a conflict by sending all bytes again. */
function toLasting(error: ServiceError): ServiceError {
  if (error.refusal !== 'hash_mismatch') return error
  return invalidField('expected_hash', 'is not the hash of the bytes that came; nothing was kept', error.details ?? {})
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
