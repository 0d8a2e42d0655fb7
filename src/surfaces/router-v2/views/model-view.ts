/** A model as callers see it: its entry in the catalogue, and its schemas as a standalone OpenAPI document. */
import { hash } from 'node:crypto'
import type { Json, JsonRecord, Model } from '../../../domain/models/catalog/model.ts'
import { toEtag } from '../../kit/content/etag.ts'
import { MODELS_PATH } from '../router-operation.ts'

const URL_MAX_LENGTH = 2048

/** Billing facts only, never prices. */
export function toModelEntry({ id, provider, model, chargesOnPolicyRejection }: Model): object {
  return { id, provider, model, billing: { charges_on_policy_rejection: chargesOnPolicyRejection } }
}

/** The schema's address is promised to be HTTPS: where we are reached otherwise, or there is no schema, it is left out. */
export function toModelDetail(model: Model, baseUrl: string): object {
  const url = `${baseUrl}${MODELS_PATH}/${model.id}/openapi.json`
  const isShown = model.input.schema !== null && url.startsWith('https://') && url.length <= URL_MAX_LENGTH
  return isShown ? { ...toModelEntry(model), input_schema_url: url } : toModelEntry(model)
}

export interface ModelDocument {
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
}

/**
 * The schemas that a document shows are those that are enforced, and it says so where none are. Made once per model: the same
 * bytes and the same tag for everybody.
 */
export function createModelDocuments(options: DocumentOptions): (model: Model) => ModelDocument {
  const made = new WeakMap<Model, ModelDocument>()
  return (model) => {
    const known = made.get(model)
    if (known !== undefined) return known
    const document = toDocument(model, options)
    made.set(model, document)
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

function toContent(model: Model, { brands, needsCredentials }: DocumentOptions): JsonRecord {
  return {
    paths: { [`${MODELS_PATH}/${model.id}`]: { post: toOperation(model, needsCredentials) } },
    components: { schemas: {}, securitySchemes: SECURITY_SCHEMES },
    ...Object.assign({}, ...brands.map((brand) => toExtensions(model, brand.toLowerCase()))),
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

function toExtensions({ id, input, output }: Model, brand: string): Record<string, Json> {
  return {
    [`x-${brand}-router-model-id`]: id,
    [`x-${brand}-input-schema-authored`]: input.schema !== null,
    [`x-${brand}-output-schema-authored`]: output.schema !== null,
    [`x-${brand}-router-input-modalities`]: input.modalities,
    [`x-${brand}-router-output-modalities`]: output.modalities,
  }
}
