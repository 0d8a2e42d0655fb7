/**
 * Blobs as files named by their hash, `ab/cd/<hash>` below one directory. Bytes are written under `tmp/`, synced, renamed and
 * never rewritten; files belong to their owner only. A lock per hash orders keeping and removing inside a process; between several
 * processes that use the directory, `createRemoval` does.
 */
import { randomUUID } from 'node:crypto'
import fs from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { promisify } from 'node:util'
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Blake3 } from '../../../../lib/files/blake3.ts'
import type { Log } from '../../../../lib/log.ts'
import { createKeyedLock, type KeyedLock } from '../../../../lib/waiting/semaphore.ts'
import type { Blobs, ByteRange, PendingBlob } from '../../../domain/assets/blob-store.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { FolderUsers } from '../folder-users.ts'
import {
  createBufferPool,
  createRemoval,
  diskFileOps,
  type FileOps,
  hasCode,
  openShards,
  type Removal,
  type Shards,
  toStorageError,
} from './file-ops.ts'
import { createPartialFiles } from './partial-files.ts'
import { createWriteBudget, type Received, receive, type Staged, stage } from './receive.ts'

// Up to this size bytes are gathered in memory and written at once.
const SMALL_BYTES = 64 * 1024
// Large enough that the disk and the hash work at full speed, small enough that a slow upload holds little.
const LARGE_BYTES = 1024 * 1024
const IDLE_SMALL_BUFFERS = 64
const IDLE_LARGE_BUFFERS = 8
// Thousands of uploads that all pause half-way must not take a megabyte each.
const MAX_LARGE_BUFFERS = 128
// Where damaged files are moved: they are never read again, and an upload of the same bytes stores them again.
export const DAMAGED_FOLDER = 'damaged'

interface FsBlobsOptions {
  readonly directory: string
  readonly blake3: Blake3
  readonly log: Log
  readonly files?: FileOps
  /** Other processes use the folder too; left out or null: none does. */
  readonly users?: FolderUsers | null
  /** Milliseconds since 1970, as the file system counts them. */
  readonly now?: () => number
  /** Called for every chunk of larger pieces that is stored or read, so that its buffer may be freed soon. */
  readonly onTransferred?: (bytes: number) => void
}

interface FsBlobs extends Blobs {
  /** Where files are written before they get their names. */
  readonly temporaryDirectory: string
}

export async function openFsBlobs(options: FsBlobsOptions): Promise<FsBlobs> {
  const {
    directory,
    blake3,
    log,
    files = diskFileOps,
    onTransferred = () => {},
    users = null,
    now = Date.now,
  } = options
  const temporary = join(directory, 'tmp')
  await files.makeDirectory(temporary)
  await removeLeftOvers(temporary, { files, users, now, log })
  const shards = openShards(directory, files)
  const locks = createKeyedLock()
  const removal = createRemoval(directory, { files, shards, now })
  await removal.restore()
  const smallBuffers = createBufferPool({ sizeBytes: SMALL_BYTES, keep: IDLE_SMALL_BUFFERS })
  const largeBuffers = createBufferPool({
    sizeBytes: LARGE_BYTES,
    keep: IDLE_LARGE_BUFFERS,
    crowd: { from: MAX_LARGE_BUFFERS, sizeBytes: SMALL_BYTES },
  })
  const newTemporaryPath = () => join(temporary, toTemporaryName(randomUUID(), users))
  const reads = createCheckedReads({ blake3, onTransferred, onDamage: (hash) => void setDamagedAside(hash) })
  const budget = createWriteBudget()
  const deps = { files, blake3, smallBuffers, largeBuffers, budget, onTransferred, newTemporaryPath }

  async function setDamagedAside(hash: string): Promise<void> {
    try {
      await locks.run(hash, async () => {
        await files.makeDirectory(join(directory, DAMAGED_FOLDER))
        await files.rename(shards.pathOf(hash), join(directory, DAMAGED_FOLDER, hash)).catch(ignoreMissing)
      })
      log.error({ hash }, 'stored bytes were damaged on the disk and are set aside; sending them again mends this')
    } catch (error) {
      log.error({ hash, err: error }, 'stored bytes are damaged on the disk and could not be set aside')
    }
  }

  return {
    temporaryDirectory: temporary,
    async receive(source, options) {
      const received = await receive(source, options, deps)
      return toPendingBlob(received, { staged: stage(received, deps), shards, locks, files })
    },
    async stat(hash) {
      await locks.settled(hash)
      const sizeBytes = await files.sizeOf(shards.pathOf(hash))
      if (sizeBytes !== null) return { sizeBytes }
      const asideBytes = await removal.sizeAside(hash)
      return asideBytes === null ? null : { sizeBytes: asideBytes }
    },
    async open(hash, range) {
      await locks.settled(hash)
      return reads.open(await openFile(hash, { path: shards.pathOf(hash), files, removal }), range)
    },
    localPath: (hash) => shards.pathOf(hash),
    partials: createPartialFiles(directory, {
      ...deps,
      toPending: (received, staged) => toPendingBlob(received, { staged, shards, locks, files }),
    }),
    // While the lock is held this process cannot store the same bytes; `removal` handles other processes.
    remove: (hash, isKnown) => locks.run(hash, () => removal.remove(hash, isKnown)),
    list: () => shards.list(),
  }
}

