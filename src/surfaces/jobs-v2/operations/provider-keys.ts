/** Keys that an account has at providers: saved, listed by their last letters, tried, removed. No answer contains one. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ServiceError } from '../../../domain/errors.ts'
import type { ProviderKeys, ShownProviderKey } from '../../../domain/models/access/manage-provider-keys.ts'
import type { KeyVerdict } from '../../../domain/models/provider.ts'
import { readJsonObject } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { needs } from '../../kit/guards/routes.ts'
import { readParameters, sendJson } from '../../kit/request.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { API_PATH } from '../views/job-view.ts'

interface ProviderKeyDeps {
  readonly contextOf: ContextOf
  readonly providerKeys: ProviderKeys
  readonly check: ContractCheck
}

const KEYS_PATH = `${API_PATH}/provider-keys`
const KEY_ROUTE = `${KEYS_PATH}/:provider`
const MAX_BODY_BYTES = 16_384

function providerOf(request: FastifyRequest): string {
  return (request.params as { readonly provider: string }).provider
}

function listProviderKeys(app: FastifyInstance, { contextOf, providerKeys }: ProviderKeyDeps): void {
  app.get(KEYS_PATH, needs('keys:write'), async (request, reply) => {
    readParameters(request.raw.url ?? '', [])
    const keys = await providerKeys.list(contextOf(request).accountId)
    return sendJson(reply, 200, { provider_keys: keys.map(toKeyView) })
  })
}

function putProviderKey(app: FastifyInstance, { contextOf, providerKeys, check }: ProviderKeyDeps): void {
  app.put(KEY_ROUTE, needs('keys:write'), async (request, reply) => {
    const body = await readJsonObject(request, { maxBytes: MAX_BODY_BYTES })
    const problem = check('ProviderKeyRequest', body, 'the request')
    if (problem !== null) throw new ServiceError('invalid_field', problem)
    const saved = await providerKeys.put(contextOf(request), providerOf(request), body['key'] as string)
    return sendJson(reply, 200, toKeyView(saved))
  })
}

function deleteProviderKey(app: FastifyInstance, { contextOf, providerKeys }: ProviderKeyDeps): void {
  app.delete(KEY_ROUTE, needs('keys:write'), async (request, reply) => {
    await providerKeys.remove(contextOf(request), providerOf(request))
    return reply.code(204).send()
  })
}

function testProviderKey(app: FastifyInstance, { contextOf, providerKeys }: ProviderKeyDeps): void {
  app.post(`${KEY_ROUTE}/test`, needs('keys:write'), async (request, reply) => {
    const provider = providerOf(request)
    const { outcome, upstreamStatus } = await providerKeys.test(contextOf(request).accountId, provider)
    const detail = TOLD[outcome](provider)
    return sendJson(reply, 200, { result: outcome, upstream_status: upstreamStatus, detail })
  })
}

export const PROVIDER_KEY_OPERATIONS = [listProviderKeys, putProviderKey, deleteProviderKey, testProviderKey]

const TOLD: Readonly<Record<KeyVerdict['outcome'], (provider: string) => string>> = {
  works: (provider) => `${provider} accepted the key; nothing was charged`,
  refused: (provider) => `your ${provider} key was refused; save another one`,
  unclear: (provider) => `${provider} could not be asked about the key now; try again later`,
  untestable: (provider) =>
    `${provider} has no request that costs nothing: the first call tells whether it takes the key`,
  unreadable: () => 'this service cannot open the key any more: its ATELIER_SECRET_KEY has changed; save the key again',
}

function toKeyView({ provider, lastFour, createdAt, changedAt, canBeUsed }: ShownProviderKey) {
  return {
    ...{ provider, last_four: lastFour, status: canBeUsed ? 'ready' : 'unreadable' },
    ...{ created_at: createdAt.toISOString(), updated_at: changedAt.toISOString() },
  }
}
