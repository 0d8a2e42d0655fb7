/**
 * The one array type of the engine: float32 over shared memory, row-major, so that it moves between threads without a
 * copy. IMAGE is [batch, height, width, channels], MASK is [batch, height, width]. A tensor is never changed once it has
 * left the node that made it: the cache and other nodes read the same memory, which the ledger below counts.
 */

import { settlesWithin } from '../../lib/waiting/sleep.ts'
import { NodeError } from '../node/node-error.ts'
import type { RowJob } from './rows/row-jobs.ts'

export type SharedFloats = Float32Array<SharedArrayBuffer>

export class Tensor {
  readonly shape: readonly number[]
  readonly data: SharedFloats

  constructor(shape: readonly number[], data: SharedFloats) {
    this.shape = shape
    this.data = data
  }
}

export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, side) => product * side, 1)
}

/** Allocates memory for a tensor. Contents are undefined (memory is reused): the caller writes every element. */
export type Allocate = (shape: readonly number[]) => Tensor

/** What a long computation on pixels needs of its surroundings. */
export interface PixelWork {
  readonly allocate: Allocate
  /** Throws when the run was cancelled. */
  checkpoint(): void
  readonly shareRows?: ShareRows
}

/** Does the work together with other threads, or answers false when it is better done alone. Absent where there are no others. */
export type ShareRows = (job: RowJob, checkpoint: () => void) => boolean

/** What reading a file needs in addition: a decoder's memory is counted before it is taken. */
export interface DecodeWork extends PixelWork {
  reserve(bytes: number, besideBytes?: number): Promise<() => void>
}

/** A picture or mask seen as planes of rows: what the pixel loops need to know. */
export interface ImageView {
  readonly batch: number
  readonly height: number
  readonly width: number
  readonly channels: number
  readonly data: SharedFloats
}

/** Images as they are; masks (rank 3) as images of one channel. */
export function viewOf(tensor: Tensor): ImageView {
  const [batch, height, width, channels = 1] = tensor.shape
  return { batch, height, width, channels, data: tensor.data }
}

// Every byte of tensor memory is handed out and taken back here, on the engine thread. Shared memory is invisible to the
// garbage collector's bookkeeping (it never collects because of it), so buffers are counted by reference, kept in a small
// pool and used again; only what falls out of the pool is left to a collection that we ask for ourselves.
// Beyond the limit, unneeded cache entries go first; then the node that asked fails with a clear error.

/** What memory is counted for: one run. */
export interface MemoryOwner {
  liveBytes: number
}

interface ReserveOptions {
  /** Must be free as well, but is not counted: it will be asked for soon. */
  readonly besideBytes?: number
  readonly owner?: MemoryOwner
}

interface MemoryLedgerDeps {
  readonly limitBytes: number
  /** What one owner may have at a time; all of it unless said otherwise. */
  readonly ownerLimitBytes?: number
  /** Frees something that is only kept for speed; false when there is nothing left. */
  evict(): boolean
  /** Called once enough unpooled memory waits for the garbage collector; must reach every thread that may hold it. */
  collectGarbage(): void
}

/** Every buffer begins with its number, so that it is known again; values follow after this many bytes. */
export const HEADER_BYTES = 16
const HEADER_MARK = 0x7e_45_0a_11

// A decoder is done within seconds; a caller on another thread stops waiting soon after.
const MAX_RESERVE_WAIT_MS = 20_000

const SMALLEST_BYTES = 4096
const POOL_SHARE = 4
const MAX_POOL_BYTES = 536_870_912
// A collection costs a few milliseconds per thread: worth it for a quarter of a gigabyte, not for less.
const COLLECT_AFTER_BYTES = 268_435_456

/** Sizes in steps of an eighth of a power of two: at most 12.5 % is wasted, and buffers find a second use. */
export function sizeClass(bytes: number): number {
  if (bytes <= SMALLEST_BYTES) return SMALLEST_BYTES
  const step = 2 ** (Math.floor(Math.log2(bytes)) - 3)
  return Math.ceil(bytes / step) * step
}

// Numbers may be used again once they run out: that takes two billion buffers.
const LAST_NUMBER = 0x7fff_ffff

