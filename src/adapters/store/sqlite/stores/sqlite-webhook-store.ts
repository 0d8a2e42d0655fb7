/** Webhooks as the main thread sees them: every method only names its operation. */
import type { WebhookStore } from '../../../../domain/webhooks/webhook-store.ts'
import type { StoreChannels } from './store-channels.ts'

export function createWebhookStore({ write, read }: StoreChannels): WebhookStore {
  return {
    create: (endpoint, { max }) => write.call('createEndpoint', { endpoint, max }),
    list: (accountId) => read.call('listEndpoints', accountId),
    find: (accountId, id) => read.call('findEndpoint', { accountId, id }),
    change: (accountId, id, change, now) => write.call('changeEndpoint', { accountId, id, change, now }),
    remove: (accountId, id) => write.call('removeEndpoint', { accountId, id }),
    putOperatorEndpoint: (endpoint) => write.call('putEndpoint', endpoint),
    enqueue: (message) => write.call('enqueueMessage', message),
    claim: (request) => write.call('claimDeliveries', request),
    finish: async (ends) => (ends.length === 0 ? [] : write.call('finishDeliveries', ends)),
    hasPending: () => read.call('hasPendingDeliveries', null),
    deliveries: (accountId, query) => read.call('listDeliveries', { accountId, ...query }),
    delivery: (accountId, id) => read.call('findDelivery', { accountId, id }),
    replay: (accountId, id, now) => write.call('replayDelivery', { accountId, id, now }),
    replayRange: (accountId, id, range, now) => write.call('replayRange', { accountId, id, range, now }),
    backlog: (limit) => read.call('webhookBacklog', limit),
    sweep: (before, limit) => write.call('sweepDeliveries', { before, limit }),
  }
}
