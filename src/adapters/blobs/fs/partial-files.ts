/**
 * Bytes that come in pieces, each upload in a file of its own below `uploads/`. They are written one after the other, so that the size
 * of the file is what has arrived, also after a crash; and what `append` has taken is synced when it ends. The whole is hashed on its
 * way where one process took all of it, and read once otherwise; then its file gets the name of a blob.
 */
import { randomUUID } from 'node:crypto'
import { dirname, join } from 'node:path'
import type { Blake3 } from '../../../../lib/files/blake3.ts'
import { createInterruptible } from '../../../../lib/files/byte-streams.ts'
import { isUuid } from '../../../../lib/ids.ts'
import type { PartialBlobs, PendingBlob } from '../../../domain/assets/blob-store.ts'
import { tooMuch } from '../../../domain/assets/resumable/upload-store.ts'
import { createRunningHashes } from '../running-hashes.ts'
import { type BufferPool, type FileOps, hasCode, toStorageError } from './file-ops.ts'
import { type Received, type Staged, WriteBehind, type WriteBudget } from './receive.ts'

interface PartialFilesDeps {
  readonly files: FileOps
  readonly blake3: Blake3
  readonly largeBuffers: BufferPool
  readonly budget: WriteBudget
  onTransferred(bytes: number): void
  /** Goes on with a file that was received. */
  toPending(received: Received, staged: Staged): PendingBlob
}

const FOLDER = 'uploads'

export function createPartialFiles(directory: string, deps: PartialFilesDeps): PartialBlobs {
  const { files, blake3, largeBuffers: buffers, budget, onTransferred, toPending } = deps
  const folder = join(directory, FOLDER)
  const hashes = createRunningHashes(blake3)

  function pathOf(place: string): string {
    // A name becomes a path here and nowhere else, so whatever is not one of ours stops here.
    if (!isUuid(place)) throw new TypeError('not a name of an unfinished upload')
    return join(folder, place)
  }

  return {
    begin: async () => randomUUID(),
    sizeOf: async (place) => (await files.sizeOf(pathOf(place))) ?? 0,
    async append(place, source, { offsetBytes, lengthBytes, signal }) {
      const fd = await openForAppending(files, pathOf(place), offsetBytes).catch((error: unknown) => {
        throw toStorageError(error)
      })
      const steps = createInterruptible(source)
      const onAbort = () => steps.interrupt(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
      const hasher = hashes.take(place, offsetBytes)
      const shared = { files, fd, hasher, buffers, budget, onTransferred, onFailure: steps.interrupt }
      const writer = new WriteBehind({ ...shared, from: offsetBytes, isOrdered: true })
      let takenBytes = offsetBytes
      let failure: unknown = null
      try {
        for (let step = await steps.next(); !step.done; step = await steps.next()) {
          if (takenBytes + step.value.length > lengthBytes) throw tooMuch(lengthBytes)
          takenBytes += step.value.length
          await writer.push(step.value)
        }
      } catch (error) {
        failure = error
        steps.stop()
      }
      try {
        // Also what came before the line broke: it is kept.
        await writer.end().catch((error: unknown) => {
          failure = error
        })
        await files.datasync(fd)
        const { sizeBytes } = await files.identify(fd)
        if (sizeBytes === takenBytes) hashes.putBack(place, hasher, sizeBytes)
        return { sizeBytes, failure: failure === null ? null : toStorageError(failure) }
      } finally {
        signal.removeEventListener('abort', onAbort)
        await files.close(fd)
      }
    },
    async complete(place, { sizeBytes, signal }) {
      const path = pathOf(place)
      const fd = await files.openForUpdate(path)
      let isOpen = true
      const close = async () => {
        if (isOpen) await files.close(fd)
        isOpen = false
      }
      try {
        const hash = hashes.finish(place, sizeBytes) ?? (await readHash(deps, fd, signal))
        const staged: Staged = { path, sync: () => files.datasync(fd), release: close }
        return toPending({ kind: 'file', hash, sizeBytes, path, fd }, staged)
      } catch (error) {
        await close()
        throw toStorageError(error)
      }
    },
    async remove(place) {
      await files.unlink(pathOf(place)).catch((error: unknown) => {
        if (!hasCode(error, 'ENOENT')) throw error
      })
    },
  }
}

async function openForAppending(files: FileOps, path: string, offsetBytes: number): Promise<number> {
  const folder = dirname(path)
  if (offsetBytes === 0) await files.makeDirectory(folder)
  const fd = await files.openForUpdate(path)
  if (offsetBytes === 0) await files.syncDirectory(folder)
  const { sizeBytes } = await files.identify(fd)
  if (sizeBytes === offsetBytes) return fd
  await files.close(fd)
  throw new Error('bytes are appended where the file does not end')
}

async function readHash(
  { files, blake3, largeBuffers: buffers }: PartialFilesDeps,
  fd: number,
  signal: AbortSignal | undefined,
): Promise<string> {
  const hasher = blake3.createHasher()
  const buffer = buffers.take()
  try {
    for (let at = 0; ; ) {
      signal?.throwIfAborted()
      const count = await files.read(fd, buffer, at)
      if (count === 0) return hasher.digest()
      hasher.update(buffer.subarray(0, count))
      at += count
    }
  } finally {
    buffers.giveBack(buffer)
  }
}
