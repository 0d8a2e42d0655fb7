/**
 * Where releases lie. Each build is made in a folder of its own, at its final place, because an environment holds absolute paths;
 * the release is there when `release.json` names that folder, which is written last and in one step. So nothing half-made is ever
 * found, and what a killed build left behind is known by not being named.
 *
 *   releases/<release>/<os>-<gpu>/release.json
 *   releases/<release>/<os>-<gpu>/<build>/{venv,ComfyUI}
 */
import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type FileLock, takeLock, tryLock } from '../../../lib/files/file-lock.ts'
import { treeBytes } from '../../../lib/files/file-tree.ts'
import { nullWhenMissing } from '../../../lib/files/inside-folder.ts'
import { writeFileWhole } from '../../../lib/files/write-file-whole.ts'
import type { BuiltRelease, ReleaseFolder } from '../../domain/environments/builder.ts'
import type { BuildTarget } from '../../domain/environments/definition.ts'

interface KeptRelease extends BuiltRelease {
  /** The name of its folder. */
  readonly build: string
}

const RELEASE_ID = /^[A-Za-z0-9][\w-]{0,127}$/
const MARK = 'release.json'

export class ReleaseFolders {
  readonly #releases: string
  readonly #locks: string

  constructor(root: string) {
    this.#releases = join(root, 'releases')
    this.#locks = join(root, 'locks')
  }

  lockOf(name: string): string {
    return join(this.#locks, `${name}.lock`)
  }

  /** null: it is not finished, or not there. */
  read(releaseId: string, target: BuildTarget): Promise<KeptRelease | null> {
    return readMark(this.#placeOf(releaseId, target))
  }

  async find(releaseId: string, target: BuildTarget): Promise<ReleaseFolder | null> {
    if (!RELEASE_ID.test(releaseId)) return null
    const place = this.#placeOf(releaseId, target)
    const kept = await readMark(place)
    if (kept === null) return null
    const folder = { python: pythonOf(join(place, kept.build)), comfyui: join(place, kept.build, 'ComfyUI') }
    // The Python that an environment refers to may be gone with an upgrade of the system.
    const isWhole = (await exists(folder.python)) && (await exists(join(folder.comfyui, 'main.py')))
    return isWhole ? folder : null
  }

  /** For one build of the release at a time on this machine, in whichever process. */
  async begin(releaseId: string, target: BuildTarget, signal: AbortSignal): Promise<FileLock> {
    this.#placeOf(releaseId, target)
    return takeLock(this.lockOf(`${releaseId}.${target.os}-${target.gpu}`), signal)
  }

  /** An empty folder, after everything that earlier builds left was removed. Its caller has the lock. */
  async create(releaseId: string, target: BuildTarget): Promise<{ readonly build: string; readonly folder: string }> {
    const place = this.#placeOf(releaseId, target)
    await sweep(place)
    const build = randomUUID()
    const folder = join(place, build)
    await mkdir(folder, { recursive: true })
    return { build, folder }
  }

  /** From now on it is found. */
  async publish(releaseId: string, target: BuildTarget, kept: KeptRelease): Promise<void> {
    const place = this.#placeOf(releaseId, target)
    await writeFileWhole(join(place, MARK), JSON.stringify(kept), { mode: 0o644, isDurable: true })
    await sweep(place)
  }

  discard(releaseId: string, target: BuildTarget, build: string): Promise<void> {
    return remove(join(this.#placeOf(releaseId, target), build))
  }

  /** Those that are finished. */
  async all(): Promise<readonly KeptRelease[]> {
    const found = await Promise.all((await this.#places()).map(({ place }) => readMark(place).catch(() => null)))
    return found.filter((kept) => kept !== null)
  }

  /** Removes those that are not kept, but for those that are being built just now. Resolves with the bytes that were freed. */
  async keepOnly(isKept: (releaseId: string) => Promise<boolean>, finishedBefore: Date): Promise<number> {
    let freed = 0
    for (const { releaseId, target, place } of await this.#places()) {
      using lock = tryLock(this.lockOf(`${releaseId}.${target}`))
      if (lock === null) continue
      const before = await treeBytes(place)
      const finishedAt = (await stat(join(place, MARK)).catch(nullWhenMissing))?.mtime
      const isYoung = finishedAt !== undefined && finishedAt >= finishedBefore
      if (isYoung || (await isKept(releaseId))) await sweep(place)
      else {
        // First the mark: a folder that is being removed must not be found.
        await rm(join(place, MARK), { force: true })
        await remove(place)
        await removeWhenEmpty(dirname(place))
      }
      freed += before - ((await exists(place)) ? await treeBytes(place) : 0)
    }
    return freed
  }

  async #places(): Promise<readonly { readonly releaseId: string; readonly target: string; readonly place: string }[]> {
    const places = []
    for (const releaseId of await namesIn(this.#releases))
      for (const target of await namesIn(join(this.#releases, releaseId)))
        places.push({ releaseId, target, place: join(this.#releases, releaseId, target) })
    return places
  }

  #placeOf(releaseId: string, target: BuildTarget): string {
    if (!RELEASE_ID.test(releaseId)) throw new Error('a release has an id that cannot be the name of a folder')
    return join(this.#releases, releaseId, `${target.os}-${target.gpu}`)
  }
}

async function readMark(place: string): Promise<KeptRelease | null> {
  const text = await readFile(join(place, MARK), 'utf8').catch(nullWhenMissing)
  return text === null ? null : (JSON.parse(text) as KeptRelease)
}

/** Removes all that stands there and is not the folder of the release. */
async function sweep(place: string): Promise<void> {
  const kept = await readMark(place)
  for (const name of await namesIn(place)) if (name !== MARK && name !== kept?.build) await remove(join(place, name))
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return (await readdir(folder).catch(nullWhenMissing)) ?? []
}

/** The interpreter of the environment in a build's folder. */
export function pythonOf(folder: string): string {
  return process.platform === 'win32'
    ? join(folder, 'venv', 'Scripts', 'python.exe')
    : join(folder, 'venv', 'bin', 'python')
}

/** A program of a build that was ended may still write for a moment. */
export function remove(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
}

async function removeWhenEmpty(path: string): Promise<void> {
  if ((await namesIn(path)).length === 0) await remove(path)
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(nullWhenMissing)) !== null
}
