/**
 * Bytes that come in pieces, each upload as the parts of one object. Where a part begins and ends follows from its number alone, so a part
 * that was sent again, by whichever process, holds the same stretch; what does not fill a part yet lies beside them as a small object
 * of its own. How far an upload has come is asked of the bucket, which every process sees alike.
 */
import type { Blake3 } from '../../../../lib/files/blake3.ts'
import { createInterruptible } from '../../../../lib/files/byte-streams.ts'
import type { OpenUpload, PartialBlobs } from '../../../domain/assets/blob-store.ts'
import { tooMuch } from '../../../domain/assets/resumable/upload-store.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { createRunningHashes } from '../running-hashes.ts'
import type { Bucket, ListedPart } from './bucket.ts'
import type { JoinUpload } from './direct-uploads.ts'
import { MAX_PARTS, type PartBuilder, type Parts, partBytesOf } from './parts.ts'
import { isNotFound, toStorageError } from './s3-error.ts'

interface PartialObjectsDeps {
  readonly bucket: Bucket
  readonly parts: Parts
  readonly blake3: Blake3
  newKey(): string
  onTransferred(bytes: number): void
  readonly join: JoinUpload
}

interface Layout {
  /** Full ones, from the first without a gap. */
  readonly parts: readonly ListedPart[]
  readonly partsBytes: number
  /** Of what lies beside them. */
  readonly tailBytes: number
}

const IN_FLIGHT = 2

export function createPartialObjects(deps: PartialObjectsDeps): PartialBlobs {
  const { bucket, blake3, join } = deps
  const hashes = createRunningHashes(blake3)

  /** null: the parts were joined, or given up. */
  async function layoutOf(upload: OpenUpload): Promise<Layout | null> {
    try {
      const parts = withoutGap(await bucket.listParts(upload.objectKey, upload.uploadId))
      const partsBytes = parts.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
      return { parts, partsBytes, tailBytes: (await bucket.sizeOf(tailOf(upload, partsBytes))) ?? 0 }
    } catch (error) {
      if (isNotFound(error)) return null
      throw error
    }
  }

  async function sizeOf(upload: OpenUpload): Promise<number> {
    const layout = await layoutOf(upload)
    return layout === null ? ((await bucket.sizeOf(upload.objectKey)) ?? 0) : layout.partsBytes + layout.tailBytes
  }

  return {
    begin: () =>
      withStorageErrors(async () => {
        const objectKey = deps.newKey()
        return JSON.stringify([objectKey, await bucket.beginUpload(objectKey)])
      }),
    sizeOf: (place) => withStorageErrors(() => sizeOf(toUpload(place))),
    append: (place, source, { offsetBytes, lengthBytes, signal }) =>
      withStorageErrors(async () => {
        const upload = toUpload(place)
        const layout = await layoutOf(upload)
        if (layout === null || layout.partsBytes + layout.tailBytes !== offsetBytes)
          throw new Error('bytes are appended where the object does not end')
        const steps = createInterruptible(source)
        const onAbort = () => steps.interrupt(signal.reason)
        signal.addEventListener('abort', onAbort, { once: true })
        if (signal.aborted) onAbort()
        const hasher = hashes.take(place, offsetBytes)
        const sender = createSender(upload, layout, { ...deps, onFailure: steps.interrupt })
        let takenBytes = offsetBytes
        let failure: unknown = null
        try {
          await sender.begin()
          for (let step = await steps.next(); !step.done; step = await steps.next()) {
            if (takenBytes + step.value.length > lengthBytes) throw tooMuch(lengthBytes)
            takenBytes += step.value.length
            hasher?.update(step.value)
            deps.onTransferred(step.value.length)
            await sender.write(step.value)
          }
        } catch (error) {
          failure = error
          steps.stop()
        }
        signal.removeEventListener('abort', onAbort)
        await sender.end({ isWhole: takenBytes === lengthBytes }).catch((error: unknown) => {
          failure = error
        })
        const sizeBytes = await sizeOf(upload)
        if (sizeBytes === takenBytes) hashes.putBack(place, hasher, sizeBytes)
        return { sizeBytes, failure: failure === null ? null : toStorageError(failure) }
      }),
    complete: (place, { sizeBytes, signal }) =>
      withStorageErrors(async () => {
        const upload = toUpload(place)
        const parts = (await layoutOf(upload))?.parts ?? []
        const hash = hashes.finish(place, sizeBytes)
        return join(upload, { parts, sizeBytes, hash, ...(signal && { signal }) })
      }),
    remove: (place) =>
      withStorageErrors(async () => {
        const upload = toUpload(place)
        const layout = await layoutOf(upload)
        if (layout === null) return
        await bucket.remove(tailOf(upload, layout.partsBytes))
        await bucket.abandonUpload(upload.objectKey, upload.uploadId)
      }),
  }
}

