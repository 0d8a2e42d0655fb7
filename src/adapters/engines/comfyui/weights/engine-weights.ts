/** The weights of one server, with what we know of them: the hashes of those that were put there by us. */
import { resolve } from 'node:path'
import type { WeightFile } from '../../../../domain/engine/weights/weight-files.ts'
import type { ComfyApi } from '../wire/comfy-api.ts'
import { createHashFinder } from './hash-book.ts'
import { readServerFolders, readServerWeights, type ServerFolder } from './server-weights.ts'

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
