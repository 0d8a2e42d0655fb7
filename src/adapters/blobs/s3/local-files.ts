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

export async function openLocalFiles(options: LocalFilesOptions): Promise<LocalFiles> {
  const files = new LocalFiles(options)
  await removeAbandoned(options.directory, options.users)
  await mkdir(files.temporaryDirectory, { recursive: true, mode: 0o700 })
  return files
}

export class LocalFiles implements AsyncDisposable {
  /** For unfinished files. */
  readonly temporaryDirectory: string
  readonly #options: LocalFilesOptions
  readonly #folder: string
  // In the order of their last use.
  readonly #entries = new Map<string, Entry>()
  #totalBytes = 0

  constructor(options: LocalFilesOptions) {
    this.#options = options
    this.#folder = join(options.directory, options.users.own)
    this.temporaryDirectory = join(this.#folder, 'tmp')
  }

  async borrow(hash: string, fetch: FetchFile): Promise<BorrowedFile> {
    await this.#forgetMissing(hash)
    const entry = this.#entries.get(hash) ?? this.#fetchInto(hash, fetch)
    entry.borrowers++
    this.#entries.delete(hash)
    this.#entries.set(hash, entry)
    let isOut = true
    const giveBack = async () => {
      if (!isOut) return
      isOut = false
      entry.borrowers--
      await this.#makeRoom()
    }
    try {
      await entry.ready
    } catch (error) {
      if (this.#entries.get(hash) === entry) this.#entries.delete(hash)
      throw error
    }
    await this.#makeRoom()
    return { path: entry.path, [Symbol.asyncDispose]: giveBack }
  }

  /** null when there is no file of it here. */
  async openHere(hash: string, range?: ByteRange): Promise<Readable | null> {
    const entry = this.#entries.get(hash)
    if (entry?.isReady !== true) return null
    const stream = createReadStream(entry.path, { ...range, highWaterMark: READ_BYTES })
    return new Promise((resolve) => {
      stream.once('open', () => resolve(stream))
      stream.once('error', () => resolve(null))
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled([...this.#entries.values()].map(({ ready }) => ready))
    await rm(this.#folder, { recursive: true, force: true })
  }

  #fetchInto(hash: string, { sizeBytes, read }: FetchFile): Entry {
    const path = join(this.#folder, hash)
    const write = async (): Promise<void> => {
      const unfinished = join(this.temporaryDirectory, randomUUID())
      try {
        await writeFile(unfinished, await read(), this.#options.files)
        await rename(unfinished, path)
        entry.isReady = true
      } catch (error) {
        if (this.#entries.get(hash) === entry) this.#entries.delete(hash)
        this.#totalBytes -= sizeBytes
        await unlink(unfinished).catch(() => {})
        throw error
      }
    }
    const entry: Entry = { path, sizeBytes, borrowers: 0, isReady: false, ready: write() }
    this.#totalBytes += sizeBytes
    this.#entries.set(hash, entry)
    return entry
  }

  async #makeRoom(): Promise<void> {
    for (const [hash, { isReady, borrowers, path, sizeBytes }] of this.#entries) {
      if (this.#totalBytes <= this.#options.maxBytes) return
      if (!isReady || borrowers > 0) continue
      this.#entries.delete(hash)
      this.#totalBytes -= sizeBytes
      // A process that has it open can read it to its end.
      await unlink(path).catch(() => {})
    }
  }

  /** The folder may have been emptied: a missing file is fetched again. */
  async #forgetMissing(hash: string): Promise<void> {
    const entry = this.#entries.get(hash)
    if (entry?.isReady !== true || (await isThere(entry.path)) || this.#entries.get(hash) !== entry) return
    this.#entries.delete(hash)
    this.#totalBytes -= entry.sizeBytes
    await mkdir(this.temporaryDirectory, { recursive: true, mode: 0o700 })
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
