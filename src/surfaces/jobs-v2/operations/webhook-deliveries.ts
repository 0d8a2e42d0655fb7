/** What was sent to the webhooks of an account, what came of it, and the same once more. */
import type { FastifyInstance } from 'fastify'
import { invalidField } from '../../../domain/errors.ts'
import { DELIVERY_STATES, type DeliveryState } from '../../../domain/webhooks/webhook.ts'
import { needs } from '../../kit/guards/rights.ts'
import { readParameters } from '../../kit/request-url.ts'
import { sendJson } from '../../kit/send-json.ts'
import { toAttemptView, toDeliveryView } from '../views/webhook-view.ts'
import { idOf, WEBHOOKS_PATH, type WebhookDeps } from './webhooks.ts'

const DELIVERIES_PATH = `${WEBHOOKS_PATH}/deliveries`
const MAX_LIMIT = 100
const DEFAULT_LIMIT = 20

function listWebhookDeliveries(app: FastifyInstance, { contextOf, webhooks }: WebhookDeps): void {
  app.get(DELIVERIES_PATH, needs('jobs:read'), async (request, reply) => {
    const query = readParameters(request.raw.url ?? '', ['webhook_id', 'job_id', 'status', 'before', 'limit'])
    const [endpointId, subject, before] = [query.get('webhook_id'), query.get('job_id'), query.get('before')]
    const state = readState(query.get('status'))
    const limit = readLimit(query.get('limit'))
    const found = await webhooks.deliveries(contextOf(request).accountId, {
      limit: limit + 1,
      ...(endpointId !== undefined && { endpointId }),
      ...(subject !== undefined && { subject }),
      ...(state !== undefined && { state }),
      ...(before !== undefined && { before }),
    })
    const page = found.slice(0, limit)
    const next = found.length > limit ? (page.at(-1)?.id ?? null) : null
    return sendJson(reply, 200, { deliveries: page.map(toDeliveryView), next })
  })
}

function getWebhookDelivery(app: FastifyInstance, { contextOf, webhooks }: WebhookDeps): void {
  app.get(`${DELIVERIES_PATH}/:id`, needs('jobs:read'), async (request, reply) => {
    const { delivery, attempts } = await webhooks.delivery(contextOf(request).accountId, idOf(request))
    return sendJson(reply, 200, { ...toDeliveryView(delivery), attempt_list: attempts.map(toAttemptView) })
  })
}

function replayWebhookDelivery(app: FastifyInstance, { contextOf, webhooks }: WebhookDeps): void {
  app.post(`${DELIVERIES_PATH}/:id/replay`, needs('jobs:write'), async (request, reply) =>
    sendJson(reply, 202, toDeliveryView(await webhooks.replay(contextOf(request).accountId, idOf(request)))),
  )
}

export const DELIVERY_OPERATIONS = [listWebhookDeliveries, getWebhookDelivery, replayWebhookDelivery]

function readState(text: string | undefined): DeliveryState | undefined {
  if (text === undefined) return undefined
  const state = DELIVERY_STATES.find((each) => each === text)
  if (state === undefined) throw invalidField('status', `must be one of ${DELIVERY_STATES.join(', ')}`)
  return state
}

function readLimit(text: string | undefined): number {
  const limit = text === undefined ? DEFAULT_LIMIT : Number(text)
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT) return limit
  throw invalidField('limit', `must be an integer from 1 to ${MAX_LIMIT}`)
}
