/**
 * Bytes on their way into the bucket, gathered into parts. A part lies in memory while the budget of the process allows it and in
 * a temporary file otherwise: however many uploads there are and however slowly they come, memory is bounded and none waits for
 * another. Parts can be sent again until they are freed.
 */
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Sendable } from './bucket.ts'

export interface Part extends Sendable {
  free(): Promise<void>
}

export interface PartBuilder {
  readonly sizeBytes: number
  readonly isFull: boolean
  /** Takes as much as there is room for and returns how much that was. The chunk may be reused once this has resolved. */
  write(chunk: Uint8Array): Promise<number>
  finish(): Promise<Part>
  /** Frees what is held, when there will be no part. */
  abandon(): Promise<void>
}

export interface Parts {
  begin(maxBytes: number): PartBuilder
}

/** Short bytes that are at hand. */
export function toSendable(content: string | Uint8Array): Sendable {
  const bytes = Buffer.from(content)
  return { sizeBytes: bytes.length, checksum: toChecksum(crc32(bytes)), body: () => bytes }
}

function toChecksum(sum: number): string {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(sum)
  return bytes.toString('base64')
}

interface PartsOptions {
  /** For parts that do not fit into memory. It must exist. */
  readonly directory: string
  /** For all parts that lie in memory. */
  readonly memoryBytes: number
}

// Most pieces are small: a part begins with little and is moved once when it outgrows that.
const FIRST_BYTES = 64 * 1024
const MAX_IDLE = 3

export function createParts({ directory, memoryBytes }: PartsOptions): Parts {
  let takenBytes = 0
  const idle = new Map<number, Buffer[]>()

  function take(sizeBytes: number): Buffer | null {
    if (takenBytes + sizeBytes > memoryBytes) return null
    takenBytes += sizeBytes
    return idle.get(sizeBytes)?.pop() ?? Buffer.allocUnsafeSlow(sizeBytes)
  }

  function giveBack(buffer: Buffer): void {
    takenBytes -= buffer.length
    const same = idle.get(buffer.length) ?? []
    idle.set(buffer.length, same)
    if (same.length < MAX_IDLE) same.push(buffer)
  }

  return {
    begin(maxBytes) {
      let buffer = take(Math.min(FIRST_BYTES, maxBytes))
      let file: Promise<SpooledPart> | null = null
      let sizeBytes = 0
      let sum = 0

      /** Room for more: the same buffer, a larger one, or a file that begins with what is there. */
      async function ensureRoom(): Promise<void> {
        if (file !== null || (buffer !== null && sizeBytes < buffer.length)) return
        const larger = buffer === null ? null : take(maxBytes)
        if (buffer !== null && larger !== null) larger.set(buffer.subarray(0, sizeBytes))
        const outgrown = buffer
        buffer = larger
        if (larger === null) {
          file = openSpool(join(directory, randomUUID()))
          const spool = await file
          if (outgrown !== null) await spool.append(outgrown.subarray(0, sizeBytes))
        }
        if (outgrown !== null) giveBack(outgrown)
      }

      async function free(): Promise<void> {
        const [held, spool] = [buffer, file]
        buffer = null
        file = null
        if (held !== null) giveBack(held)
        await (await spool?.catch(() => null))?.remove()
      }

      return {
        get sizeBytes() {
          return sizeBytes
        },
        get isFull() {
          return sizeBytes === maxBytes
        },
        async write(chunk) {
          await ensureRoom()
          const room = (buffer !== null ? buffer.length : maxBytes) - sizeBytes
          const taken = chunk.length > room ? chunk.subarray(0, room) : chunk
          sum = crc32(taken, sum)
          if (buffer !== null) buffer.set(taken, sizeBytes)
          else await (await file)?.append(taken)
          sizeBytes += taken.length
          return taken.length
        },
        async finish() {
          const spool = await file
          await spool?.close()
          return {
            sizeBytes,
            checksum: toChecksum(sum),
            body: () => spool?.read() ?? (buffer ?? Buffer.alloc(0)).subarray(0, sizeBytes),
            free,
          }
        },
        abandon: free,
      }
    },
  }
}

interface SpooledPart {
  append(bytes: Uint8Array): Promise<void>
  close(): Promise<void>
  read(): NodeJS.ReadableStream & ReturnType<typeof createReadStream>
  remove(): Promise<void>
}

const OWNER_ONLY = 0o600

async function openSpool(path: string): Promise<SpooledPart> {
  const handle: FileHandle = await open(path, 'wx', OWNER_ONLY)
  let isOpen = true
  async function close(): Promise<void> {
    if (!isOpen) return
    isOpen = false
    await handle.close()
  }
  return {
    async append(bytes) {
      for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at)).bytesWritten
    },
    close,
    read: () => createReadStream(path, { highWaterMark: 256 * 1024 }),
    async remove() {
      await close()
      await unlink(path).catch(() => {})
    },
  }
}
