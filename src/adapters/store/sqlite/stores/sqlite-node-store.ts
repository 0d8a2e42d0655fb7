/** The processes of the service on SQLite, as the main thread sees them. */
import type { NodeStore } from '../../../../domain/service-nodes/node-store.ts'
import { toBeatInput } from '../operations/nodes/node-rows.ts'
import type { StoreChannels } from './store-channels.ts'

export function createNodeStore({ write, read }: StoreChannels): NodeStore {
  return {
    // Its time is that of this machine.
    beat: async (beat) => ({ time: null, held: await write.call('beatNode', toBeatInput(beat)) }),
    leave: (nodeId) => write.call('leaveNode', nodeId),
    list: () => read.call('listNodes', null),
    holdings: (now) => read.call('nodeHoldings', now.getTime()),
    forgetNodes: (deadBefore) => write.call('forgetNodes', deadBefore.getTime()),
  }
}