/** 0 for memory without our header. */
function numberOf(buffer: SharedArrayBuffer): number {
  if (buffer.byteLength < HEADER_BYTES) return 0
  const [mark, number] = new Int32Array(buffer, 0, 2)
  return mark === HEADER_MARK ? number : 0
}

function inMebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 1_048_576)} MiB`
}

function limitReached(limit: number, wanted: number, live: number): NodeError {
  const message =
    `memory limit of ${inMebibytes(limit)} reached: this node asked for ${inMebibytes(wanted)} while ` +
    `${inMebibytes(live)} were in use. Use smaller images or batches, or raise the engine's memory limit`
  return new NodeError('MemoryError', message)
}

function ownLimitReached(limit: number, wanted: number, live: number): NodeError {
  const message =
    `a job may use ${inMebibytes(limit)} of memory: this node asked for ${inMebibytes(wanted)} while the job had ` +
    `${inMebibytes(live)}. Use smaller images or batches`
  return new NodeError('MemoryError', message)
}

/** Buffers without an owner, oldest first. */
function createPool(maxBytes: number, onDrop: (buffer: SharedArrayBuffer) => void) {
  const bySize = new Map<number, SharedArrayBuffer[]>()
  const oldestFirst = new Set<SharedArrayBuffer>()
  let pooledBytes = 0

  function forget(buffer: SharedArrayBuffer): void {
    oldestFirst.delete(buffer)
    pooledBytes -= buffer.byteLength
  }

  function shrinkTo(bytes: number): void {
    for (const buffer of oldestFirst) {
      if (pooledBytes <= bytes) return
      const same = bySize.get(buffer.byteLength) ?? []
      same.splice(same.indexOf(buffer), 1)
      forget(buffer)
      onDrop(buffer)
    }
  }

  return {
    shrinkTo,
    take(bytes: number): SharedArrayBuffer | null {
      const buffer = bySize.get(bytes)?.pop()
      if (buffer === undefined) return null
      forget(buffer)
      return buffer
    },
    put(buffer: SharedArrayBuffer): void {
      const same = bySize.get(buffer.byteLength)
      if (same === undefined) bySize.set(buffer.byteLength, [buffer])
      else same.push(buffer)
      oldestFirst.add(buffer)
      pooledBytes += buffer.byteLength
      shrinkTo(maxBytes)
    },
  }
}

function unknownMemory(): NodeError {
  return new NodeError('RuntimeError', 'a node returned a tensor that it did not get from `allocate`')
}

export class MemoryLedger {
  readonly #deps: MemoryLedgerDeps
  readonly #byNumber = new Map<number, SharedArrayBuffer>()
  #nextNumber = 1
  readonly #references = new Map<SharedArrayBuffer, number>()
  readonly #owners = new Map<SharedArrayBuffer, MemoryOwner>()
  #liveBytes = 0
  #droppedBytes = 0
  #reservations = 0
  #reservationEnded = Promise.withResolvers<void>()
  readonly #ownerLimitBytes: number
  readonly #pool: ReturnType<typeof createPool>

