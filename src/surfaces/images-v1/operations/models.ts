/** What OpenAI's clients can call here: endpoints of the account under all their names, and models of the catalogue that take conversations or requests for pictures. */
import type { FastifyInstance } from 'fastify'
import { type Caller, hasScope, mustHaveScope } from '../../../domain/accounts/caller.ts'
import type { Endpoint } from '../../../domain/endpoints/endpoint.ts'
import type { Model } from '../../../domain/models/catalog/model.ts'
import { RouterError } from '../../../domain/models/router-error.ts'
import { needs } from '../../kit/guards/routes.ts'
import type { Door } from '../../kit/jobs/endpoint-door.ts'
import { idOf, sendJson } from '../../kit/request.ts'
import type { SurfaceParts } from '../../kit/surface-parts.ts'
import { findModel, makesPictures, modelNotFound } from '../start-images.ts'

export const MODELS_PATH = '/v1/models'

interface ModelsDeps {
  readonly parts: SurfaceParts
  readonly door: Door
}

const PAGE = 1000
// Clients of images read the list in one piece; whatever an endpoint is called further can be called, listed or not.
const MAX_MODELS = 10_000

interface ListedModel {
  readonly id: string
  readonly createdAt: Date
  readonly owner: string
}

export function listModels(app: FastifyInstance, { parts, door }: ModelsDeps): void {
  app.get(MODELS_PATH, needs('any_scope'), async (request, reply) => {
    const caller = door.contextOf(request)
    mustReach(caller)
    const found = [
      ...(hasScope(caller, 'models:run') ? await listCatalog(parts, caller) : []),
      ...(hasScope(caller, 'endpoints:run') ? await listEndpoints(parts, caller) : []),
    ]
    return sendJson(reply, 200, {
      object: 'list',
      data: found
        .slice(0, MAX_MODELS)
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .map(toModelView),
    })
  })
}

export function getModel(app: FastifyInstance, { parts, door }: ModelsDeps): void {
  app.get(`${MODELS_PATH}/:id`, needs('any_scope'), async (request, reply) => {
    const id = idOf(request)
    const caller = door.contextOf(request)
    mustReach(caller)
    const listed = hasScope(caller, 'models:run') ? await listCatalog(parts, caller) : []
    const found = listed.find((model) => model.id === id)
    if (found !== undefined) return sendJson(reply, 200, toModelView(found))
    if (!hasScope(caller, 'endpoints:run')) throw modelNotFound(id)
    const { endpoint } = await findModel(parts, caller, id)
    if (endpoint.state !== 'ready') throw modelNotFound(id)
    return sendJson(reply, 200, toModelView(ofEndpoint(id, endpoint)))
  })
}

export function mustReach(caller: Caller): void {
  if (!hasScope(caller, 'models:run')) mustHaveScope(caller, 'endpoints:run')
}

async function listEndpoints(parts: SurfaceParts, caller: Caller): Promise<ListedModel[]> {
  const models = new Map<string, Endpoint>()
  const aliases = new Map<string, Endpoint>()
  for (let after: string | null = null; ; ) {
    const page: readonly Endpoint[] = await parts.endpoints.endpoints.list(caller, { after, limit: PAGE })
    for (const endpoint of page) {
      if (endpoint.state !== 'ready' || !(await isModel(parts, endpoint))) continue
      models.set(endpoint.name, endpoint)
      for (const alias of endpoint.settings.models)
        if (aliases.size < MAX_MODELS && !aliases.has(alias)) aliases.set(alias, endpoint)
    }
    if (page.length < PAGE) break
    after = page.at(-1)?.name ?? null
  }
  return [...models, ...[...aliases].filter(([alias]) => !models.has(alias))].map(([id, endpoint]) =>
    ofEndpoint(id, endpoint),
  )
}

/** All that an account has published; of what the service offers, what makes a picture of a text. */
async function isModel(
  { endpoints: { endpoints } }: SurfaceParts,
  { name, accountId, isOfService }: Endpoint,
): Promise<boolean> {
  return isOfService !== true || makesPictures((await endpoints.resolve({ accountId, endpoints: null }, name)).version)
}

function ofEndpoint(id: string, { createdAt, accountId, isOfService }: Endpoint): ListedModel {
  return { id, createdAt, owner: isOfService === true ? 'service' : accountId }
}

/** What such clients can call and runs here for this account. */
async function listCatalog({ chat: { access } }: SurfaceParts, caller: Caller): Promise<ListedModel[]> {
  try {
    const { catalog, isVisible } = await access.catalogFor(caller)
    const found: ListedModel[] = []
    for (const model of catalog.all()) {
      if (!isCallable(model) || !isVisible(model) || (await access.whyNot(caller, model)) !== null) continue
      found.push({ id: model.id, createdAt: catalog.loadedAt, owner: model.provider })
    }
    return found
  } catch (error) {
    // An account without the router still has its endpoints.
    if (error instanceof RouterError && error.refusal === 'not_enabled') return []
    throw error
  }
}

function isCallable({ state, chat, images }: Model): boolean {
  return state === 'released' && (chat != null || images != null)
}

function toModelView({ id, createdAt, owner }: ListedModel) {
  return { id, object: 'model', created: Math.floor(createdAt.getTime() / 1000), owned_by: owner }
}
