/**
 * The folders of models of a server that we launched, on the disk of this machine. Where they are, the server says. Files get
 * their names by a second name for the same bytes, which fails where a file is: nothing is ever replaced, and nothing is half there.
 */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, link, lstat, mkdir, open, realpath, rename, stat, statfs, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { openBlake3 } from '../../../../../lib/files/blake3.ts'
import { leadsOut, nullWhenMissing } from '../../../../../lib/files/inside-folder.ts'
import type { WeightDraft, WeightPath, WeightStore } from '../../../../domain/engine/weights/weight-store.ts'
import { invalidField } from '../../../../domain/errors.ts'
import {
  appendPart,
  createPart,
  openPart,
  ownFolder,
  partOf,
  readDrafts,
  removeDraft,
  toRefusal,
  writeInBook,
} from './drafts.ts'
import type { ServerFolder } from './server-weights.ts'

interface WeightDiskDeps {
  /** As the server says; null: it does not. */
  readonly findFolders: () => Promise<readonly ServerFolder[] | null>
  readonly refresh: () => Promise<void>
}

// As readable as what a person puts there: the server may run as another user.
const PLACED_MODE = 0o644
const READ_BYTES = 1024 * 1024
// Systems of files that have no second names.
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EMLINK', 'ENOSYS']

export function createWeightDisk({ findFolders, refresh }: WeightDiskDeps): WeightStore {
  const folders = new ModelFolders(findFolders)
  const homeOf = async (draft: WeightPath) => ownFolder((await folders.pathsOf(draft.folder))[0])

  return {
    refresh,
    folders: async () => (await folders.known()).map(({ name }) => name),
    async freeBytes(folder) {
      const { bavail, bsize } = await statfs((await folders.pathsOf(folder))[0])
      return bavail * bsize
    },
    isTaken: async (path) => (await folders.locate(path)) !== null,
    async create(draft) {
      await pathIn((await folders.pathsOf(draft.folder))[0], draft)
      await createPart(await homeOf(draft), draft).catch((error: unknown) => {
        throw toRefusal(error)
      })
    },
    async drafts() {
      const all = new Set((await findFolders())?.flatMap(({ paths }) => paths) ?? [])
      return (await Promise.all([...all].map(readDrafts))).flat()
    },
    append: async (draft, source, look) => appendPart(await homeOf(draft), draft, { source, look }),
    async hash(draft, algorithm) {
      const hasher = algorithm === 'sha256' ? createSha256() : (await openBlake3()).createHasher()
      await using file = await openPart(await homeOf(draft), draft, constants.O_RDONLY)
      for await (const chunk of file.createReadStream({ highWaterMark: READ_BYTES, autoClose: false }))
        hasher.update(chunk as Buffer)
      return `${algorithm}:${hasher.digest()}`
    },
    async publish(draft, hash) {
      const [folder] = await folders.pathsOf(draft.folder)
      const [own, file] = [await ownFolder(folder), await pathIn(folder, draft)]
      await mkdir(dirname(file), { recursive: true })
      // Only now does the folder exist for certain, so only now is its real path known.
      await pathIn(folder, draft)
      if (!(await giveName(partOf(own, draft), file))) return 'taken'
      await syncFolder(dirname(file))
      await writeInBook(folder, draft.name, hash)
      await removeDraft(own, draft)
      return 'placed'
    },
    discard: async (draft: WeightDraft) => removeDraft(await homeOf(draft), draft),
    async remove(path) {
      const found = await folders.locate(path)
      if (found === null) return false
      const { folder, file } = found
      const about = await lstat(file)
      if (!about.isFile() && !about.isSymbolicLink()) throw invalidField('name', 'is not a file')
      // Of a link, the link alone: what it leads to may be somebody else's.
      await unlink(file)
      await syncFolder(dirname(file))
      await writeInBook(folder, path.name, null)
      return true
    },
  }
}

/** Where the server has its folders, and what is in them. */
class ModelFolders {
  readonly #find: WeightDiskDeps['findFolders']

  constructor(find: WeightDiskDeps['findFolders']) {
    this.#find = find
  }

  async known(): Promise<readonly ServerFolder[]> {
    const folders = await this.#find()
    if (folders === null) throw invalidField('engine', 'does not tell where its folders of models are')
    return folders
  }

  /**
   * The real paths of a folder; files are put into the first one. A folder that has an older name, too, lists that first
   * (`diffusion_models` is also `unet`): the path that is named like it comes before.
   */
  async pathsOf(name: string): Promise<readonly [string, ...string[]]> {
    const told = (await this.known()).find((folder) => folder.name === name)?.paths ?? []
    const inOrder = told.toSorted((one, other) => Number(basename(other) === name) - Number(basename(one) === name))
    const [first, ...more] = await realPaths(inOrder)
    if (first !== undefined) return [first, ...more]
    throw invalidField('folder', 'is not on this machine, or does not exist yet; make it first')
  }

  /** The path of a file that there is; null: there is none. */
  async locate(path: WeightPath): Promise<{ readonly folder: string; readonly file: string } | null> {
    for (const folder of await this.pathsOf(path.folder)) {
      const file = await pathIn(folder, path)
      if ((await lstat(file).catch(nullWhenMissing)) !== null) return { folder, file }
    }
    return null
  }
}

async function pathIn(folder: string, { name }: WeightPath): Promise<string> {
  const path = join(folder, name)
  if (await leadsOut(folder, path)) throw invalidField('name', 'leads out of its folder')
  return path
}

/** Of those that exist. */
async function realPaths(paths: readonly string[]): Promise<string[]> {
  const real = await Promise.all(paths.map((path) => realpath(path).catch(nullWhenMissing)))
  return real.filter((path) => path !== null)
}

/** False: another file has the name. */
async function giveName(part: string, file: string): Promise<boolean> {
  await chmod(part, PLACED_MODE)
  try {
    await link(part, file)
    return true
  } catch (error) {
    if (hasCode(error, ['EEXIST'])) return isSameFile(part, file)
    if (!hasCode(error, NO_LINKS)) throw toRefusal(error)
  }
  // Takes the name first, so that here, too, nothing is replaced but this empty file.
  const taken = await open(file, 'wx').catch((error: unknown) => {
    if (hasCode(error, ['EEXIST'])) return null
    throw toRefusal(error)
  })
  await taken?.close()
  if (taken !== null) await rename(part, file)
  return taken !== null
}

/** A process that was killed after it had given the name left both. */
async function isSameFile(part: string, file: string): Promise<boolean> {
  const [one, other] = await Promise.all([stat(part), lstat(file)])
  return one.ino === other.ino && one.dev === other.dev
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  // Not every system can; then the name is as durable as it makes names.
  await folder.sync().catch(() => {})
  await folder.close()
}

function createSha256() {
  const hash = createHash('sha256')
  return { update: (chunk: Uint8Array) => void hash.update(chunk), digest: () => hash.digest('hex') }
}

function hasCode(error: unknown, codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}
