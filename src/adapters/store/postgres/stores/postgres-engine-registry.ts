/** The engines of a service on Postgres. */
import type { EngineRegistry } from '../../../../domain/engine/directory/engine-registry.ts'
import {
  findCatalogs,
  forgetEngines,
  leaveEngines,
  listEngines,
  measureCatalogs,
  publishEngines,
  putCatalog,
  setEngineWill,
} from '../operations/nodes/engine-rows.ts'
import type { StoreParts } from './store-parts.ts'

export function createEngineRegistry({ durable, relaxed, read, chore }: StoreParts): EngineRegistry {
  return {
    publish: async (publication) => (publication.engines.length === 0 ? [] : publishEngines(relaxed, publication)),
    leave: (nodeId) => leaveEngines(relaxed, nodeId),
    list: () => listEngines(read),
    setWill: (engineId, will) => setEngineWill(durable, engineId, will),
    putCatalog: (hash, text) => putCatalog(durable, hash, text),
    async findCatalogs(hashes) {
      return new Map(hashes.length === 0 ? [] : await findCatalogs(read, hashes))
    },
    async measureCatalogs(hashes) {
      return new Map(hashes.length === 0 ? [] : await measureCatalogs(read, hashes))
    },
    forget: (options) => chore.transaction((tx) => forgetEngines(tx, options)),
  }
}
