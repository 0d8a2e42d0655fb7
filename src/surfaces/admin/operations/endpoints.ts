/** What runs of an account's endpoints cost: prices are set by whoever runs the machines, never by the account that owns the endpoint. */
import type { FastifyInstance } from 'fastify'
import { MAX_MICROS, readUsd, writeUsd } from '../../../../lib/text/usd.ts'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import type { Endpoint, EndpointPrice } from '../../../domain/endpoints/endpoint.ts'
import type { EndpointStore } from '../../../domain/endpoints/endpoint-store.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, sendJson } from '../../kit/request.ts'
import { ADMIN_PATH, type AdminKit, readLimit, readParameters } from '../admin-operation.ts'
import { mustFindAccount } from './accounts.ts'

interface EndpointOperationDeps {
  readonly kit: AdminKit
  readonly accounts: Pick<Accounts, 'find'>
  readonly endpoints: Pick<EndpointStore, 'list'>
}

export function listAccountEndpoints(app: FastifyInstance, { accounts, endpoints }: EndpointOperationDeps): void {
  app.get(`${ADMIN_PATH}/accounts/:id/endpoints`, needs('operator'), async (request, reply) => {
    const parameters = readParameters(request, ['limit', 'after'])
    const { id } = mustFindAccount(accounts, idOf(request))
    const limit = readLimit(parameters)
    const found = await endpoints.list(id, { after: parameters.get('after') ?? null, limit: limit + 1 })
    return sendJson(reply, 200, { endpoints: found.slice(0, limit).map(toView), has_more: found.length > limit })
  })
}

interface PriceBody {
  readonly kind: 'pool' | EndpointPrice['kind']
  readonly usd?: string
  readonly max_seconds?: number
}

export function setEndpointPrice(app: FastifyInstance, { kit, accounts }: EndpointOperationDeps): void {
  app.put(`${ADMIN_PATH}/accounts/:id/endpoints/:name/price`, needs('operator'), async (request, reply) => {
    const { name } = request.params as { readonly name: string }
    const { id: accountId } = mustFindAccount(accounts, idOf(request))
    const body = await kit.readBody<PriceBody>(request, 'EndpointPriceChange')
    const price = readPrice(body)
    const change = { action: 'endpoint.price', subject: accountId, details: { endpoint: name, ...body } }
    const { endpointPrices } = kit.audited(request, change)
    const changed = await endpointPrices.setPrice({ accountId, name }, price, kit.clock.now())
    if (changed === null) throw new ServiceError('not_found', 'the account has no endpoint with this name')
    return sendJson(reply, 200, toView(changed))
  })
}

/** null: what its pool costs. */
function readPrice({ kind, usd, max_seconds: maxSeconds }: PriceBody): EndpointPrice | null {
  const isPlain = kind === 'pool' || kind === 'free'
  if (isPlain && usd !== undefined) throw invalidField('usd', `must be left out for ${kind}`)
  if ((kind === 'per_second') !== (maxSeconds !== undefined))
    throw invalidField('max_seconds', 'must be given for per_second, and for nothing else')
  if (kind === 'pool') return null
  if (kind === 'free') return { kind }
  const micros = readUsd(usd ?? '')
  if (micros === null || micros <= 0 || micros * (maxSeconds ?? 1) > MAX_MICROS)
    throw invalidField('usd', 'must be an amount in US dollars above zero, such as 0.02')
  return maxSeconds === undefined ? { kind: 'per_run', micros } : { kind: 'per_second', micros, maxSeconds }
}

function toView({ name, title, state, settings: { price } }: Endpoint) {
  return { name, title, state, price: price === null ? { kind: 'pool' } : toPriceView(price) }
}

function toPriceView(price: EndpointPrice) {
  if (price.kind === 'free') return { kind: price.kind }
  const usd = writeUsd(price.micros)
  return price.kind === 'per_run' ? { kind: price.kind, usd } : { kind: price.kind, usd, max_seconds: price.maxSeconds }
}
