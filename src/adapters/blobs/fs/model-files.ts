/**
 * Models in a folder of this machine, placed from stored blobs. A placed model is a second name of the same file (a hard
 * link): it appears at once, whole and durable, takes no second copy of many gigabytes, and outlives the asset. So that
 * the stored bytes are not edited through it, the file becomes read-only. On another file system it is copied instead.
 * The path to a model must not leave the folder through a symbolic link.
 */
import { randomUUID } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { chmod, copyFile, link, lstat, mkdir, open, readdir, realpath, stat, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Blake3 } from '../../../../lib/files/blake3.ts'
import { leadsOut, nullWhenMissing } from '../../../../lib/files/inside-folder.ts'
import type { BlobStore } from '../../../domain/assets/blob-store.ts'
import type { ModelPath } from '../../../domain/assets/create/file-path.ts'
import type { ModelFiles, PlaceState, StoredBytes } from '../../../domain/assets/weights/model-placement.ts'
import { invalidField } from '../../../domain/errors.ts'
import { diskFileOps, hasCode, toStorageError } from './file-ops.ts'

// Readable by the user of the engine, and read-only, because the blob shares the file.
const PLACED_MODE = 0o444
const HASH_READ_BYTES = 1024 * 1024

interface ModelFilesOptions {
  /** The folder with `checkpoints`, `loras` and so on in it. It must exist. */
  readonly modelsDirectory: string
  readonly blobs: Pick<BlobStore, 'localPath' | 'open'>
  readonly blake3: Blake3
  /** Makes a second name of a file; fails with EXDEV across file systems. */
  readonly linkFile?: (from: string, to: string) => Promise<void>
}

export async function openModelFiles(options: ModelFilesOptions): Promise<ModelFiles> {
  const { blobs, blake3, linkFile = link } = options
  const base = await realpath(options.modelsDirectory)
  const copyExclusively = createExclusiveCopy({ mode: PLACED_MODE })
  const pathOf = ({ root, name }: ModelPath) => join(base, root, name)

  async function compare(path: string, bytes: StoredBytes | null): Promise<PlaceState> {
    const found = await lstat(path).catch(nullWhenMissing)
    if (found === null) return 'free'
    if (bytes === null || !found.isFile() || found.size !== bytes.sizeBytes) return 'taken'
    const blobPath = blobs.localPath(bytes.hash)
    const blob = blobPath === null ? null : await stat(blobPath).catch(nullWhenMissing)
    if (blob?.ino === found.ino && blob.dev === found.dev) return 'same'
    return (await hashFile(path, blake3)) === bytes.hash ? 'same' : 'taken'
  }

  async function putInPlace(bytes: StoredBytes, path: string): Promise<void> {
    const blobPath = blobs.localPath(bytes.hash)
    // Few bytes may lie in the database.
    if (blobPath === null) return copyExclusively(await blobs.open(bytes.hash), path)
    try {
      await linkFile(blobPath, path)
    } catch (error) {
      if (!hasCode(error, 'EXDEV', 'EPERM', 'ENOTSUP', 'EMLINK')) throw error
      return copyExclusively(blobPath, path)
    }
    await chmod(path, PLACED_MODE)
  }

  return {
    async inspect(model, bytes) {
      const path = pathOf(model)
      await checkInside(base, path)
      return compare(path, bytes)
    },
    async place(model, bytes) {
      const path = pathOf(model)
      await checkInside(base, path)
      try {
        await mkdir(dirname(path), { recursive: true })
        // Only now does the folder exist for certain, so only now is its real path known.
        await checkInside(base, path)
        await putInPlace(bytes, path)
        await syncUpTo(base, dirname(path))
        return 'placed'
      } catch (error) {
        if (hasCode(error, 'ENOTDIR')) return 'taken'
        if (!hasCode(error, 'EEXIST')) throw toStorageError(error)
        return (await compare(path, bytes)) === 'same' ? 'same' : 'taken'
      }
    },
    async takeBack(model) {
      await unlink(pathOf(model)).catch(nullWhenMissing)
    },
  }
}

async function checkInside(base: string, path: string): Promise<void> {
  if (await leadsOut(base, path)) throw invalidField('file_path', 'leads out of the models folder')
}

async function syncUpTo(base: string, deepest: string): Promise<void> {
  for (let folder = deepest; folder.length >= base.length; folder = dirname(folder)) {
    await diskFileOps.syncDirectory(folder)
    if (folder === base) return
  }
}

async function hashFile(path: string, blake3: Blake3): Promise<string> {
  const hasher = blake3.createHasher()
  const chunks: AsyncIterable<Buffer> = createReadStream(path, { highWaterMark: HASH_READ_BYTES })
  for await (const chunk of chunks) hasher.update(chunk)
  return hasher.digest()
}

const { COPYFILE_EXCL, COPYFILE_FICLONE } = constants
const UNFINISHED = /^\.atelier-[0-9a-f-]{36}\.partial$/

/** Fails with EEXIST when the name is taken, and then leaves nothing behind. */
type ExclusiveCopy = (from: string | AsyncIterable<Uint8Array>, to: string) => Promise<void>

/**
 * Copies a file, or bytes, to a name that must be free. The copy is made under another name in the same folder and gets its own only
 * when it is whole and durable; what a crash leaves of it is removed by the next copy into that folder.
 */
function createExclusiveCopy({ mode }: { readonly mode: number }): ExclusiveCopy {
  const underWay = new Set<string>()

  async function removeLeftOvers(folder: string): Promise<void> {
    for (const name of await readdir(folder)) {
      const path = join(folder, name)
      if (UNFINISHED.test(name) && !underWay.has(path)) await unlink(path)
    }
  }

  return async function copyExclusively(from, to) {
    const folder = dirname(to)
    await removeLeftOvers(folder)
    const unfinished = join(folder, `.atelier-${randomUUID()}.partial`)
    underWay.add(unfinished)
    try {
      if (typeof from === 'string') {
        // Shares the blocks where the file system can.
        await copyFile(from, unfinished, COPYFILE_EXCL | COPYFILE_FICLONE)
      } else await writeFile(unfinished, from, { flag: 'wx' })
      await chmod(unfinished, mode)
      await sync(unfinished)
      // Unlike a rename, a link never replaces a file.
      await link(unfinished, to)
    } finally {
      await unlink(unfinished).catch(() => {})
      underWay.delete(unfinished)
    }
  }
}

async function sync(path: string): Promise<void> {
  await using file = await open(path, 'r')
  await file.datasync()
}
