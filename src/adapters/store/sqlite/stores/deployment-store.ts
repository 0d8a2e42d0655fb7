import type { DeploymentStore } from '../../../../domain/deployments/deployment-store.ts'
import type { StoreChannels } from './store-channels.ts'

export function createDeploymentStore({ write, read }: StoreChannels): DeploymentStore {
  return {
    create: (deployment) => write.call('createDeployment', deployment),
    move: (move) => write.call('moveDeployment', move),
    configure: (settings) => write.call('configureDeployment', settings),
    list: () => read.call('listDeployments', null),
    loads: async (pools) => (pools.length === 0 ? [] : read.call('poolLoads', pools)),
  }
}
