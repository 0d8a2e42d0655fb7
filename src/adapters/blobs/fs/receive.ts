/**
 * Takes bytes in from a stream and hashes them. A small piece stays in memory, so that a small output costs no file until it
 * is known to be new; anything larger goes to a temporary file as it arrives. Whatever goes wrong, nothing is left behind.
 */

import type { Blake3 } from '../../../../lib/files/blake3.ts'
import type { PutOptions } from '../../../domain/assets/blob-store.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { createInterruptible, type Interruptible } from '../interruptible.ts'
import type { BufferPool } from './buffer-pool.ts'
import { type FileOps, toStorageError } from './file-ops.ts'
import { createWriteBehind, type WriteBudget } from './write-behind.ts'

export type Received = { readonly hash: string; readonly sizeBytes: number } & (
  | { readonly kind: 'memory'; readonly bytes: Buffer; readonly buffer: Buffer }
  | { readonly kind: 'file'; readonly path: string; readonly fd: number }
)

interface ReceiveDeps {
  readonly files: FileOps
  readonly blake3: Blake3
  readonly smallBuffers: BufferPool
  readonly largeBuffers: BufferPool
  readonly budget: WriteBudget
  /** Called for every chunk of a piece that is too large to stay in memory. */
  onTransferred(bytes: number): void
  newTemporaryPath(): string
}

export async function receive(
  source: AsyncIterable<Uint8Array>,
  options: PutOptions,
  deps: ReceiveDeps,
): Promise<Received> {
  options.signal?.throwIfAborted()
  const steps = createInterruptible(source)
  const onAbort = () => steps.interrupt(options.signal?.reason)
  options.signal?.addEventListener('abort', onAbort, { once: true })
  try {
    return await receiveSteps(bounded(steps, options.maxBytes), deps)
  } catch (error) {
    steps.stop()
    throw toStorageError(error)
  } finally {
    options.signal?.removeEventListener('abort', onAbort)
  }
}

/** Refuses with the first chunk that goes over the limit, so that no more is read. */
function bounded(steps: Interruptible<Uint8Array>, maxBytes: number): Interruptible<Uint8Array> {
  let seenBytes = 0
  return {
    ...steps,
    async next() {
      const step = await steps.next()
      if (step.done) return step
      seenBytes += step.value.length
      if (seenBytes > maxBytes) {
        throw new ServiceError('payload_too_large', `the content is larger than the limit of ${maxBytes} bytes`, {
          details: { max_bytes: maxBytes },
        })
      }
      return step
    },
  }
}

async function receiveSteps(steps: Interruptible<Uint8Array>, deps: ReceiveDeps): Promise<Received> {
  const buffer = deps.smallBuffers.take()
  let sizeBytes = 0
  try {
    for (;;) {
      const step = await steps.next()
      if (step.done) break
      if (sizeBytes + step.value.length > buffer.length) {
        const received = await receiveIntoFile(steps, [buffer.subarray(0, sizeBytes), step.value], deps)
        deps.smallBuffers.giveBack(buffer)
        return received
      }
      buffer.set(step.value, sizeBytes)
      sizeBytes += step.value.length
    }
  } catch (error) {
    deps.smallBuffers.giveBack(buffer)
    throw error
  }
  const bytes = buffer.subarray(0, sizeBytes)
  return { kind: 'memory', hash: deps.blake3.hash(bytes), sizeBytes, bytes, buffer }
}

async function receiveIntoFile(
  steps: Interruptible<Uint8Array>,
  head: readonly Uint8Array[],
  { files, blake3, largeBuffers: buffers, budget, onTransferred, newTemporaryPath }: ReceiveDeps,
): Promise<Received> {
  const path = newTemporaryPath()
  const fd = await files.create(path)
  const hasher = blake3.createHasher()
  const onFailure = steps.interrupt
  const writer = createWriteBehind({ files, fd, hasher, buffers, budget, onTransferred, onFailure })
  let sizeBytes = 0
  const take = (chunk: Uint8Array) => {
    sizeBytes += chunk.length
    return writer.push(chunk)
  }
  try {
    for (const chunk of head) await take(chunk)
    for (let step = await steps.next(); !step.done; step = await steps.next()) await take(step.value)
    await writer.end()
    return { kind: 'file', hash: hasher.digest(), sizeBytes, path, fd }
  } catch (error) {
    await writer.abandon()
    await files.close(fd)
    await files.unlink(path)
    throw error
  }
}
