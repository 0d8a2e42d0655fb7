/**
 * The few file operations that storing bytes takes, as one record: tests put a failing disk in its place. The callback
 * functions of node:fs are used because a FileHandle costs several times more per small file.
 */
import fs from 'node:fs'
import { promisify } from 'node:util'
import { ServiceError } from '../../../domain/errors.ts'

export interface FileOps {
  /** Makes a file that must not exist yet, readable by its owner only, and opens it for writing. */
  create(path: string): Promise<number>
  /** Opens a file for reading and writing, and makes it, readable by its owner only, unless it is there. */
  openForUpdate(path: string): Promise<number>
  /** Fills the buffer from a place of the file on; returns how many bytes there were. */
  read(fd: number, into: Buffer, position: number): Promise<number>
  /** Writes all of `length` bytes. */
  write(fd: number, bytes: Uint8Array, at: { readonly length: number; readonly position: number }): Promise<void>
  datasync(fd: number): Promise<void>
  close(fd: number): Promise<void>
  rename(from: string, to: string): Promise<void>
  unlink(path: string): Promise<void>
  /** null when there is no such file. */
  sizeOf(path: string): Promise<number | null>
  openForReading(path: string): Promise<number>
  /** `mark` changes whenever the file does. */
  identify(fd: number): Promise<{ readonly sizeBytes: number; readonly mark: string }>
  readWhole(path: string): Promise<Buffer>
  /** Makes the directory and its parents and returns the topmost one it had to make. */
  makeDirectory(path: string): Promise<string | null>
  /** Makes the names inside a directory durable. */
  syncDirectory(path: string): Promise<void>
}

const open = promisify(fs.open)
const read = promisify(fs.read)
const fsync = promisify(fs.fsync)
const stat = promisify(fs.stat)
const fstat = promisify(fs.fstat)
const mkdir = promisify(fs.mkdir)

export const diskFileOps: FileOps = {
  create: (path) => open(path, 'wx', 0o600),
  openForUpdate: (path) => open(path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600),
  async read(fd, into, position) {
    return (await read(fd, into, 0, into.length, position)).bytesRead
  },
  write: writeAll,
  datasync: promisify(fs.fdatasync),
  // At once: what is closed here was synced before or is thrown away, and the thread pool would take far longer.
  close: async (fd) => fs.closeSync(fd),
  rename: promisify(fs.rename),
  unlink: promisify(fs.unlink),
  async sizeOf(path) {
    try {
      return (await stat(path)).size
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return null
      throw error
    }
  },
  openForReading: (path) => open(path, 'r'),
  async identify(fd) {
    const { size, ino, mtimeNs, ctimeNs } = await fstat(fd, { bigint: true })
    return { sizeBytes: Number(size), mark: `${ino} ${mtimeNs} ${ctimeNs}` }
  },
  readWhole: promisify(fs.readFile),
  makeDirectory: async (path) => (await mkdir(path, { recursive: true, mode: 0o700 })) ?? null,
  syncDirectory,
}

function writeAll(fd: number, bytes: Uint8Array, { length, position }: { length: number; position: number }) {
  return new Promise<void>((resolve, reject) => {
    // A nearly full disk takes a part of a write; only the next one fails.
    const writeFrom = (done: number) => {
      fs.write(fd, bytes, done, length - done, position + done, (error, written) => {
        if (error) reject(error)
        else if (done + written >= length) resolve()
        else writeFrom(done + written)
      })
    }
    writeFrom(0)
  })
}

// What systems answer that cannot sync directories at all.
const CANNOT_SYNC_DIRECTORIES = ['EISDIR', 'EPERM', 'EINVAL', 'ENOTSUP']

async function syncDirectory(path: string): Promise<void> {
  let fd: number | null = null
  try {
    fd = await open(path, 'r')
    await fsync(fd)
  } catch (error) {
    if (!hasCode(error, ...CANNOT_SYNC_DIRECTORIES)) throw error
  } finally {
    if (fd !== null) fs.closeSync(fd)
  }
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}

const BUSY_RETRY_SECONDS = 2

/** A full disk and too many open files become refusals; any other error of the disk is a defect and stays as it is. */
export function toStorageError(error: unknown): unknown {
  if (hasCode(error, 'EMFILE', 'ENFILE')) {
    const busy = 'too many files are open at once: nothing of this was kept; send it again in a moment'
    return new ServiceError('queue_full', busy, { retryAfterSeconds: BUSY_RETRY_SECONDS, cause: error })
  }
  if (!hasCode(error, 'ENOSPC', 'EDQUOT')) return error
  const message = 'the storage is full: nothing of this was kept; free some space on the disk of the data directory'
  return new ServiceError('storage_full', message, { details: { reason: 'storage_full' }, cause: error })
}

/** Buffers of one size that are used again. At most `keep` idle ones are remembered; the rest is left to the collector. */
export interface BufferPool {
  take(): Buffer
  giveBack(buffer: Buffer): void
}

interface BufferPoolOptions {
  readonly sizeBytes: number
  readonly keep: number
  /** Once this many are out, further takers get small buffers, however many they are: a crowd is served with less each. */
  readonly crowd?: { readonly from: number; readonly sizeBytes: number }
}

export function createBufferPool({ sizeBytes, keep, crowd }: BufferPoolOptions): BufferPool {
  const idle: Buffer[] = []
  let lent = 0
  return {
    take() {
      if (crowd !== undefined && lent >= crowd.from) return Buffer.allocUnsafeSlow(crowd.sizeBytes)
      lent++
      return idle.pop() ?? Buffer.allocUnsafeSlow(sizeBytes)
    },
    giveBack(buffer) {
      if (buffer.length !== sizeBytes) return
      lent--
      if (idle.length < keep) idle.push(buffer)
    },
  }
}
