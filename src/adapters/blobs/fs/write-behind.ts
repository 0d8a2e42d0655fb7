/**
 * Writes a file behind a stream that is faster or slower than the disk: bytes are gathered into large buffers, hashed, and
 * written with a few writes in flight. While bytes still come, what is written is already being synced, so that the sync at
 * the end is short. Memory is bounded by the buffers; closing and removing the file is left to the caller.
 */

import type { Blake3Hasher } from '../../../../lib/files/blake3.ts'
import { createSemaphore, type Semaphore } from '../../../../lib/waiting/semaphore.ts'
import type { BufferPool } from './buffer-pool.ts'
import type { FileOps } from './file-ops.ts'

/** Writes of one file in flight. */
const MAX_IN_FLIGHT = 3

const SYNC_EVERY_BYTES = 32 * 1024 * 1024

/**
 * Writes in flight, shared by all files. Node has four threads for file work: one stays free for everybody else, whatever is
 * being uploaded. A file with nothing in flight may always write, so that every upload of a crowd goes on, without writing
 * ahead.
 */
export type WriteBudget = Pick<Semaphore, 'free' | 'takeAnyway'>

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

interface WriteBehind {
  /** The chunk may be reused once this has resolved. */
  push(chunk: Uint8Array): Promise<void>
  /** Everything is written when this resolves. */
  end(): Promise<void>
  /** Resolves when nothing is in flight any more. */
  abandon(): Promise<void>
}

export function createWriteBehind(deps: WriteBehindDeps): WriteBehind {
  const { files, fd, hasher, buffers, budget, from = 0, isOrdered = false, onTransferred, onFailure } = deps
  const inFlight = new Set<Promise<void>>()
  let filling = buffers.take()
  let filled = 0
  let position = from
  let syncedTo = from
  let latest: Promise<void> = Promise.resolve()
  let syncing = false
  let failure: { readonly error: unknown } | null = null

  function start(work: Promise<void>, done: () => void): Promise<void> {
    const giveBack = budget.takeAnyway()
    const tracked = work.then(
      () => {},
      (error: unknown) => {
        if (failure === null) onFailure(error)
        failure ??= { error }
      },
    )
    const ended = tracked.then(() => {
      giveBack()
      inFlight.delete(ended)
      done()
    })
    inFlight.add(ended)
    return ended
  }

  const hasRoom = () => inFlight.size === 0 || (inFlight.size < MAX_IN_FLIGHT && budget.free > 0)

  async function waitForRoom(): Promise<void> {
    while (!hasRoom()) await Promise.race(inFlight)
    if (failure) throw failure.error
  }

  async function flush(): Promise<void> {
    if (isOrdered) await latest
    await waitForRoom()
    const full = filling
    const length = filled
    hasher?.update(full.subarray(0, length))
    latest = start(files.write(fd, full, { length, position }), () => buffers.giveBack(full))
    position += length
    filling = buffers.take()
    filled = 0
    if (position - syncedTo < SYNC_EVERY_BYTES || syncing) return
    // A sync counts as one write in flight: further writes go on beside it.
    await waitForRoom()
    syncing = true
    syncedTo = position
    void start(files.datasync(fd), () => {
      syncing = false
    })
  }

  let settled: Promise<void> | null = null
  function settle(): Promise<void> {
    // Once only: a buffer given back twice would be handed to two uploads.
    settled ??= Promise.all(inFlight).then(() => buffers.giveBack(filling))
    return settled
  }

  return {
    async push(chunk) {
      onTransferred(chunk.length)
      for (let taken = 0; taken < chunk.length; ) {
        const part = chunk.subarray(taken, taken + filling.length - filled)
        filling.set(part, filled)
        filled += part.length
        taken += part.length
        if (filled === filling.length) await flush()
      }
    },
    async end() {
      if (filled > 0) await flush()
      await settle()
      if (failure) throw failure.error
    },
    abandon: settle,
  }
}
