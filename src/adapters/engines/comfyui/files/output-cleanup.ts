/**
 * Removes what a run saved into its folder on a server once that is safe: when the run is over (a later node may read what an
 * earlier one saved), and every reported file was released or will not be read any more. Files in the server's asset store are
 * removed at once, others a while later and together.
 */
import { rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Log } from '../../../../../lib/log.ts'
import type { ComfyApi, FileLocation } from '../wire/comfy-api.ts'

interface OutputCleanupDeps {
  readonly remover: Remover
  /** Within the output folder. Nothing outside of it is removed. */
  readonly folder: string
  /** How long after the last file was released. */
  readonly removeAfterMs: number
  /** After this time, files that were not released count as given up. */
  readonly giveUpAfterMs: number
  /** Aborted when the engine closes: then everything that may be removed is removed at once. */
  readonly closing: AbortSignal
}

export class OutputCleanup {
  readonly #deps: OutputCleanupDeps
  readonly #own = new Map<string, ServerFile>()
  readonly #assets = new Map<string, ServerFile>()
  /** How often a file was reported and not released yet: two nodes may report the same one. */
  readonly #unreleased = new Map<string, number>()
  readonly #removed = new Set<string>()
  #isOver = false
  #timer: NodeJS.Timeout | null = null
  readonly #onClosing = () => this.#removeNow()

  constructor(deps: OutputCleanupDeps) {
    this.#deps = deps
  }

