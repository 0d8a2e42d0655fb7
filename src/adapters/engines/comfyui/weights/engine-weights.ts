/** The weights of one server, as it lists them. */
import type { WeightFile } from '../../../../domain/engine/weights/weight-files.ts'
import type { ComfyApi } from '../wire/comfy-api.ts'
import { readServerFolders, readServerWeights } from './server-weights.ts'

export interface EngineWeights {
  /** null: the server lists none. */
  list(signal: AbortSignal): Promise<readonly WeightFile[] | null>
}

export function createEngineWeights(api: Pick<ComfyApi, 'modelFolders' | 'modelFiles'>): EngineWeights {
  return {
    async list(signal) {
      const folders = await readServerFolders(api, signal)
      if (folders === null) return null
      const files = await readServerWeights(api, folders, signal)
      return files.map(({ folder, name, sizeBytes }) => ({ folder, name, sizeBytes, hash: null }))
    },
  }
}
