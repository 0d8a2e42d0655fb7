/** Folders with everything in them: copied, hashed and measured. Links stay links and are never followed. */
import { createHash, type Hash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { copyFile, lstat, mkdir, readdir, readlink, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

interface TreeEntry {
  /** Relative to the folder, with `/` between. */
  readonly path: string
  readonly kind: 'file' | 'folder' | 'link'
}

/** In an order that is the same everywhere. `takes` may leave out a folder with all that is in it. */
export async function* walkTree(
  folder: string,
  takes: (path: string, kind: TreeEntry['kind']) => boolean = () => true,
): AsyncGenerator<TreeEntry> {
  async function* walk(inside: string): AsyncGenerator<TreeEntry> {
    const entries = await readdir(join(folder, inside), { withFileTypes: true })
    entries.sort((one, other) => (one.name < other.name ? -1 : 1))
    for (const entry of entries) {
      const path = inside === '' ? entry.name : `${inside}/${entry.name}`
      const kind = entry.isSymbolicLink() ? 'link' : entry.isDirectory() ? 'folder' : entry.isFile() ? 'file' : null
      if (kind === null || !takes(path, kind)) continue
      yield { path, kind }
      if (kind === 'folder') yield* walk(path)
    }
  }
  yield* walk('')
}

/** Shares the bytes with the original where the system can. */
export async function copyTree(
  from: string,
  to: string,
  takes?: (path: string, kind: TreeEntry['kind']) => boolean,
): Promise<void> {
  await mkdir(to, { recursive: true })
  for await (const { path, kind } of walkTree(from, takes)) {
    const target = join(to, path)
    if (kind === 'folder') await mkdir(target, { recursive: true })
    else if (kind === 'link') await symlink(await readlink(join(from, path)), target)
    else await copyFile(join(from, path), target, constants.COPYFILE_FICLONE)
  }
}

/** sha256, in hex, over names and contents. */
export async function hashTree(
  folder: string,
  takes?: (path: string, kind: TreeEntry['kind']) => boolean,
): Promise<string> {
  const hash = createHash('sha256')
  for await (const { path, kind } of walkTree(folder, takes)) {
    hash.update(`${kind}\0${path}\0`)
    if (kind === 'link') hash.update(`${await readlink(join(folder, path))}\0`)
    if (kind === 'file') hash.update(await hashFile(join(folder, path)))
  }
  return hash.digest('hex')
}

export async function hashFile(path: string, hash: Hash = createHash('sha256')): Promise<string> {
  await pipeline(createReadStream(path, { highWaterMark: 1024 * 1024 }), hash)
  return hash.digest('hex')
}

/** What it occupies, each file once, under however many names. */
export async function treeBytes(
  folder: string,
  takes?: (path: string, kind: TreeEntry['kind']) => boolean,
): Promise<number> {
  let bytes = 0
  const seen = new Set<string>()
  for await (const { path, kind } of walkTree(folder, takes)) {
    if (kind !== 'file') continue
    const found = await lstat(join(folder, path)).catch(() => null)
    if (found === null) continue
    if (found.nlink > 1) {
      const id = `${found.dev}:${found.ino}`
      if (seen.has(id)) continue
      seen.add(id)
    }
    bytes += found.size
  }
  return bytes
}
