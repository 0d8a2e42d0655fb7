/**
 * Objects as files of this machine, for engines that read paths. A file is fetched once, however many ask for it, and stays until
 * room is needed: the one that was used longest ago goes first, and none goes while somebody has it borrowed. The folder belongs to
 * this process; what a process that died left is removed by the next one.
 */
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, rename, rm, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { BorrowedFile, ByteRange } from '../../../domain/assets/blob-store.ts'
import type { FolderUsers } from '../folder-users.ts'
import type { FileOps } from '../fs/file-ops.ts'

export interface LocalFiles extends AsyncDisposable {
  /** For unfinished files. */
  readonly temporaryDirectory: string
  borrow(hash: string, fetch: FetchFile): Promise<BorrowedFile>
  /** null when there is no file of it here. */
  openHere(hash: string, range?: ByteRange): Promise<Readable | null>
}

interface FetchFile {
  readonly sizeBytes: number
  read(): Promise<Readable>
}

interface LocalFilesOptions {
  readonly directory: string
  readonly maxBytes: number
  readonly users: FolderUsers
  readonly files: FileOps
}

interface Entry {
  readonly path: string
  readonly sizeBytes: number
  readonly ready: Promise<void>
  borrowers: number
  isReady: boolean
}

const READ_BYTES = 256 * 1024
const ABANDONED_MS = 600_000

export async function openLocalFiles({ directory, maxBytes, users, files }: LocalFilesOptions): Promise<LocalFiles> {
  const folder = join(directory, users.own)
  const temporary = join(folder, 'tmp')
  await removeAbandoned(directory, users)
  await mkdir(temporary, { recursive: true, mode: 0o700 })
  // In the order of their last use.
  const entries = new Map<string, Entry>()
  let totalBytes = 0

  function fetchInto(hash: string, { sizeBytes, read }: FetchFile): Entry {
    const path = join(folder, hash)
    const entry: Entry = { path, sizeBytes, borrowers: 0, isReady: false, ready: write() }
    async function write(): Promise<void> {
      const unfinished = join(temporary, randomUUID())
      try {
        await writeFile(unfinished, await read(), files)
        await rename(unfinished, path)
        entry.isReady = true
      } catch (error) {
        if (entries.get(hash) === entry) entries.delete(hash)
        totalBytes -= sizeBytes
        await unlink(unfinished).catch(() => {})
        throw error
      }
    }
    totalBytes += sizeBytes
    entries.set(hash, entry)
    return entry
  }

  async function makeRoom(): Promise<void> {
    for (const [hash, { isReady, borrowers, path, sizeBytes }] of entries) {
      if (totalBytes <= maxBytes) return
      if (!isReady || borrowers > 0) continue
      entries.delete(hash)
      totalBytes -= sizeBytes
      // A process that has it open can read it to its end.
      await unlink(path).catch(() => {})
    }
  }

  /** The folder may have been emptied: a missing file is fetched again. */
  async function forgetMissing(hash: string): Promise<void> {
    const entry = entries.get(hash)
    if (entry?.isReady !== true || (await isThere(entry.path)) || entries.get(hash) !== entry) return
    entries.delete(hash)
    totalBytes -= entry.sizeBytes
    await mkdir(temporary, { recursive: true, mode: 0o700 })
  }

  return {
    temporaryDirectory: temporary,
    async borrow(hash, fetch) {
      await forgetMissing(hash)
      const entry = entries.get(hash) ?? fetchInto(hash, fetch)
      entry.borrowers++
      entries.delete(hash)
      entries.set(hash, entry)
      let isOut = true
      const giveBack = async () => {
        if (!isOut) return
        isOut = false
        entry.borrowers--
        await makeRoom()
      }
      try {
        await entry.ready
      } catch (error) {
        if (entries.get(hash) === entry) entries.delete(hash)
        throw error
      }
      await makeRoom()
      return { path: entry.path, [Symbol.asyncDispose]: giveBack }
    },
    async openHere(hash, range) {
      const entry = entries.get(hash)
      if (entry?.isReady !== true) return null
      const stream = createReadStream(entry.path, { ...range, highWaterMark: READ_BYTES })
      return new Promise((resolve) => {
        stream.once('open', () => resolve(stream))
        stream.once('error', () => resolve(null))
      })
    },
    async [Symbol.asyncDispose]() {
      await Promise.allSettled([...entries.values()].map(({ ready }) => ready))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function writeFile(path: string, source: Readable, files: FileOps): Promise<void> {
  const fd = await files.create(path)
  try {
    let position = 0
    for await (const chunk of source as AsyncIterable<Buffer>) {
      await files.write(fd, chunk, { length: chunk.length, position })
      position += chunk.length
    }
  } finally {
    await files.close(fd)
  }
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

async function removeAbandoned(directory: string, { own, live }: FolderUsers): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  for (const name of await readdir(directory)) {
    if (live.has(name) && name !== own) continue
    const path = join(directory, name)
    // A process that could not say for a while that it lives may be using its folder still.
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
    if (Date.now() - mtimeMs > ABANDONED_MS) await rm(path, { recursive: true, force: true })
  }
}