interface Sender {
  /** Fetches what does not fill a part yet. */
  begin(): Promise<void>
  write(chunk: Uint8Array): Promise<void>
  /** Everything is in the bucket when this resolves. */
  end(options: { readonly isWhole: boolean }): Promise<void>
}

interface SenderDeps extends Pick<PartialObjectsDeps, 'bucket' | 'parts'> {
  onFailure(error: unknown): void
}

function createSender(upload: OpenUpload, layout: Layout, { bucket, parts, onFailure }: SenderDeps): Sender {
  const { objectKey, uploadId } = upload
  const inFlight = new Set<Promise<void>>()
  let number = layout.parts.length + 1
  let beginsAt = layout.partsBytes
  let builder: PartBuilder = parts.begin(partBytesOf(number))
  let failure: { readonly error: unknown } | null = null

  async function sendPart(full: PartBuilder, as: number): Promise<void> {
    const part = await full.finish()
    try {
      await bucket.putPart(objectKey, { uploadId, number: as }, part)
    } catch (error) {
      if (failure === null) onFailure(toStorageError(error))
      failure ??= { error }
    } finally {
      await part.free()
    }
  }

  async function send(): Promise<void> {
    while (inFlight.size >= IN_FLIGHT) await Promise.race(inFlight)
    if (failure !== null) throw failure.error
    if (number > MAX_PARTS) throw new ServiceError('payload_too_large', 'the content has too many parts to be stored')
    const sending = sendPart(builder, number).then(() => void inFlight.delete(sending))
    inFlight.add(sending)
    beginsAt += builder.sizeBytes()
    number++
    builder = parts.begin(partBytesOf(number))
  }

  async function write(chunk: Uint8Array): Promise<void> {
    for (let taken = 0; taken < chunk.length; ) {
      taken += await builder.write(chunk.subarray(taken))
      if (builder.isFull()) await send()
    }
  }

  async function keepTail(): Promise<void> {
    const part = await builder.finish()
    try {
      // All parts before it must be there, otherwise it would not be looked for at this place.
      await Promise.all(inFlight)
      if (failure === null && part.sizeBytes > 0) await bucket.put(tailOf(upload, beginsAt), part)
    } finally {
      await part.free()
    }
  }

  return {
    async begin() {
      if (layout.tailBytes > 0) await write((await bucket.read(tailOf(upload, layout.partsBytes))) ?? Buffer.alloc(0))
    },
    write,
    async end({ isWhole }) {
      if (isWhole && builder.sizeBytes() > 0) await send()
      await keepTail()
      if (failure !== null) throw failure.error
      // Best effort: it is no longer used, and the sweep finds what stays.
      if (layout.tailBytes > 0 && beginsAt > layout.partsBytes)
        await bucket.remove(tailOf(upload, layout.partsBytes)).catch(() => {})
    },
  }
}

/** A part that is not full ends the object. */
function withoutGap(parts: readonly ListedPart[]): ListedPart[] {
  const sorted = parts.toSorted((a, b) => a.number - b.number)
  const gap = sorted.findIndex(({ number }, index) => number !== index + 1)
  return gap === -1 ? sorted : sorted.slice(0, gap)
}

/** What does not fill a part yet, by the place where it begins. */
function tailOf({ objectKey }: OpenUpload, beginsAt: number): string {
  return `${objectKey}.tail-${beginsAt}`
}

function toUpload(place: string): OpenUpload {
  const [objectKey, uploadId] = JSON.parse(place) as [string, string]
  return { objectKey, uploadId }
}

async function withStorageErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw toStorageError(error)
  }
}