interface KeepDeps {
  readonly staged: Staged
  readonly shards: Shards
  readonly locks: KeyedLock
  readonly files: FileOps
}

function toPendingBlob(received: Received, { staged, shards, locks, files }: KeepDeps): PendingBlob {
  const { hash, sizeBytes } = received
  const path = shards.pathOf(hash)
  // A small piece is compared with what is there. A large one replaces it: what lies on a disk for long may be damaged.
  const isThere = async () =>
    received.kind === 'memory' &&
    (await files.sizeOf(path)) === sizeBytes &&
    (await files.readWhole(path)).equals(received.bytes.subarray(0, sizeBytes))
  const prepare = () => allOf([staged.sync(), shards.ensure(hash).made])

  // New bytes are synced while the caller is still busy announcing them. A failure here shows again in `keep`.
  const wasThere = isThere()
  const prepared = wasThere.then(async (known) => {
    if (!known) await prepare()
  })
  prepared.catch(() => {})

  async function keepLocked(): Promise<void> {
    let renamed = false
    try {
      // What was there may have been removed since. What was not may have been stored by somebody else: the same bytes,
      // which are then replaced by these without anybody noticing.
      if ((await wasThere.catch(() => true)) && (await isThere())) {
        await shards.ensure(hash).durable
        return
      }
      await prepare()
      await files.rename(staged.path, path)
      renamed = true
      await allOf([files.syncDirectory(dirname(path)), shards.ensure(hash).durable])
    } finally {
      await staged.release({ renamed })
    }
  }

  return {
    hash,
    sizeBytes,
    async keep() {
      await prepared.catch(() => {})
      try {
        await locks.run(hash, keepLocked)
      } catch (error) {
        throw toStorageError(error)
      }
    },
    async discard() {
      await prepared.catch(() => {})
      await staged.release({ renamed: false })
    },
  }
}

/** All are waited for, whatever happens: nothing may still be at work when the caller hears of a failure. */
async function allOf(steps: readonly Promise<void>[]): Promise<void> {
  for (const step of await Promise.allSettled(steps)) if (step.status === 'rejected') throw step.reason
}

interface OpenDeps {
  readonly path: string
  readonly files: FileOps
  readonly removal: Removal
}

async function openFile(hash: string, { path, files, removal }: OpenDeps): Promise<StoredFile> {
  try {
    const fd = await removal.outlast(hash, () => files.openForReading(path))
    return { path, fd, hash, ...(await files.identify(fd)) }
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
    throw new ServiceError('output_unavailable', 'the stored bytes are gone; trying again cannot bring them back', {
      cause: error,
    })
  }
}

function ignoreMissing(error: unknown): void {
  if (!hasCode(error, 'ENOENT')) throw error
}

/**
 * Unfinished files. A process that has the folder to itself removes all of them at its start: they are from a crash. Where several
 * processes use the folder, each writes under its own name, and only files of processes that are gone, or that are too old to be
 * still in use, are removed.
 */
interface LeftOverDeps {
  readonly files: FileOps
  /** null: this process has the folder alone. */
  readonly users: FolderUsers | null
  readonly now: () => number
  readonly log: Log
}

// No upload takes as long: the longest that a connection may be silent is minutes.
const ABANDONED_MS = 24 * 3_600_000

/** The name of an unfinished file begins with the name of its process, which has no dot. */
function toTemporaryName(id: string, users: FolderUsers | null): string {
  return users === null ? id : `${users.own}.${id}`
}

async function removeLeftOvers(temporary: string, deps: LeftOverDeps): Promise<void> {
  const { files, log } = deps
  let count = 0
  for (const name of await readdir(temporary)) {
    const path = join(temporary, name)
    try {
      if (!(await isLeftOver(path, name, deps))) continue
      await files.unlink(path)
      count++
    } catch (error) {
      // Nothing of ours, such as a folder, or another process was faster; it must not keep the service from starting.
      log.warn({ err: error, name }, 'a foreign entry among the unfinished files could not be removed')
    }
  }
  if (count > 0) log.info({ count }, 'removed unfinished files of an earlier run')
}

async function isLeftOver(path: string, name: string, { users, now }: LeftOverDeps): Promise<boolean> {
  if (users === null) return true
  const [owner, ...rest] = name.split('.')
  if (rest.length > 0 && owner !== undefined && !users.live.has(owner)) return true
  return now() - (await stat(path)).mtimeMs > ABANDONED_MS
}

