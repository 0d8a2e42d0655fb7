/** The engines of a service on SQLite, as the main thread sees them. */
import type { EngineRegistry } from '../../../../domain/engine/directory/engine-registry.ts'
import { toPublishInput } from '../operations/nodes/engine-rows.ts'
import type { StoreChannels } from './store-channels.ts'

export function createEngineRegistry({ write, read }: StoreChannels): EngineRegistry {
  return {
    publish: (publication) => write.call('publishEngines', toPublishInput(publication)),
    leave: (nodeId) => write.call('leaveEngines', nodeId),
    list: () => read.call('listEngines', null),
    setWill: (engineId, will) => write.call('setEngineWill', { engineId, will }),
    putCatalog: (hash, text) => write.call('putCatalog', { hash, text }, text.length),
    async findCatalogs(hashes) {
      return new Map(hashes.length === 0 ? [] : await read.call('findCatalogs', hashes))
    },
    async measureCatalogs(hashes) {
      return new Map(hashes.length === 0 ? [] : await read.call('measureCatalogs', hashes))
    },
    forget: ({ sharedBefore, ownBefore, engineIds = [] }) =>
      write.call('forgetEngines', {
        ...{ sharedBefore: sharedBefore.getTime(), ownBefore: ownBefore.getTime(), engineIds },
      }),
  }
}