  constructor(deps: MemoryLedgerDeps) {
    this.#deps = deps
    this.#ownerLimitBytes = deps.ownerLimitBytes ?? deps.limitBytes
    this.#pool = createPool(Math.min(MAX_POOL_BYTES, deps.limitBytes / POOL_SHARE), (buffer) => {
      this.#byNumber.delete(numberOf(buffer))
      this.#countDropped(buffer.byteLength)
    })
  }

  /**
   * Counts memory that is taken elsewhere: by a decoder, by a file that is kept. Gives back what ends it. Throws NodeError
   * beyond the limits.
   */
  reserve(bytes: number, { besideBytes = 0, owner }: ReserveOptions = {}): () => void {
    this.#makeRoom(bytes + besideBytes, bytes + besideBytes, owner)
    // What lies in the pool is memory too, and there must be room for what is about to be taken.
    this.#pool.shrinkTo(Math.max(0, this.#deps.limitBytes - this.#liveBytes - bytes))
    this.#book(bytes, owner)
    this.#reservations += 1
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#reservations -= 1
      this.#book(-bytes, owner)
      this.#reservationEnded.resolve()
      this.#reservationEnded = Promise.withResolvers<void>()
    }
  }

  /**
   * A buffer with room for `bytes` after its header, with one reference held by the caller. It counts for `owner` until the last
   * reference is given back. Throws NodeError beyond the limits.
   */
  allocate(bytes: number, owner?: MemoryOwner): SharedArrayBuffer {
    const wanted = sizeClass(bytes + HEADER_BYTES)
    this.#makeRoom(wanted, bytes, owner)
    const pooled = this.#pool.take(wanted)
    if (pooled === null) this.#pool.shrinkTo(Math.max(0, this.#deps.limitBytes - this.#liveBytes - wanted))
    const buffer = pooled ?? this.#create(wanted)
    this.#references.set(buffer, 1)
    if (owner !== undefined) this.#owners.set(buffer, owner)
    this.#book(wanted, owner)
    return buffer
  }

  /** The same, but while others hold reservations it waits for them to end, up to a limit. */
  async reserveOrWait(bytes: number, options?: ReserveOptions): Promise<() => void> {
    const deadline = performance.now() + MAX_RESERVE_WAIT_MS
    const mayEverFit = bytes + (options?.besideBytes ?? 0) <= Math.min(this.#deps.limitBytes, this.#ownerLimitBytes)
    for (;;) {
      try {
        return this.reserve(bytes, options)
      } catch (error) {
        const leftMs = deadline - performance.now()
        if (!mayEverFit || this.#reservations === 0 || leftMs <= 0) throw error
        await settlesWithin(this.#reservationEnded.promise, leftMs)
      }
    }
  }

  /**
   * The buffer as it is known here. A buffer that comes back from another thread is the same memory behind a new object.
   * Throws NodeError for memory that was not handed out here.
   */
  recognise(buffer: SharedArrayBuffer): SharedArrayBuffer {
    const known = this.#byNumber.get(numberOf(buffer))
    if (known === undefined || known.byteLength !== buffer.byteLength) throw unknownMemory()
    return known
  }

  retain(buffer: SharedArrayBuffer): void {
    const count = this.#references.get(buffer)
    if (count === undefined) throw unknownMemory()
    this.#references.set(buffer, count + 1)
  }

  /** Gives one reference back; the last one frees the buffer for others. */
  release(buffer: SharedArrayBuffer): void {
    const count = this.#references.get(buffer)
    if (count === undefined) return
    if (count > 1) {
      this.#references.set(buffer, count - 1)
      return
    }
    this.#references.delete(buffer)
    this.#book(-buffer.byteLength, this.#owners.get(buffer))
    this.#owners.delete(buffer)
    this.#pool.put(buffer)
  }

  liveBytes(): number {
    return this.#liveBytes
  }

  #countDropped(bytes: number): void {
    this.#droppedBytes += bytes
    if (this.#droppedBytes < COLLECT_AFTER_BYTES) return
    this.#droppedBytes = 0
    this.#deps.collectGarbage()
  }

  #create(bytes: number): SharedArrayBuffer {
    const buffer = new SharedArrayBuffer(bytes)
    const header = new Int32Array(buffer, 0, 2)
    header[0] = HEADER_MARK
    header[1] = this.#nextNumber
    this.#byNumber.set(this.#nextNumber, buffer)
    this.#nextNumber = this.#nextNumber === LAST_NUMBER ? 1 : this.#nextNumber + 1
    return buffer
  }

  /** Throws unless so much is free, or can be made free. */
  #makeRoom(wanted: number, asked: number, owner: MemoryOwner | undefined): void {
    const { limitBytes, evict } = this.#deps
    const hasShare = owner !== undefined && this.#ownerLimitBytes < limitBytes
    if (hasShare && owner.liveBytes + wanted > this.#ownerLimitBytes) {
      throw ownLimitReached(this.#ownerLimitBytes, asked, owner.liveBytes)
    }
    while (this.#liveBytes + wanted > limitBytes) {
      if (wanted > limitBytes || !evict()) throw limitReached(limitBytes, asked, this.#liveBytes)
    }
  }

  #book(bytes: number, owner: MemoryOwner | undefined): void {
    this.#liveBytes += bytes
    if (owner !== undefined) owner.liveBytes += bytes
  }
}
