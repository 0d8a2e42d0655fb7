/**
 * Takes bytes in from a stream and hashes them. A small piece stays in memory, so that a small output costs no file until it
 * is known to be new; anything larger goes to a temporary file as it arrives. Whatever goes wrong, nothing is left behind.
 */
import type { Blake3, Blake3Hasher } from '../../../../lib/files/blake3.ts'
import { createInterruptible, type Interruptible } from '../../../../lib/files/byte-streams.ts'
import { createSemaphore, type Semaphore } from '../../../../lib/waiting/semaphore.ts'
import type { PutOptions } from '../../../domain/assets/blob-store.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { type BufferPool, type FileOps, toStorageError } from './file-ops.ts'

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
  const writer = new WriteBehind({ files, fd, hasher, buffers, budget, onTransferred, onFailure })
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

export interface Staged {
  readonly path: string
  /** The bytes are durable under `path` once this resolves. Asked twice, it works once. */
  sync(): Promise<void>
  /** Frees whatever is still held. Asked twice, it works once. The file is removed unless it has got its final name. */
  release(options: { readonly renamed: boolean }): Promise<void>
}

interface StageDeps {
  readonly files: FileOps
  readonly smallBuffers: BufferPool
  newTemporaryPath(): string
}

/** Bytes on their way to their final name: in memory, or in a temporary file that is not yet durable. */
export function stage(received: Received, deps: StageDeps): Staged {
  const holder = received.kind === 'memory' ? holdMemory(received, deps) : holdFile(received, deps)
  let synced: Promise<void> | null = null
  let released: Promise<void> | null = null

  async function release(renamed: boolean): Promise<void> {
    // A sync under way still needs the file and the buffer.
    await synced?.catch(() => {})
    await holder.free()
    if (!renamed && holder.isOnDisk()) await deps.files.unlink(holder.path)
  }

  return {
    path: holder.path,
    sync() {
      synced ??= holder.sync()
      return synced
    },
    release({ renamed }) {
      released ??= release(renamed)
      return released
    },
  }
}

interface Holder {
  readonly path: string
  sync(): Promise<void>
  isOnDisk(): boolean
  free(): Promise<void>
}

function holdMemory(
  received: Received & { kind: 'memory' },
  { files, smallBuffers, newTemporaryPath }: StageDeps,
): Holder {
  const path = newTemporaryPath()
  let onDisk = false
  return {
    path,
    async sync() {
      const fd = await files.create(path)
      onDisk = true
      try {
        if (received.sizeBytes > 0) await files.write(fd, received.bytes, { length: received.sizeBytes, position: 0 })
        await files.datasync(fd)
      } finally {
        await files.close(fd)
      }
    },
    isOnDisk: () => onDisk,
    async free() {
      smallBuffers.giveBack(received.buffer)
    },
  }
}

function holdFile({ path, fd }: Received & { kind: 'file' }, { files }: StageDeps): Holder {
  return {
    path,
    sync: () => files.datasync(fd),
    isOnDisk: () => true,
    free: () => files.close(fd),
  }
}

/** Writes of one file in flight. */
const MAX_IN_FLIGHT = 3

const SYNC_EVERY_BYTES = 32 * 1024 * 1024

/**
 * Writes in flight, shared by all files. Node has four threads for file work: one stays free for everybody else, whatever is
 * being uploaded. A file with nothing in flight may always write, so that every upload of a crowd goes on, without writing
 * ahead.
 */
export type WriteBudget = Pick<Semaphore, 'free' | 'takeAnyway'>

/**
 * Writes a file behind a stream that is faster or slower than the disk: bytes are gathered into large buffers, hashed, and
 * written with a few writes in flight. While bytes still come, what is written is already being synced, so that the sync at
 * the end is short. Memory is bounded by the buffers; closing and removing the file is left to the caller.
 */
export const createWriteBudget = (): WriteBudget => createSemaphore(MAX_IN_FLIGHT)

