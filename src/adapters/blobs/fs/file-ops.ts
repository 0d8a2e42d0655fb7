/**
 * The few file operations that storing bytes takes, as one record: tests put a failing disk in its place. The callback
 * functions of node:fs are used because a FileHandle costs several times more per small file.
 */
import fs from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { sleep } from '../../../../lib/waiting/sleep.ts'
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

// Where a blob lies: two levels of folders by the first bytes of its hash, made when they are first needed.

const HASH = /^[0-9a-f]{64}$/
const SHARD = /^[0-9a-f]{2}$/

export interface Shards {
  pathOf(hash: string): string
  /** Makes the folder of this hash, unless it was made before. */
  ensure(hash: string): Shard
  /** Every stored hash, in portions. */
  list(): AsyncIterable<string[]>
}

interface Shard {
  /** It exists: names may be given in it. */
  readonly made: Promise<void>
  /** It, the names that were inside, and the folders above it are durable. */
  readonly durable: Promise<void>
}

const SHARD_COUNT = 65_536
const THERE: Shard = { made: Promise.resolve(), durable: Promise.resolve() }

export function openShards(directory: string, files: FileOps): Shards {
  // Those under way, and one bit for each that is done: there are 65,536 in all. A failed attempt is forgotten, so that the
  // next one tries again.
  const underway = new Map<string, Shard>()
  const done = new Uint8Array(SHARD_COUNT / 8)
  const parents = new Map<string, Promise<void>>()

  /**
   * A folder that is there may come from a process that was killed before it synced, and so may the names inside. Hence the
   * first use in the life of a process always syncs, all levels side by side.
   */
  function make(path: string, number: number): Shard {
    const topmost = files.makeDirectory(path)
    const durable = topmost.then(async (made) => {
      const parent = dirname(path)
      const steps = [syncParent(parent), files.syncDirectory(parent), made === null ? files.syncDirectory(path) : null]
      // All of them are waited for, whatever happens: nothing may still be at work when the caller hears of a failure.
      for (const step of await Promise.allSettled(steps)) if (step.status === 'rejected') throw step.reason
    })
    const shard = { made: topmost.then(() => {}), durable }
    underway.set(path, shard)
    const forget = () => underway.delete(path)
    durable.then(() => {
      done[number >> 3] |= 1 << (number & 7)
      forget()
    }, forget)
    shard.made.catch(() => {})
    return shard
  }

  /** The name of a folder of the first level, which is there by now. */
  function syncParent(parent: string): Promise<void> {
    const known = parents.get(parent)
    if (known !== undefined) return known
    const started = files.syncDirectory(directory)
    parents.set(parent, started)
    started.catch(() => parents.delete(parent))
    return started
  }

  return {
    pathOf: (hash) => join(folderOf(directory, hash), hash),
    ensure(hash) {
      const path = folderOf(directory, hash)
      const number = Number.parseInt(hash.slice(0, 4), 16)
      if ((done[number >> 3] & (1 << (number & 7))) !== 0) return THERE
      return underway.get(path) ?? make(path, number)
    },
    async *list() {
      for (const first of await namesIn(directory, SHARD)) {
        for (const second of await namesIn(join(directory, first), SHARD)) {
          const hashes = await namesIn(join(directory, first, second), HASH)
          if (hashes.length > 0) yield hashes
        }
      }
    },
  }
}

function folderOf(directory: string, hash: string): string {
  // A hash becomes a path here and nowhere else, so whatever is not one stops here.
  if (!HASH.test(hash)) throw new TypeError('not a hash')
  return join(directory, hash.slice(0, 2), hash.slice(2, 4))
}

async function namesIn(path: string, pattern: RegExp): Promise<string[]> {
  try {
    return (await readdir(path)).filter((name) => pattern.test(name))
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  }
}

export interface Removal {
  remove(hash: string, isKnown: () => Promise<boolean>): Promise<void>
  /** Runs the read again while the bytes that it missed are set aside: they are about to come back, or to go for good. */
  outlast<Result>(hash: string, read: () => Promise<Result>): Promise<Result>
  /** The size of bytes that are set aside; null when there are none. */
  sizeAside(hash: string): Promise<number | null>
  /** Puts back what a process that died had set aside. */
  restore(): Promise<void>
}

const FOLDER = 'removing'
// A process asks one question while bytes are aside; after this time it is dead.
const ASIDE_MS = 60_000
const LOOK_EVERY_MS = 20

interface RemovalDeps {
  readonly files: FileOps
  readonly shards: Shards
  readonly now: () => number
}

/**
 * Removing bytes that other processes may store again at the same time. The file is set aside first, and only then is it checked
 * whether the bytes are still wanted. A process that announced the same bytes before the check is seen, and the file is put back; a
 * process that announces them later finds no file and stores its own.
 */
export function createRemoval(directory: string, { files, shards, now }: RemovalDeps): Removal {
  const folder = join(directory, FOLDER)
  const asideOf = (hash: string) => join(folder, hash)

  async function putBack(hash: string): Promise<void> {
    await shards.ensure(hash).made
    await files.rename(asideOf(hash), shards.pathOf(hash)).catch(ignoreMissing)
  }

  return {
    async remove(hash, isKnown) {
      if (await isKnown()) return
      await files.makeDirectory(folder)
      const wasThere = await files.rename(shards.pathOf(hash), asideOf(hash)).then(() => true, ignoreMissing)
      if (wasThere !== true) return
      let isWanted = true
      try {
        isWanted = await isKnown()
      } finally {
        if (isWanted) await putBack(hash)
        else await files.unlink(asideOf(hash)).catch(ignoreMissing)
      }
    },
    async outlast(hash, read) {
      for (let waitedMs = 0; ; waitedMs += LOOK_EVERY_MS) {
        try {
          return await read()
        } catch (error) {
          const isAside = hasCode(error, 'ENOENT') && (await files.sizeOf(asideOf(hash))) !== null
          // It may have come back between the read and the look.
          const isBack = hasCode(error, 'ENOENT') && !isAside && waitedMs === 0 && (await isThere(hash))
          if (!(isAside || isBack) || waitedMs > ASIDE_MS) throw error
          await sleep(LOOK_EVERY_MS)
        }
      }
    },
    sizeAside: (hash) => files.sizeOf(asideOf(hash)),
    async restore() {
      const names = await readdir(folder).catch(() => [])
      for (const hash of names) {
        const { ctimeMs } = await stat(asideOf(hash)).catch(() => ({ ctimeMs: Number.POSITIVE_INFINITY }))
        if (now() - ctimeMs > ASIDE_MS) await putBack(hash)
      }
    },
  }

  async function isThere(hash: string): Promise<boolean> {
    return (await files.sizeOf(shards.pathOf(hash))) !== null
  }
}

function ignoreMissing(error: unknown): void {
  if (!hasCode(error, 'ENOENT')) throw error
}