  /** A file that is going to be read. */
  reported(file: ServerFile): void {
    const key = keyOf(file)
    if (file.assetId != null) this.#assets.set(key, file)
    else if (this.#isOwn(file)) this.#own.set(key, file)
    else return
    this.#unreleased.set(key, (this.#unreleased.get(key) ?? 0) + 1)
  }

  /** What is read from now on may be the rest of a removal: a server that cannot remove a file has it emptied. */
  isRemoved(file: ServerFile): boolean {
    return this.#removed.has(keyOf(file))
  }

  /** Its bytes are kept elsewhere by now, or not wanted. Never rejects. */
  async released(file: ServerFile): Promise<void> {
    const key = keyOf(file)
    const left = (this.#unreleased.get(key) ?? 1) - 1
    if (left > 0) this.#unreleased.set(key, left)
    else this.#unreleased.delete(key)
    if (!this.#isOver) return
    this.#removeLater()
    await this.#removeAssets()
  }

  /** The run is over, so nothing more is saved. Never rejects. */
  async runEnded(): Promise<void> {
    this.#isOver = true
    this.#removeLater()
    await this.#removeAssets()
  }

  #isOwn(file: ServerFile): boolean {
    return file.folder === 'output' && isWithin(file.subfolder, this.#deps.folder)
  }

  async #removeAssets(): Promise<void> {
    for (const [key, file] of this.#assets) {
      if (this.#unreleased.has(key)) continue
      this.#assets.delete(key)
      this.#removed.add(key)
      await this.#deps.remover.removeFile(file)
    }
  }

  #removeLater(): void {
    const { closing, removeAfterMs, giveUpAfterMs } = this.#deps
    if (this.#own.size === 0) return
    this.#stopWaiting()
    if (closing.aborted) {
      this.#removeNow()
      return
    }
    closing.addEventListener('abort', this.#onClosing)
    this.#timer = setTimeout(() => this.#removeNow(), this.#unreleased.size === 0 ? removeAfterMs : giveUpAfterMs)
  }

  #stopWaiting(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#deps.closing.removeEventListener('abort', this.#onClosing)
  }

  #removeNow(): void {
    const { closing, remover, folder } = this.#deps
    this.#stopWaiting()
    // When the engine closes, files that are still being read stay.
    const isDone = this.#unreleased.size === 0 || !closing.aborted
    if (isDone && this.#own.size > 0) {
      for (const key of this.#own.keys()) this.#removed.add(key)
      void remover.removeFolder(folder, [...this.#own.values()])
    }
    this.#own.clear()
  }
}

function isWithin(subfolder: string, folder: string): boolean {
  return (subfolder === folder || subfolder.startsWith(`${folder}/`)) && !subfolder.split('/').includes('..')
}

function keyOf({ folder, subfolder, filename }: ServerFile): string {
  return `${folder}\n${subfolder}\n${filename}`
}

/**
 * Removes files of ours from a server as far as it allows that: through its asset store, from its folders where we started its
 * process, and otherwise by uploading an empty file in their place, since ComfyUI has no call that removes a file. Nothing here
 * ever fails a run.
 */
interface ServerFile extends FileLocation {
  /** Its id in the server's asset store, if it is there. */
  readonly assetId?: string | null
}

export interface Remover {
  /** Removes the folder of one attempt within the output folder; `files` are those in it that are known. */
  removeFolder(folder: string, files: readonly ServerFile[]): Promise<void>
  removeFile(file: ServerFile): Promise<void>
  /** Another process may run behind the address: what was learnt about it no longer counts. */
  forget(): void
}

interface RemoverDeps {
  readonly api: Pick<ComfyApi, 'deleteAsset' | 'emptyFile' | 'systemStats'>
  readonly log: Log
  /** The working directory of a server that we started; null: we did not, and it may be on another machine. */
  readonly startedIn: string | null
}

/** Characters in a name that a form cannot carry without the server reading another name. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNSENDABLE = /["\\\u0000-\u001f]/

type Folders = Readonly<Record<'output' | 'input', string>>

export function createRemover({ api, log, startedIn }: RemoverDeps): Remover {
  let folders: Promise<Folders | null> | null = null
  let canEmpty = true

  function localFolders(): Promise<Folders | null> {
    if (startedIn === null) return Promise.resolve(null)
    folders ??= api.systemStats({}).then(
      (stats) => foldersOf(readArguments(stats), startedIn),
      () => null,
    )
    return folders
  }

  /** False: it does not exist, so the server's folder is not where we think. */
  async function removeLocally(path: string): Promise<boolean> {
    const isThere = await stat(path).then(
      () => true,
      () => false,
    )
    if (isThere) await rm(path, { recursive: true, force: true })
    return isThere
  }

  async function tryFolder(folder: string, files: readonly ServerFile[]): Promise<void> {
    const local = await localFolders()
    const isGone = local !== null && (await removeLocally(join(local.output, folder)))
    if (!isGone) for (const file of files) await empty(file)
  }

  async function tryFile(file: ServerFile): Promise<void> {
    if (file.assetId != null) return api.deleteAsset(file.assetId)
    const local = file.folder === 'temp' ? null : await localFolders()
    const root = local === null || file.folder === 'temp' ? null : local[file.folder]
    if (root === null || !(await removeLocally(join(root, file.subfolder, file.filename)))) await empty(file)
  }

  async function empty(location: FileLocation): Promise<void> {
    if (canEmpty && !UNSENDABLE.test(location.filename)) canEmpty = await api.emptyFile(location)
  }

  const quietly = (work: Promise<void>) => work.catch((error) => log.debug({ err: error }, 'files stay on an engine'))

  return {
    removeFolder: (folder, files) => quietly(tryFolder(folder, files)),
    removeFile: (file) => quietly(tryFile(file)),
    forget() {
      folders = null
      canEmpty = true
    },
  }
}

function readArguments(stats: Awaited<ReturnType<ComfyApi['systemStats']>>): string[] {
  const system = stats?.system
  const told = typeof system === 'object' && system !== null && 'argv' in system ? system.argv : null
  return Array.isArray(told) ? told.filter((word) => typeof word === 'string') : []
}

/** The folders as ComfyUI derives them from its command line. null: the command line is not known. */
export function foldersOf(words: readonly string[], startedIn: string): Folders | null {
  const [main] = words
  if (main === undefined) return null
  const valueAfter = (flag: string): string | null => {
    const at = words.findIndex((word) => word === flag || word.startsWith(`${flag}=`))
    const word = words[at]
    if (word === undefined) return null
    return word === flag ? (words[at + 1] ?? null) : word.slice(flag.length + 1)
  }
  const base = resolve(startedIn, valueAfter('--base-directory') ?? dirname(main))
  return {
    output: resolve(startedIn, valueAfter('--output-directory') ?? join(base, 'output')),
    input: resolve(startedIn, valueAfter('--input-directory') ?? join(base, 'input')),
  }
}
