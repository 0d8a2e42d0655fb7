/**
 * Bytes on their way into the bucket, gathered into parts. A part lies in memory while the budget of the process allows it and in
 * a temporary file otherwise: however many uploads there are and however slowly they come, memory is bounded and none waits for
 * another. Parts can be sent again until they are freed.
 */
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { FileOps } from '../fs/file-ops.ts'
import type { Sendable } from './bucket.ts'

export interface Part extends Sendable {
  free(): Promise<void>
}

export interface PartBuilder {
  sizeBytes(): number
  isFull(): boolean
  /** Takes as much as there is room for and returns how much that was. The chunk may be reused once this has resolved. */
  write(chunk: Uint8Array): Promise<number>
  finish(): Promise<Part>
  /** Frees what is held, when there will be no part. */
  abandon(): Promise<void>
}

export interface Parts {
  begin(maxBytes: number): PartBuilder
  /** The memory that all parts hold, and that is kept at hand for the next ones. */
  readonly heldBytes: number
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
  /** For all parts that lie in memory, and for buffers that wait for the next. */
  readonly memoryBytes: number
  readonly files: FileOps
}

// As many as one upload uses at a time: two under way, one being filled, and the beginning of the next.
const MAX_IDLE = 4
// Most pieces are small: a part begins with little and is moved once when it outgrows that.
const FIRST_BYTES = 64 * 1024

export function createParts({ directory, memoryBytes, files }: PartsOptions): Parts {
  let heldBytes = 0
  // The one that was given back last comes last.
  const idle: Buffer[] = []

  function take(sizeBytes: number): Buffer | null {
    const at = idle.findLastIndex(({ length }) => length === sizeBytes)
    if (at >= 0) return idle.splice(at, 1)[0] ?? null
    while (heldBytes + sizeBytes > memoryBytes) {
      const dropped = idle.shift()
      if (dropped === undefined) return null
      heldBytes -= dropped.length
    }
    heldBytes += sizeBytes
    return Buffer.allocUnsafeSlow(sizeBytes)
  }

  function giveBack(buffer: Buffer): void {
    idle.push(buffer)
    if (idle.length <= MAX_IDLE) return
    heldBytes -= idle.shift()?.length ?? 0
  }

  return {
    get heldBytes() {
      return heldBytes
    },
    begin: (maxBytes) => beginPart(maxBytes, { directory, files, take, giveBack }),
  }
}

interface PartDeps extends Pick<PartsOptions, 'directory' | 'files'> {
  take(sizeBytes: number): Buffer | null
  giveBack(buffer: Buffer): void
}

function beginPart(maxBytes: number, { directory, files, take, giveBack }: PartDeps): ReturnType<Parts['begin']> {
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
    try {
      if (larger !== null) return
      file = openSpool(join(directory, randomUUID()), files)
      const spool = await file
      if (outgrown !== null) await spool.append(outgrown.subarray(0, sizeBytes))
    } finally {
      if (outgrown !== null) giveBack(outgrown)
    }
  }

  async function free(): Promise<void> {
    const [held, spool] = [buffer, file]
    buffer = null
    file = null
    if (held !== null) giveBack(held)
    await (await spool?.catch(() => null))?.remove()
  }

  return {
    sizeBytes: () => sizeBytes,
    isFull: () => sizeBytes === maxBytes,
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
}

interface SpooledPart {
  append(bytes: Uint8Array): Promise<void>
  close(): Promise<void>
  read(): NodeJS.ReadableStream & ReturnType<typeof createReadStream>
  remove(): Promise<void>
}

async function openSpool(path: string, files: FileOps): Promise<SpooledPart> {
  const fd = await files.create(path)
  let [isOpen, sizeBytes] = [true, 0]
  async function close(): Promise<void> {
    if (!isOpen) return
    isOpen = false
    await files.close(fd)
  }
  return {
    async append(bytes) {
      await files.write(fd, bytes, { length: bytes.length, position: sizeBytes })
      sizeBytes += bytes.length
    },
    close,
    read: () => createReadStream(path, { highWaterMark: 256 * 1024 }),
    async remove() {
      await close()
      await files.unlink(path).catch(() => {})
    },
  }
}

/** How large the parts of an object are: they grow, since there may be no more than ten thousand of them. The last ends at 208 GiB. */
const MIB = 1024 * 1024

/** What is at most this large is sent at once, when it is known to be new. */
export const FIRST_PART_BYTES = 8 * MIB
export const MAX_PARTS = 10_000

export function partBytesOf(number: number): number {
  if (number <= 2_000) return FIRST_PART_BYTES
  return number <= 6_000 ? 2 * FIRST_PART_BYTES : 4 * FIRST_PART_BYTES
}
