/**
 * Webhooks. A claim may be lost with the server's machine: then the message is sent once more, as after every lapsed lease. What came of
 * a try is durable.
 */
import type { WebhookStore } from '../../../../domain/webhooks/webhook-store.ts'
import { claimDeliveries, enqueueMessage, finishDelivery, hasPending } from '../operations/webhooks/claim-deliveries.ts'
import {
  changeEndpoint,
  createEndpoint,
  findEndpoint,
  listEndpoints,
  putEndpoint,
  removeEndpoint,
} from '../operations/webhooks/endpoint-rows.ts'
import {
  countBacklog,
  findDelivery,
  listDeliveries,
  replayDelivery,
  replayRange,
  sweepDeliveries,
} from '../operations/webhooks/read-deliveries.ts'
import type { StoreParts } from './store-parts.ts'

export function createWebhookStore({ durable, relaxed, read, chore }: StoreParts): WebhookStore {
  return {
    create: (endpoint, { max }) => durable.transaction((tx) => createEndpoint(tx, endpoint, max)),
    list: (accountId) => listEndpoints(read, accountId),
    find: (accountId, id) => findEndpoint(read, accountId, id),
    change: (accountId, id, change, now) =>
      durable.transaction((tx) => changeEndpoint(tx, { accountId, id }, change, now)),
    remove: (accountId, id) => durable.transaction((tx) => removeEndpoint(tx, accountId, id)),
    putOperatorEndpoint: (endpoint) => durable.transaction((tx) => putEndpoint(tx, endpoint), { isRepeatable: true }),
    enqueue: (message) => durable.transaction((tx) => enqueueMessage(tx, message), { isRepeatable: true }),
    // Repeated, it takes others: those of the first time come back when their lease lapses.
    claim: (request) => relaxed.transaction((tx) => claimDeliveries(tx, request)),
    async finish(ends) {
      const disabled = ends.map((end) => durable.transaction((tx) => finishDelivery(tx, end), { isRepeatable: true }))
      return (await Promise.all(disabled)).flat()
    },
    hasPending: () => hasPending(read),
    deliveries: (accountId, query) => listDeliveries(read, accountId, query),
    delivery: (accountId, id) => findDelivery(read, accountId, id),
    replay: (accountId, id, now) => durable.transaction((tx) => replayDelivery(tx, { accountId, id, now })),
    replayRange: (accountId, id, range, now) =>
      durable.transaction((tx) => replayRange(tx, { accountId, id }, range, now)),
    backlog: (limit) => countBacklog(read, limit),
    sweep: (before, limit) => chore.transaction((tx) => sweepDeliveries(tx, before, limit)),
  }
}
