/** The processes of the service on SQLite, as the main thread sees them. */
import type { NodeStore } from '../../../../domain/service-nodes/node-store.ts'
import { toBeatInput } from '../operations/nodes/node-rows.ts'
import type { StoreChannels } from './store-channels.ts'

export function createNodeStore({ write, read }: StoreChannels): NodeStore {
  return {
    beat: (beat) => write.call('beatNode', toBeatInput(beat)),
    leave: (nodeId) => write.call('leaveNode', nodeId),
    list: () => read.call('listNodes', null),
    takeSingleton: ({ name, nodeId, now, until }) =>
      write.call('takeSingleton', { name, nodeId, now: now.getTime(), until: until.getTime() }),
    holdings: (now) => read.call('nodeHoldings', now.getTime()),
    forgetNodes: (deadBefore) => write.call('forgetNodes', deadBefore.getTime()),
  }
}
