/**
 * Takes bytes in from a stream and hashes them. What fits into one part is not sent anywhere yet: storage may have it already.
 * Anything larger goes to the bucket as it arrives, under a name of its own, two parts at a time. Whatever goes wrong, nothing is
 * left behind but what the sweep of unfinished objects finds.
 */
import type { Blake3 } from '../../../../lib/files/blake3.ts'
import { createInterruptible, type Interruptible } from '../../../../lib/files/byte-streams.ts'
import type { PutOptions } from '../../../domain/assets/blob-store.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { Bucket, UploadedPart } from './bucket.ts'
import { FIRST_PART_BYTES, MAX_PARTS, type Part, type PartBuilder, type Parts, partBytesOf } from './parts.ts'
import { toStorageError } from './s3-error.ts'

export type Received = { readonly hash: string; readonly sizeBytes: number } & (
  | { readonly kind: 'part'; readonly part: Part }
  | { readonly kind: 'object'; readonly key: string }
)

interface ReceiveDeps {
  readonly bucket: Bucket
  readonly parts: Parts
  readonly blake3: Blake3
  newKey(): string
  /** Called for every chunk of a piece that is larger than one part. */
  onTransferred(bytes: number): void
}

const IN_FLIGHT = 2

export async function receiveObject(
  source: AsyncIterable<Uint8Array>,
  { maxBytes, signal }: PutOptions,
  deps: ReceiveDeps,
): Promise<Received> {
  signal?.throwIfAborted()
  const steps = createInterruptible(source)
  const onAbort = () => steps.interrupt(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    return await receiveSteps(steps, maxBytes, deps)
  } catch (error) {
    steps.stop()
    throw toStorageError(error)
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
}

async function receiveSteps(steps: Interruptible<Uint8Array>, maxBytes: number, deps: ReceiveDeps): Promise<Received> {
  const hasher = deps.blake3.createHasher()
  let builder = deps.parts.begin(FIRST_PART_BYTES)
  let upload: Upload | null = null
  let sizeBytes = 0
  try {
    for (let step = await steps.next(); !step.done; step = await steps.next()) {
      sizeBytes += step.value.length
      if (sizeBytes > maxBytes) throw tooLarge(maxBytes)
      if (upload !== null) deps.onTransferred(step.value.length)
      hasher.update(step.value)
      for (let taken = 0; taken < step.value.length; ) {
        if (builder.isFull()) {
          upload ??= createUpload(deps, steps.interrupt)
          await upload.send(builder)
          builder = deps.parts.begin(partBytesOf(upload.sentParts() + 1))
        }
        taken += await builder.write(step.value.subarray(taken))
      }
    }
    const hash = hasher.digest()
    if (upload === null) return { kind: 'part', hash, sizeBytes, part: await builder.finish() }
    await upload.send(builder)
    return { kind: 'object', hash, sizeBytes, key: await upload.complete(sizeBytes) }
  } catch (error) {
    await builder.abandon()
    await upload?.abandon()
    throw error
  }
}

interface Upload {
  sentParts(): number
  /** Takes the part over; waits while enough of them are under way. */
  send(builder: PartBuilder): Promise<void>
  /** Returns the name of the object. */
  complete(sizeBytes: number): Promise<string>
  abandon(): Promise<void>
}

function createUpload({ bucket, newKey }: ReceiveDeps, onFailure: (error: unknown) => void): Upload {
  const key = newKey()
  const ending = new AbortController()
  const begun = bucket.beginUpload(key)
  begun.catch(() => {})
  const inFlight = new Set<Promise<void>>()
  const done: UploadedPart[] = []
  let failure: { readonly error: unknown } | null = null
  let sentParts = 0

  async function sendPart(part: Part, number: number): Promise<void> {
    try {
      const uploadId = await begun
      done.push(await bucket.putPart(key, { uploadId, number }, part, ending.signal))
    } catch (error) {
      if (failure === null) onFailure(toStorageError(error))
      failure ??= { error }
    } finally {
      await part.free()
    }
  }

  return {
    sentParts: () => sentParts,
    async send(builder) {
      while (inFlight.size >= IN_FLIGHT) await Promise.race(inFlight)
      if (failure !== null) throw failure.error
      if (sentParts === MAX_PARTS)
        throw new ServiceError('payload_too_large', 'the content has too many parts to be stored')
      const part = await builder.finish()
      sentParts++
      const sending = sendPart(part, sentParts).then(() => void inFlight.delete(sending))
      inFlight.add(sending)
    },
    async complete(sizeBytes) {
      await Promise.all(inFlight)
      if (failure !== null) throw failure.error
      const parts = done.toSorted((a, b) => a.number - b.number)
      await bucket.completeUpload(key, await begun, { parts, sizeBytes })
      return key
    },
    async abandon() {
      ending.abort(null)
      await Promise.all(inFlight)
      // Best effort: storage that is away now is swept later.
      await begun.then((uploadId) => bucket.abandonUpload(key, uploadId)).catch(() => {})
    },
  }
}

function tooLarge(maxBytes: number): ServiceError {
  return new ServiceError('payload_too_large', `the content is larger than the limit of ${maxBytes} bytes`, {
    details: { max_bytes: maxBytes },
  })
}
