/**
 * Bytes that an engine made, kept until the service has them: small ones in memory, others in a file that is removed at the end.
 * They are hashed on the way, so that nothing is sent that is there already, and a broken connection does not ask the engine again.
 */
import { randomUUID } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Blake3 } from '../../../lib/files/blake3.ts'
import { ServiceError } from '../../domain/errors.ts'

export interface Spooled extends AsyncDisposable {
  readonly hash: string
  readonly sizeBytes: number
  read(start: number, length: number): Promise<Uint8Array>
}

interface SpoolOptions {
  readonly directory: string
  readonly blake3: Blake3
  readonly maxBytes: number
  readonly memoryBytes: number
  readonly signal?: AbortSignal
}

const OWNER_ONLY = 0o600

export async function spool(source: AsyncIterable<Uint8Array>, options: SpoolOptions): Promise<Spooled> {
  const { blake3, maxBytes, memoryBytes, signal } = options
  const hasher = blake3.createHasher()
  const path = join(options.directory, `output-${randomUUID()}`)
  let chunks: Uint8Array[] = []
  let file: FileHandle | null = null
  let sizeBytes = 0
  const remove = async () => {
    await file?.close()
    if (file !== null) await rm(path, { force: true })
  }
  try {
    for await (const chunk of source) {
      signal?.throwIfAborted()
      sizeBytes += chunk.byteLength
      if (sizeBytes > maxBytes) throw new ServiceError('payload_too_large', `more than ${maxBytes} bytes`)
      hasher.update(chunk)
      if (file === null && sizeBytes > memoryBytes) {
        file = await open(path, 'wx+', OWNER_ONLY)
        for (const held of chunks) await file.write(held)
        chunks = []
      }
      // A copy: the source may use its buffer again.
      if (file === null) chunks.push(Uint8Array.from(chunk))
      else await file.write(chunk)
    }
  } catch (error) {
    await remove()
    throw toRoomError(error)
  }
  const whole = file === null ? Buffer.concat(chunks) : null
  return {
    hash: hasher.digest(),
    sizeBytes,
    async read(start, length) {
      if (whole !== null) return whole.subarray(start, start + length)
      const bytes = Buffer.alloc(Math.min(length, sizeBytes - start))
      let filled = 0
      while (filled < bytes.length) {
        const { bytesRead } = await file!.read(bytes, filled, bytes.length - filled, start + filled)
        if (bytesRead === 0) throw new Error('a spooled file is shorter than it was')
        filled += bytesRead
      }
      return bytes
    },
    [Symbol.asyncDispose]: remove,
  }
}

/** The disk of this machine has no room: that is not the job's fault. */
function toRoomError(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error
  return new ServiceError('storage_full', 'the disk of this worker is full', { cause: error })
}
