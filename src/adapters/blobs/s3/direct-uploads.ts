/**
 * Uploads that clients send to the bucket themselves. Nothing of them counts before they are completed: then the object is read once,
 * as if it came through this process, and goes on like any other received bytes. What is never completed is swept from the bucket.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { Blake3 } from '../../../../lib/files/blake3.ts'
import type { BlobIndex } from '../../../domain/assets/blob-index.ts'
import type { DirectUploads, OpenUpload, PendingBlob } from '../../../domain/assets/blob-store.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import type { Bucket, UploadedPart } from './bucket.ts'
import { type Hedge, readObject } from './read-object.ts'
import { hasS3Code, isNotFound, toStorageError } from './s3-error.ts'

interface JoinDeps {
  readonly bucket: Bucket
  readonly index: Pick<BlobIndex, 'knownObjects' | 'hashOf' | 'touch'>
  readonly hedge: Hedge
  readonly clock: Clock
  readonly blake3: Blake3
  /** Goes on with an object that was read. */
  toPending(object: { readonly key: string; readonly hash: string; readonly sizeBytes: number }): PendingBlob
  onTransferred(bytes: number): void
}

interface DirectUploadDeps extends Pick<JoinDeps, 'bucket'> {
  readonly join: JoinUpload
  newKey(): string
}

// A client that sends large parts over a slow line needs a while; it may ask for the address again.
const PART_SECONDS = 3600
const WRONG_PARTS = ['InvalidPart', 'InvalidPartOrder', 'EntityTooSmall', 'MalformedXML', 'InvalidArgument']

interface WholeUpload {
  readonly parts: readonly UploadedPart[]
  readonly sizeBytes: number
  /** null: the object is read once to know it. */
  readonly hash: string | null
  readonly signal?: AbortSignal
}

/** Joins the parts of an upload, and goes on with the object as with any other received bytes. */
export type JoinUpload = (upload: OpenUpload, whole: WholeUpload) => Promise<PendingBlob>

export function createJoinUpload(deps: JoinDeps): JoinUpload {
  const { bucket, index, blake3, clock, toPending } = deps

  async function join({ objectKey, uploadId }: OpenUpload, { parts, sizeBytes }: WholeUpload): Promise<void> {
    // What the index has let go of is about to be removed: it must not be recorded a second time.
    if ((await index.knownObjects([objectKey])).length > 0) throw over()
    // They were joined before, or are gone: the size of the object tells.
    if (parts.length === 0) return
    try {
      await bucket.completeUpload(objectKey, uploadId, { parts, sizeBytes })
    } catch (error) {
      if (isNotFound(error)) throw over()
      if (hasS3Code(error, ...WRONG_PARTS)) throw invalidField('parts', 'are not those that were sent')
      throw error
    }
  }

  /** The hash of what lies there. A read that breaks goes on where it was. */
  async function measure(key: string, sizeBytes: number, signal: AbortSignal | undefined): Promise<string> {
    const source = await readObject({ key, hash: null, sizeBytes }, { ...deps, onDamage: () => {} })
    const hasher = blake3.createHasher()
    for await (const chunk of source as AsyncIterable<Buffer>) {
      signal?.throwIfAborted()
      hasher.update(chunk)
    }
    return hasher.digest()
  }

  /** The answer to an earlier completion may be lost, or its record could not be written: the bytes are kept all the same. */
  async function findKept({ objectKey }: OpenUpload, sizeBytes: number): Promise<PendingBlob | null> {
    const hash = await index.hashOf(objectKey)
    if (hash === null) return null
    const keep = async () => {
      const object = await index.touch(hash, clock.now())
      if (object?.objectKey !== objectKey) throw over()
    }
    return { hash, sizeBytes, keep, async discard() {} }
  }

  return async function joinUpload(upload, whole) {
    const { sizeBytes, signal } = whole
    try {
      signal?.throwIfAborted()
      const kept = await findKept(upload, sizeBytes)
      if (kept !== null) return kept
      await join(upload, whole)
      const found = await bucket.sizeOf(upload.objectKey)
      if (found !== sizeBytes) {
        await bucket.remove(upload.objectKey)
        throw invalidField('parts', `make up ${found ?? 0} bytes, and ${sizeBytes} were announced; nothing was kept`)
      }
      const hash = whole.hash ?? (await measure(upload.objectKey, sizeBytes, signal))
      const pending = toPending({ key: upload.objectKey, hash, sizeBytes })
      // Somebody may complete the same upload at the same time, so only the sweep may remove the object.
      return { ...pending, async discard() {} }
    } catch (error) {
      // Another process completes it too, found the same bytes elsewhere, and removed these.
      throw isNotFound(error) ? over() : toStorageError(error)
    }
  }
}

export function createDirectUploads({ bucket, join, newKey }: DirectUploadDeps): DirectUploads {
  return {
    async begin() {
      const objectKey = newKey()
      try {
        return { objectKey, uploadId: await bucket.beginUpload(objectKey, { isOurs: false }) }
      } catch (error) {
        throw toStorageError(error)
      }
    },
    async signPart({ objectKey, uploadId }, { number, sizeBytes }) {
      const query = { partNumber: String(number), uploadId }
      const headers = { 'content-length': String(sizeBytes) }
      try {
        return await bucket.presign('PUT', objectKey, { query, headers, lifetimeSeconds: PART_SECONDS })
      } catch (error) {
        throw toStorageError(error)
      }
    },
    async complete(upload, { parts, sizeBytes, maxBytes, signal }) {
      if (sizeBytes > maxBytes) throw tooLarge(maxBytes)
      const sent = parts.map((part) => ({ ...part, checksum: null }))
      return join(upload, { parts: sent, sizeBytes, hash: null, ...(signal && { signal }) })
    },
    async abandon({ objectKey, uploadId }) {
      try {
        await bucket.abandonUpload(objectKey, uploadId)
      } catch (error) {
        throw toStorageError(error)
      }
    },
  }
}

function over(): ServiceError {
  return new ServiceError('not_found', 'this upload was completed or given up before, or is too old')
}

function tooLarge(maxBytes: number): ServiceError {
  return new ServiceError('payload_too_large', `the content is larger than the limit of ${maxBytes} bytes`, {
    details: { max_bytes: maxBytes },
  })
}
