/**
 * Takes files of ours away from a server, as far as it can be asked to: through its asset store, from its folders where its
 * process is ours, and otherwise by writing nothing over them, which leaves a name without bytes: ComfyUI has no other way to
 * remove a file. Nothing here ever fails a run.
 */
import { rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Log } from '../../../../../lib/log.ts'
import type { ComfyApi, FilePlace } from '../wire/comfy-api.ts'

export interface LeftFile extends FilePlace {
  /** In the server's asset store. */
  readonly assetId?: string | null
}

export interface Remover {
  /** A folder of one attempt within the output folder, and the files in it that are known. */
  removeFolder(folder: string, files: readonly LeftFile[]): Promise<void>
  removeFile(file: LeftFile): Promise<void>
  /** The process behind the server may be another one. */
  forget(): void
}

export interface RemoverDeps {
  readonly api: Pick<ComfyApi, 'deleteAsset' | 'emptyFile' | 'systemStats'>
  readonly log: Log
  /** Where a server of ours was started; null: it is somebody else's, perhaps on another machine. */
  readonly startedIn: string | null
}

/** What a form cannot say about a file without the server taking it for another name. */
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

  /** False: it is not there, so the folder is not what it was taken for. */
  async function removeLocally(path: string): Promise<boolean> {
    const isThere = await stat(path).then(
      () => true,
      () => false,
    )
    if (isThere) await rm(path, { recursive: true, force: true })
    return isThere
  }

  async function tryFolder(folder: string, files: readonly LeftFile[]): Promise<void> {
    const local = await localFolders()
    const isGone = local !== null && (await removeLocally(join(local.output, folder)))
    if (!isGone) for (const file of files) await empty(file)
  }

  async function tryFile(file: LeftFile): Promise<void> {
    if (file.assetId != null) return api.deleteAsset(file.assetId)
    const local = file.folder === 'temp' ? null : await localFolders()
    const root = local === null || file.folder === 'temp' ? null : local[file.folder]
    if (root === null || !(await removeLocally(join(root, file.subfolder, file.filename)))) await empty(file)
  }

  async function empty(place: FilePlace): Promise<void> {
    if (canEmpty && !UNSENDABLE.test(place.filename)) canEmpty = await api.emptyFile(place)
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

/** As ComfyUI finds them from its command line. null: it does not tell its command line. */
export function foldersOf(words: readonly string[], startedIn: string): Folders | null {
  const [main] = words
  if (main === undefined) return null
  const wordBehind = (flag: string): string | null => {
    const at = words.findIndex((word) => word === flag || word.startsWith(`${flag}=`))
    const word = words[at]
    if (word === undefined) return null
    return word === flag ? (words[at + 1] ?? null) : word.slice(flag.length + 1)
  }
  const base = resolve(startedIn, wordBehind('--base-directory') ?? dirname(main))
  return {
    output: resolve(startedIn, wordBehind('--output-directory') ?? join(base, 'output')),
    input: resolve(startedIn, wordBehind('--input-directory') ?? join(base, 'input')),
  }
}
