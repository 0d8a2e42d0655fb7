/** The catalogue: its pages, its entries, and the contracts of the surface and of each model. */

import { hash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../../../lib/clock.ts'
import type { Access } from '../../../domain/models/access/model-access.ts'
import type { Json, JsonRecord, Model } from '../../../domain/models/catalog/model.ts'
import { RouterError } from '../../../domain/models/router-error.ts'
import { toEtag } from '../../kit/content/send-content.ts'
import { createCursorSeal } from '../../kit/cursor.ts'
import { needs } from '../../kit/guards/routes.ts'
import { readQuery } from '../../kit/request.ts'
import { type ContextOf, MODEL_ROUTE, MODELS_PATH, type ModelParams, sendCached } from '../router-operation.ts'

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
    const { page: readPage } = await access.catalogFor(caller)
    const { limit, cursor } = readListQuery(request.raw.url ?? '')
    const after = cursor === null ? null : cursors.read(cursor)
    const { models, hasMore } = await readPage(after, limit)
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

/**
 * `limit` and `cursor` of the model list. A limit is corrected, never refused, as long as it is a number. Cursors are opaque,
 * signed and good for one walk. A cursor names the last id of its page, so that a catalogue which changes meanwhile repeats
 * nothing; one that we did not make, or made long ago, is refused.
 */
interface ListQuery {
  readonly limit: number
  readonly cursor: string | null
}

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100
const WHOLE = /^-?\d+$/

function readListQuery(url: string): ListQuery {
  const pairs = readQuery(url)
  if (pairs === null) throw new RouterError('malformed', 'the query cannot be read')
  const values = new Map(pairs)
  return { limit: readLimit(values.get('limit')), cursor: readCursor(values.get('cursor')) }
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT
  if (!WHOLE.test(text)) throw new RouterError('malformed', 'limit must be a whole number')
  const limit = Number(text)
  return limit <= 0 ? DEFAULT_LIMIT : Math.min(limit, MAX_LIMIT)
}

function readCursor(text: string | undefined): string | null {
  if (text === '') throw new RouterError('malformed', 'cursor is empty; leave it out to begin the list')
  return text ?? null
}

interface ListCursors {
  encode(lastId: string): string
  /** Throws malformed. */
  read(cursor: string): string
}

const LIFE_MS = 24 * 60 * 60 * 1000

export function createListCursors(secret: Uint8Array, clock: Clock): ListCursors {
  // Another list's cursors are signed with the same secret: a cursor says what it belongs to.
  const { seal, open } = createCursorSeal(secret)
  return {
    encode: (lastId) => seal(JSON.stringify(['models', clock.now().getTime(), lastId])),
    read(cursor) {
      const content = open(cursor)
      const [list, madeAt, lastId] = content === null ? [] : (JSON.parse(content) as [string, number, string])
      if (list !== 'models' || madeAt === undefined || lastId === undefined) {
        throw new RouterError('malformed', 'cursor was not issued by this service; begin again at the first page')
      }
      if (clock.now().getTime() - madeAt > LIFE_MS) {
        throw new RouterError('malformed', 'cursor has expired; begin again at the first page')
      }
      return lastId
    },
  }
}

// A model as callers see it: its entry in the catalogue, and its schemas as a standalone OpenAPI document.

const URL_MAX_LENGTH = 2048

/** Billing facts only, never prices. */
function toModelEntry(entry: Model): object {
  const { id, provider, model, chargesOnPolicyRejection, isPriceConfirmed } = entry
  const billing = { charges_on_policy_rejection: chargesOnPolicyRejection }
  return { id, provider, model, billing, price_confirmed: isPriceConfirmed !== false }
}

/** The schema's address is promised to be HTTPS: where we are reached otherwise, or there is no schema, it is left out. */
function toModelDetail(model: Model, baseUrl: string): object {
  const url = `${baseUrl}${MODELS_PATH}/${model.id}/openapi.json`
  const isShown = model.input.schema !== null && url.startsWith('https://') && url.length <= URL_MAX_LENGTH
  const source = model.priceSource ?? null
  const detail = { ...toModelEntry(model), ...(source !== null && { price_source: source }) }
  return isShown ? { ...detail, input_schema_url: url } : detail
}

interface ModelDocument {
  readonly bytes: Buffer
  readonly etag: string
}

const ANY_OBJECT: JsonRecord = { type: 'object', additionalProperties: true }
const BYTES: JsonRecord = { type: 'string', format: 'binary' }
const DESCRIPTION =
  'The native input and output of one model. The input is forwarded to the provider unchanged, and its answer is returned unchanged.'
const SECURITY_SCHEMES: JsonRecord = {
  ApiKeyAuth: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
  BearerAuth: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
}
const VERSION_LENGTH = 12

interface DocumentOptions {
  readonly brands: readonly string[]
  /** Whether this service asks for credentials. */
  readonly needsCredentials: boolean
  /** Who may serve a model besides its own provider. */
  readonly alternatesOf: (modelId: string) => readonly Model[]
}

/**
 * The schemas that a document shows are those that are enforced, and it says so where none are. Made once per model: the same
 * bytes and the same tag for everybody.
 */
export function createModelDocuments(options: DocumentOptions): (model: Model) => ModelDocument {
  const made = new WeakMap<Model, { readonly document: ModelDocument; readonly alternates: readonly Model[] }>()
  return (model) => {
    const alternates = options.alternatesOf(model.id)
    const known = made.get(model)
    const isSame =
      known?.alternates.length === alternates.length && known.alternates.every((one, at) => one === alternates[at])
    if (known !== undefined && isSame) return known.document
    const document = toDocument(model, options)
    made.set(model, { document, alternates })
    return document
  }
}

function toDocument(model: Model, options: DocumentOptions): ModelDocument {
  const content = toContent(model, options)
  const version = hash('sha256', JSON.stringify(content)).slice(0, VERSION_LENGTH)
  const info = { title: model.id, description: DESCRIPTION, version }
  const bytes = Buffer.from(`${JSON.stringify({ openapi: '3.0.2', info, ...content })}\n`)
  return { bytes, etag: toEtag(bytes) }
}

function toContent(model: Model, { brands, needsCredentials, alternatesOf }: DocumentOptions): JsonRecord {
  const alternates = alternatesOf(model.id).filter(({ state }) => state === 'released')
  return {
    paths: { [`${MODELS_PATH}/${model.id}`]: { post: toOperation(model, needsCredentials) } },
    components: { schemas: {}, securitySchemes: SECURITY_SCHEMES },
    ...Object.assign({}, ...brands.map((brand) => toExtensions(model, alternates, brand.toLowerCase()))),
  }
}

function toOperation({ id, input, output }: Model, needsCredentials: boolean): JsonRecord {
  const schema = input.schema ?? ANY_OBJECT
  const shown =
    input.example === null || schema['example'] !== undefined ? schema : { ...schema, example: input.example }
  return {
    operationId: 'runRouterModel',
    summary: `Run ${id} synchronously.`,
    security: needsCredentials ? [{ BearerAuth: [] }, { ApiKeyAuth: [] }] : [],
    requestBody: { required: true, content: { 'application/json': { schema: shown } } },
    responses: { '200': { description: "The provider's own result.", content: toOutput(output) } },
  }
}

function toOutput({ schema, mediaType }: Model['output']): JsonRecord {
  if (schema !== null) return { [mediaType ?? 'application/json']: { schema } }
  return { [mediaType ?? '*/*']: { schema: mediaType === 'application/json' ? {} : BYTES } }
}

function toExtensions(model: Model, alternates: readonly Model[], brand: string): Record<string, Json> {
  const { id, input, output } = model
  return {
    [`x-${brand}-router-model-id`]: id,
    [`x-${brand}-input-schema-authored`]: input.schema !== null,
    [`x-${brand}-output-schema-authored`]: output.schema !== null,
    [`x-${brand}-router-input-modalities`]: input.modalities,
    [`x-${brand}-router-output-modalities`]: output.modalities,
    ...(alternates.length > 0 && {
      [`x-${brand}-router-alt-providers`]: alternates.map((one) => ({ provider: one.provider, model_id: one.id })),
    }),
    ...(model.alternate != null && {
      [`x-${brand}-router-alias-of`]: model.alternate.of,
      [`x-${brand}-router-alias-provider`]: model.provider,
    }),
  }
}
