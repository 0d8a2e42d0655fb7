/** The files of weights that a server lists, folder by folder. Servers that list none, or only some, are as good as any. */

import { resolve } from 'node:path'
import { isJsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import { MAX_WEIGHT_FILES, type WeightFile } from '../../../../domain/engine/weights/weight-files.ts'
import { FOLDERS_WITHOUT_WEIGHTS } from '../../../../domain/workflows/model-folders.ts'
import { isWeights } from '../../../../domain/workflows/needs.ts'
import type { ComfyApi } from '../wire/comfy-api.ts'
import { createHashFinder } from './drafts.ts'

/** A folder of models by its name, and the folders of the server's disk that it stands for, the first one for new files. */
export interface ServerFolder {
  readonly name: string
  readonly paths: readonly string[]
}

/** A file, and which of its folder's paths it lies in. */
interface ServerWeight extends Omit<WeightFile, 'hash'> {
  readonly folder: string
  readonly path: string | null
}

// ComfyUI has about 25, and nodes of other authors add theirs.
const MAX_FOLDERS = 256
const MAX_NAME = 1024

type ModelApi = Pick<ComfyApi, 'modelFolders' | 'modelFiles'>

/** null: the server does not list its folders. */
async function readServerFolders(api: ModelApi, signal: AbortSignal): Promise<readonly ServerFolder[] | null> {
  const told = await api.modelFolders({ signal })
  return told === null ? null : told.slice(0, MAX_FOLDERS).flatMap(readFolder)
}

function readFolder(told: JsonValue): ServerFolder[] {
  if (!isJsonObject(told) || typeof told.name !== 'string' || told.name.length > MAX_NAME) return []
  if (FOLDERS_WITHOUT_WEIGHTS.includes(told.name)) return []
  const paths = Array.isArray(told.folders) ? told.folders.filter((path) => typeof path === 'string') : []
  return [{ name: told.name, paths }]
}

async function readServerWeights(
  api: ModelApi,
  folders: readonly ServerFolder[],
  signal: AbortSignal,
): Promise<readonly ServerWeight[]> {
  const files: ServerWeight[] = []
  for (const folder of folders) {
    const told = (await api.modelFiles(folder.name, { signal })) ?? []
    for (const file of told) {
      if (files.length === MAX_WEIGHT_FILES) return files
      files.push(...readFile(file, folder))
    }
  }
  return files
}

function readFile(told: JsonValue, { name: folder, paths }: ServerFolder): ServerWeight[] {
  if (!isJsonObject(told)) return []
  const { name, size, pathIndex } = told
  if (typeof name !== 'string' || name.length > MAX_NAME || !isWeights(name)) return []
  const sizeBytes = typeof size === 'number' && Number.isSafeInteger(size) && size >= 0 ? size : null
  return [{ folder, name, sizeBytes, path: typeof pathIndex === 'number' ? (paths[pathIndex] ?? null) : null }]
}

/** The weights of one server, with what we know of them: the hashes of those that were put there by us. */
interface EngineWeightsDeps {
  readonly api: Pick<ComfyApi, 'modelFolders' | 'modelFiles'>
  /** The working directory of a server that we started; null: its disk is not ours to look at. */
  readonly startedIn: string | null
}

export interface EngineWeights {
  /** null: the server lists none. */
  list(signal: AbortSignal): Promise<readonly WeightFile[] | null>
  /** As it said last, with full paths, so that a server which is busy or restarting need not be asked; null: it lists none. */
  folders(): Promise<readonly ServerFolder[] | null>
}

const ASK_WITHIN_MS = 10_000

export function createEngineWeights({ api, startedIn }: EngineWeightsDeps): EngineWeights {
  let latest: readonly ServerFolder[] | null = null

  async function readFolders(signal: AbortSignal): Promise<readonly ServerFolder[] | null> {
    const told = await readServerFolders(api, signal)
    latest =
      told === null || startedIn === null
        ? told
        : told.map(({ name, paths }) => ({ name, paths: paths.map((path) => resolve(startedIn, path)) }))
    return latest
  }

  return {
    folders: async () => latest ?? readFolders(AbortSignal.timeout(ASK_WITHIN_MS)).catch(() => null),
    async list(signal) {
      const folders = await readFolders(signal)
      if (folders === null) return null
      const findHash = createHashFinder()
      const files: WeightFile[] = []
      for (const { folder, name, sizeBytes, path } of await readServerWeights(api, folders, signal)) {
        const hash = startedIn === null || path === null ? null : await findHash(path, name)
        files.push({ folder, name, sizeBytes, hash })
      }
      return files
    },
  }
}