interface WriteBehindDeps {
  readonly files: FileOps
  readonly fd: number
  /** null: the bytes are hashed another time. */
  readonly hasher: Blake3Hasher | null
  readonly buffers: BufferPool
  readonly budget: WriteBudget
  /** Where in the file; left out: at its beginning. */
  readonly from?: number
  /** One write after the other, so that whatever a crash leaves of the file has no gap. */
  readonly isOrdered?: boolean
  /** Called for every chunk that is accepted. */
  onTransferred(bytes: number): void
  /** Called once, as soon as a write has failed. */
  readonly onFailure: (error: unknown) => void
}

export class WriteBehind {
  readonly #deps: WriteBehindDeps
  readonly #inFlight = new Set<Promise<void>>()
  #filling: Buffer
  #filled = 0
  #position: number
  #syncedTo: number
  #latest: Promise<void> = Promise.resolve()
  #syncing = false
  #failure: { readonly error: unknown } | null = null
  #settled: Promise<void> | null = null

  constructor(deps: WriteBehindDeps) {
    this.#deps = deps
    this.#filling = deps.buffers.take()
    this.#position = deps.from ?? 0
    this.#syncedTo = this.#position
  }

  /** The chunk may be reused once this has resolved. */
  async push(chunk: Uint8Array): Promise<void> {
    this.#deps.onTransferred(chunk.length)
    for (let taken = 0; taken < chunk.length; ) {
      const part = chunk.subarray(taken, taken + this.#filling.length - this.#filled)
      this.#filling.set(part, this.#filled)
      this.#filled += part.length
      taken += part.length
      if (this.#filled === this.#filling.length) await this.#flush()
    }
  }

  /** Everything is written when this resolves. */
  async end(): Promise<void> {
    if (this.#filled > 0) await this.#flush()
    await this.#settle()
    if (this.#failure) throw this.#failure.error
  }

  /** Resolves when nothing is in flight any more. */
  abandon(): Promise<void> {
    return this.#settle()
  }

  #start(work: Promise<void>, done: () => void): Promise<void> {
    const giveBack = this.#deps.budget.takeAnyway()
    const tracked = work.then(
      () => {},
      (error: unknown) => {
        if (this.#failure === null) this.#deps.onFailure(error)
        this.#failure ??= { error }
      },
    )
    const ended = tracked.then(() => {
      giveBack()
      this.#inFlight.delete(ended)
      done()
    })
    this.#inFlight.add(ended)
    return ended
  }

  #hasRoom(): boolean {
    return this.#inFlight.size === 0 || (this.#inFlight.size < MAX_IN_FLIGHT && this.#deps.budget.free > 0)
  }

  async #waitForRoom(): Promise<void> {
    while (!this.#hasRoom()) await Promise.race(this.#inFlight)
    if (this.#failure) throw this.#failure.error
  }

  async #flush(): Promise<void> {
    const { isOrdered, hasher, files, fd, buffers } = this.#deps
    if (isOrdered === true) await this.#latest
    await this.#waitForRoom()
    const full = this.#filling
    const length = this.#filled
    hasher?.update(full.subarray(0, length))
    this.#latest = this.#start(files.write(fd, full, { length, position: this.#position }), () =>
      buffers.giveBack(full),
    )
    this.#position += length
    this.#filling = buffers.take()
    this.#filled = 0
    if (this.#position - this.#syncedTo < SYNC_EVERY_BYTES || this.#syncing) return
    // A sync counts as one write in flight: further writes go on beside it.
    await this.#waitForRoom()
    this.#syncing = true
    this.#syncedTo = this.#position
    void this.#start(files.datasync(fd), () => {
      this.#syncing = false
    })
  }

  #settle(): Promise<void> {
    // Once only: a buffer given back twice would be handed to two uploads.
    this.#settled ??= Promise.all(this.#inFlight).then(() => this.#deps.buffers.giveBack(this.#filling))
    return this.#settled
  }
}
