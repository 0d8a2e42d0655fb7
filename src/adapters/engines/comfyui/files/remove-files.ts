/**
 * Removes files of ours from a server as far as it allows that: through its asset store, from its folders where we started its
 * process, and otherwise by uploading an empty file in their place, since ComfyUI has no call that removes a file. Nothing here
 * ever fails a run.
 */
import { rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Log } from '../../../../../lib/log.ts'
import type { ComfyApi, FileLocation } from '../wire/comfy-api.ts'

export interface ServerFile extends FileLocation {
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