// Reads stored bytes and compares them with their hash on the way. The last chunk is let through only when all of them were right:
// whoever reads bytes that were damaged on the disk sees a stream that breaks off, never a whole one that is wrong.

const readFile = promisify(fs.readFile)
// Read ahead of a client; it bounds what a stalled download holds.
const READ_BYTES = 256 * 1024
// Up to this size bytes are compared with every read; hashing them costs less than sending them.
const COMPARED_BYTES = 16 * 1024 * 1024
// Larger ones are not compared again for a while, unless their file was touched.
const TRUSTED_FOR_MS = 3_600_000
const MAX_TRUSTED = 4_096

interface StoredFile {
  readonly path: string
  readonly fd: number
  readonly hash: string
  readonly sizeBytes: number
  /** Changes whenever the file does. */
  readonly mark: string
}

interface CheckedReads {
  /** Takes the open file over. Throws when the bytes are known to be damaged before the first of them is needed. */
  open(file: StoredFile, range?: ByteRange): Promise<Readable>
}

interface CheckedReadDeps {
  readonly blake3: Blake3
  onDamage(hash: string): void
  /** Called for every chunk that was read from a file larger than one chunk. */
  onTransferred(bytes: number): void
  readonly nowMs?: () => number
}

function createCheckedReads(deps: CheckedReadDeps): CheckedReads {
  const { blake3, onDamage, onTransferred, nowMs = Date.now } = deps
  const trusted = new BoundedMap<string, { readonly mark: string; readonly untilMs: number }>(MAX_TRUSTED)

  function isTrusted({ hash, mark }: StoredFile): boolean {
    const known = trusted.get(hash)
    return known !== undefined && known.mark === mark && known.untilMs > nowMs()
  }

  function trust({ hash, mark }: StoredFile): void {
    trusted.set(hash, { mark, untilMs: nowMs() + TRUSTED_FOR_MS })
  }

  /** One read, judged before anybody gets the first byte. */
  async function readAtOnce({ fd, hash, sizeBytes }: StoredFile, range?: ByteRange): Promise<Readable> {
    let bytes: Buffer
    try {
      bytes = await readFile(fd)
    } finally {
      fs.closeSync(fd)
    }
    if (bytes.length !== sizeBytes || blake3.hash(bytes) !== hash) {
      onDamage(hash)
      throw damaged()
    }
    return Readable.from([range === undefined ? bytes : bytes.subarray(range.start, range.end + 1)], {
      objectMode: false,
    })
  }

  const check = (file: StoredFile) =>
    readChecked(file, {
      blake3,
      onDamage,
      onTransferred,
      onWhole: () => (file.sizeBytes > COMPARED_BYTES ? trust(file) : undefined),
    })

  function readPlain({ path, fd }: StoredFile, range?: ByteRange): Readable {
    const stream = fs.createReadStream(path, { fd, ...range, highWaterMark: READ_BYTES })
    stream.on('data', (chunk) => onTransferred(chunk.length))
    return stream.pause()
  }

  return {
    async open(file, range) {
      if (file.sizeBytes > COMPARED_BYTES)
        return range !== undefined || isTrusted(file) ? readPlain(file, range) : check(file)
      if (file.sizeBytes <= READ_BYTES) return readAtOnce(file, range)
      if (range === undefined) return check(file)
      // A part says nothing about the whole, so the whole is looked at first.
      await finished(check({ ...file, fd: fs.openSync(file.path, 'r') }).resume())
      return readPlain(file, range)
    },
  }
}

function damaged(): ServiceError {
  return new ServiceError('output_unavailable', 'the stored bytes are damaged; trying again does not help')
}

interface CheckOptions extends Omit<CheckedReadDeps, 'nowMs'> {
  onWhole(): void
}

function readChecked({ path, fd, hash, sizeBytes }: StoredFile, options: CheckOptions): Readable {
  const { blake3, onDamage, onTransferred, onWhole } = options
  const stream = fs.createReadStream(path, { fd, highWaterMark: READ_BYTES })
  const hasher = blake3.createHasher()
  let leftBytes = sizeBytes

  function breakOff(): false {
    onDamage(hash)
    stream.destroy(damaged())
    return false
  }

  // Every chunk of the file passes through here on its way to the reader.
  const passOn = stream.push.bind(stream)
  const check = (chunk: Buffer | null): boolean => {
    if (chunk === null) return leftBytes > 0 ? breakOff() : passOn(null)
    onTransferred(chunk.length)
    hasher.update(chunk)
    leftBytes -= chunk.length
    if (leftBytes > 0) return passOn(chunk)
    if (leftBytes < 0 || hasher.digest() !== hash) return breakOff()
    onWhole()
    return passOn(chunk)
  }
  stream.push = check
  return stream
}
