/** The catalogue: its pages, its entries, and the contracts of the surface and of each model. */
import type { FastifyInstance } from 'fastify'
import type { Access } from '../../../domain/models/access/model-access.ts'
import type { Model } from '../../../domain/models/catalog/model.ts'
import { toEtag } from '../../kit/content/etag.ts'
import { needs } from '../../kit/guards/rights.ts'
import { type ListCursors, readListQuery } from '../requests/model-list-query.ts'
import { type ContextOf, MODEL_ROUTE, MODELS_PATH, type ModelParams, sendCached } from '../router-operation.ts'
import { type ModelDocument, toModelDetail, toModelEntry } from '../views/model-view.ts'

interface ModelsDeps {
  readonly contextOf: ContextOf
  readonly access: Pick<Access, 'catalogFor' | 'find'>
  readonly cursors: ListCursors
  /** The contract of this surface with this base as its only server. */
  readonly documentFor: (baseUrl: string) => string
  readonly documentOf: (model: Model) => ModelDocument
}

/** A page of the catalogue, in the order of ids. */
function listModels(app: FastifyInstance, { contextOf, access, cursors }: ModelsDeps): void {
  app.get(MODELS_PATH, needs('models:read'), async (request, reply) => {
    const { caller } = contextOf(request)
    const { catalog, isVisible } = await access.catalogFor(caller)
    const { limit, cursor } = readListQuery(request.raw.url ?? '')
    const after = cursor === null ? null : cursors.read(cursor)
    const { models, hasMore } = catalog.page(after, limit, isVisible)
    const data = models.map(toModelEntry)
    // The tag covers what the page shows, without the cursor, which is made anew for every answer.
    const page = { data, has_more: hasMore, limit }
    const last = models.at(-1)
    const next = hasMore && last !== undefined ? { next_cursor: cursors.encode(last.id) } : {}
    return sendCached(request, reply, JSON.stringify({ ...page, ...next }), toEtag(JSON.stringify(page)))
  })
}

/** With the address at which this caller reached us. */
function getRouterOpenapi(app: FastifyInstance, { contextOf, documentFor }: ModelsDeps): void {
  app.get(`${MODELS_PATH}/openapi.json`, needs('models:read'), (request, reply) =>
    sendCached(request, reply, documentFor(contextOf(request).baseUrl)),
  )
}

function getModel(app: FastifyInstance, { contextOf, access }: ModelsDeps): void {
  app.get<{ Params: ModelParams }>(MODEL_ROUTE, needs('models:read'), async (request, reply) => {
    const { caller, baseUrl } = contextOf(request)
    const { model } = await access.find(caller, request.params.provider, request.params.model)
    return sendCached(request, reply, JSON.stringify(toModelDetail(model, baseUrl)))
  })
}

function getModelOpenapi(app: FastifyInstance, { contextOf, access, documentOf }: ModelsDeps): void {
  app.get<{ Params: ModelParams }>(`${MODEL_ROUTE}/openapi.json`, needs('models:read'), async (request, reply) => {
    const { caller } = contextOf(request)
    const { model } = await access.find(caller, request.params.provider, request.params.model)
    const { bytes, etag } = documentOf(model)
    return sendCached(request, reply, bytes, etag)
  })
}

export const MODEL_OPERATIONS = [listModels, getRouterOpenapi, getModel, getModelOpenapi]
