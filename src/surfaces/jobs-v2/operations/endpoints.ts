/** Endpoints of an account: proposed, published, moved between versions, described, removed. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type JsonObject, type JsonValue, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { Endpoint, EndpointVersion } from '../../../domain/endpoints/endpoint.ts'
import type { EndpointKey } from '../../../domain/endpoints/endpoint-store.ts'
import { toInputSchema } from '../../../domain/endpoints/input-schema.ts'
import type {
  Endpoints,
  MissingOfVersion,
  PublishRequest,
  SettingsChange,
} from '../../../domain/endpoints/manage-endpoints.ts'
import type { Resolved } from '../../../domain/endpoints/reach.ts'
import { type FindServedRelease, findServed } from '../../../domain/endpoints/release.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readJsonObject } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { type DocumentNode, sendPage } from '../../kit/docs/docs-page.ts'
import { needs } from '../../kit/guards/routes.ts'
import { readFlag, readNumber, readParameters, sendJson } from '../../kit/request.ts'
import type { ContextOf, RequestContext } from '../jobs-operation.ts'
import { toOpenapi } from '../views/endpoint-contract.ts'
import { readLimits } from '../views/endpoint-limits.ts'
import {
  ENDPOINTS_PATH,
  type ServedOf,
  toCalled,
  toCalledVersionView,
  toDifferenceView,
  toDraftText,
  toEndpointView,
  toExportText,
  toPublishedText,
  toVersionSummaryView,
  toVersionView,
} from '../views/endpoint-view.ts'
import { readWorkflowFile } from './convert-workflow.ts'

export interface EndpointDeps {
  readonly contextOf: ContextOf
  readonly endpoints: Endpoints
  /** What no engine has of what a version needs. */
  readonly missingOf: (endpoint: Endpoint, version: EndpointVersion) => MissingOfVersion
  readonly servedRelease: FindServedRelease
  readonly check: ContractCheck
  readonly maxBodyBytes: number
  readonly needsCredentials: boolean
}

const ENDPOINT_ROUTE = `${ENDPOINTS_PATH}/:name`
const DEFAULT_LIMIT = 50
const MAX_LIMIT = 100
// A document with more operations, or of more characters, is of no use to any reader.
const MAX_DESCRIBED = 200
const MAX_DESCRIBED_LENGTH = 4_194_304
// So that one with long texts leaves room for others.
const MAX_OWN_LENGTH = 524_288
// Of versions that are looked at to find those that fit.
const MAX_READ_LENGTH = 33_554_432
// What a value is written out as: in the schema, in the example and in the samples of each language, where quotes are escaped.
const COPIES = 6
const USUAL_LENGTH = 6_000

function nameOf(request: FastifyRequest): string {
  return (request.params as { readonly name: string }).name
}

function keyOf(request: FastifyRequest, { accountId }: RequestContext): EndpointKey {
  return { accountId, name: nameOf(request) }
}

async function readBody(request: FastifyRequest, deps: EndpointDeps, schema: string): Promise<JsonObject> {
  const body = await readJsonObject(request, { maxBytes: deps.maxBodyBytes })
  const problem = deps.check(schema, body, 'the request')
  if (problem !== null) throw new ServiceError('invalid_field', problem)
  return body
}

function previewEndpoint(app: FastifyInstance, deps: EndpointDeps): void {
  app.post(`${ENDPOINTS_PATH}/preview`, needs('endpoints:write'), async (request, reply) => {
    const { accountId } = deps.contextOf(request)
    const body = await readBody(request, deps, 'EndpointDraftRequest')
    const file = await readFile(request, body['file'])
    const draft = await deps.endpoints.draft({ accountId, file, declaration: body['declaration'] ?? null })
    return sendJson(reply, 200, toDraftText(draft))
  })
}

function publishEndpoint(app: FastifyInstance, deps: EndpointDeps): void {
  app.post(ENDPOINTS_PATH, needs('endpoints:write'), async (request, reply) => {
    const body = await readBody(request, deps, 'EndpointPublishRequest')
    return publish(request, reply, deps, body['name'] as string, body)
  })
}

function publishEndpointVersion(app: FastifyInstance, deps: EndpointDeps): void {
  app.post(`${ENDPOINT_ROUTE}/versions`, needs('endpoints:write'), async (request, reply) => {
    const key = keyOf(request, deps.contextOf(request))
    await deps.endpoints.find(deps.contextOf(request), key.name)
    const body = await readBody(request, deps, 'EndpointVersionRequest')
    return publish(request, reply, deps, key.name, body)
  })
}

async function publish(
  request: FastifyRequest,
  reply: FastifyReply,
  deps: EndpointDeps,
  name: string,
  body: JsonObject,
): Promise<FastifyReply> {
  const context = deps.contextOf(request)
  const { accountId, keyId } = context
  const wanted: PublishRequest = {
    ...{ accountId, keyId, name },
    file: await readFile(request, body['file']),
    declaration: body['declaration'] ?? null,
    note: (body['note'] as string | undefined) ?? '',
    isBreakingMeant: body['breaking'] === true,
    isReleasePinned: body['pin_release'] === true,
    ...readTexts(body),
  }
  const published = await deps.endpoints.publish(wanted)
  const text = toPublishedText(published, context, servedFor(published.endpoint, deps))
  return sendJson(reply, published.isNew ? 201 : 200, text)
}

function servedFor(endpoint: Endpoint, { servedRelease }: EndpointDeps): ServedOf {
  return (release) => findServed(endpoint, release, servedRelease)
}

/** A picture that carries a workflow comes as a `data:` address. */
async function readFile(request: FastifyRequest, file: JsonValue): Promise<JsonValue> {
  if (typeof file !== 'string') return file
  const comma = file.indexOf(',')
  const isBase64 = /^data:[^,]{0,200};base64$/i.test(file.slice(0, Math.max(comma, 0)))
  if (!isBase64) throw invalidField('file', 'must be an object, or a data: address in base64')
  // With what its author calls things.
  return readWorkflowFile(request.raw, Buffer.from(file.slice(comma + 1), 'base64'), 'workflow')
}

/** What is left out stays. */
function readTexts(body: JsonObject): Pick<PublishRequest, 'title' | 'description' | 'settings'> {
  const { deployment, tool, models, callers, limits } = body
  const settings: SettingsChange = {
    ...(deployment !== undefined && { deployment: deployment as string | null }),
    ...(tool !== undefined && { isTool: tool as boolean }),
    ...(models !== undefined && { models: models as string[] }),
    ...(callers !== undefined && { callers: [...new Set(callers as string[])] }),
    ...(limits !== undefined && { limits: readLimits(limits as JsonObject | null) }),
  }
  return {
    ...(body['title'] !== undefined && { title: body['title'] as string }),
    ...(body['description'] !== undefined && { description: body['description'] as string }),
    ...(Object.keys(settings).length > 0 && { settings }),
  }
}

function listEndpoints(app: FastifyInstance, { contextOf, endpoints }: EndpointDeps): void {
  app.get(ENDPOINTS_PATH, needs('endpoints:read'), async (request, reply) => {
    const context = contextOf(request)
    const parameters = readParameters(request.raw.url ?? '', ['limit', 'after', 'shared'])
    const limit = readNumber(parameters, 'limit', { fallback: DEFAULT_LIMIT, max: MAX_LIMIT })
    const asked = { after: parameters.get('after') ?? null, limit: limit + 1 }
    const areShared = readFlag(parameters, 'shared')
    const found = areShared ? await endpoints.listShared(context, asked) : await endpoints.list(context, asked)
    const page = found.slice(0, limit).map((each) => toEndpointView(toCalled(each, context.accountId), context))
    return sendJson(reply, 200, { endpoints: page, has_more: found.length > limit })
  })
}

/** The first by name that together make a document of bounded length; one that is too long for it is left out. */
async function describeAll(request: FastifyRequest, deps: EndpointDeps): Promise<JsonObject> {
  const { contextOf, endpoints, needsCredentials } = deps
  const context = contextOf(request)
  const found = await endpoints.list(context, { after: null, limit: MAX_DESCRIBED + 1 })
  const described: Resolved[] = []
  let [left, toRead] = [MAX_DESCRIBED_LENGTH, MAX_READ_LENGTH]
  for (const { name, description } of found.slice(0, MAX_DESCRIBED)) {
    const each = toRead > 0 ? await endpoints.resolve(context, name).catch(nullIfGone) : null
    if (each === null) continue
    const { inputs, graph } = each.version
    const written = stringifyLosslessJson([...inputs] as readonly unknown[] as JsonValue[]).length
    toRead -= written + graph.length
    const length = COPIES * written + description.length + USUAL_LENGTH
    if (length > Math.min(left, MAX_OWN_LENGTH)) continue
    left -= length
    described.push(each)
  }
  const document = toOpenapi(described, context, needsCredentials)
  if (described.length === found.length) return document
  const said = `Only ${described.length} endpoints are described here; each has a document of its own at ${ENDPOINTS_PATH}/{name}/openapi.json.`
  return { ...document, info: { title: 'Endpoints', version: '1', description: said } }
}

/** Removed since it was listed. */
function nullIfGone(error: unknown): null {
  if (error instanceof ServiceError && error.refusal === 'not_found') return null
  throw error
}

function describeEndpoints(app: FastifyInstance, deps: EndpointDeps): void {
  app.get(`${ENDPOINTS_PATH}/openapi.json`, needs('endpoints:read'), async (request, reply) =>
    sendJson(reply, 200, stringifyLosslessJson(await describeAll(request, deps))),
  )
}

function showEndpoints(app: FastifyInstance, deps: EndpointDeps): void {
  app.get(`${ENDPOINTS_PATH}/docs`, needs('endpoints:read'), async (request, reply) => {
    const document = await describeAll(request, deps)
    const { origin, mountPrefix } = deps.contextOf(request)
    const documentUrl = `${origin}${mountPrefix}${ENDPOINTS_PATH}/openapi.json`
    return sendPage(reply, toDocumentNode(document), { documentUrl, others: [] })
  })
}

/** For readers of the page: numbers of more digits than JavaScript has are shown rounded. */
function toDocumentNode(document: JsonObject): DocumentNode {
  return JSON.parse(stringifyLosslessJson(document)) as DocumentNode
}

async function sendEndpoint(
  reply: FastifyReply,
  endpoint: Endpoint,
  context: RequestContext,
  { endpoints, missingOf }: EndpointDeps,
): Promise<FastifyReply> {
  const called = toCalled(endpoint, context.accountId)
  const { version } = await endpoints.resolveToCall({ ...context, endpoints: null }, called.name)
  void reply.header('etag', `"${endpoint.revision}"`)
  return sendJson(reply, 200, toEndpointView(called, context, missingOf(endpoint, version)))
}

function getEndpoint(app: FastifyInstance, deps: EndpointDeps): void {
  app.get(ENDPOINT_ROUTE, needs('endpoints:read'), async (request, reply) => {
    const context = deps.contextOf(request)
    return sendEndpoint(reply, await deps.endpoints.findToCall(context, nameOf(request)), context, deps)
  })
}

function updateEndpoint(app: FastifyInstance, deps: EndpointDeps): void {
  app.patch(ENDPOINT_ROUTE, needs('endpoints:write'), async (request, reply) => {
    const context = deps.contextOf(request)
    const revision = readRevision(request.headers['if-match'])
    const body = await readBody(request, deps, 'EndpointUpdateRequest')
    const { state, current_version: currentVersion } = body
    const change = {
      ...readTexts(body),
      ...(state !== undefined && { state: state as Endpoint['state'] }),
      ...(currentVersion !== undefined && { currentVersion: currentVersion as number }),
    }
    return sendEndpoint(reply, await deps.endpoints.change(keyOf(request, context), change, revision), context, deps)
  })
}

/** null: whatever it is now. */
function readRevision(header: string | undefined): number | null {
  if (header === undefined || header === '*') return null
  const digits = /^(?:W\/)?"(\d{1,15})"$/.exec(header)?.[1]
  // What we never gave out as an ETag is no state that it could be in.
  return digits === undefined ? -1 : Number(digits)
}

function deleteEndpoint(app: FastifyInstance, { contextOf, endpoints }: EndpointDeps): void {
  app.delete(ENDPOINT_ROUTE, needs('endpoints:write'), async (request, reply) => {
    await endpoints.remove(keyOf(request, contextOf(request)))
    return reply.code(204).send()
  })
}

function listEndpointVersions(app: FastifyInstance, deps: EndpointDeps): void {
  app.get(`${ENDPOINT_ROUTE}/versions`, needs('endpoints:read'), async (request, reply) => {
    const parameters = readParameters(request.raw.url ?? '', ['limit', 'before'])
    const limit = readNumber(parameters, 'limit', { fallback: DEFAULT_LIMIT, max: MAX_LIMIT })
    const before = parameters.has('before') ? readNumber(parameters, 'before', { fallback: 1, max: 2 ** 31 - 1 }) : null
    const context = deps.contextOf(request)
    const endpoint = await deps.endpoints.find(context, nameOf(request))
    const found = await deps.endpoints.listVersions(context, endpoint.name, { before, limit: limit + 1 })
    const served = servedFor(endpoint, deps)
    const versions = found.slice(0, limit).map((version) => toVersionSummaryView(version, served))
    return sendJson(reply, 200, { versions, has_more: found.length > limit })
  })
}

function getEndpointVersion(app: FastifyInstance, deps: EndpointDeps): void {
  app.get(`${ENDPOINT_ROUTE}/versions/:version`, needs('endpoints:read'), async (request, reply) => {
    const { name, version: selector } = request.params as { readonly name: string; readonly version: string }
    const context = deps.contextOf(request)
    const { endpoint, version } = await deps.endpoints.resolveToCall(context, `${name}@${selector}`)
    const isOwn = endpoint.accountId === context.accountId
    const view = isOwn ? toVersionView(version, servedFor(endpoint, deps)) : toCalledVersionView(version)
    return sendJson(reply, 200, stringifyLosslessJson(view))
  })
}

function compareEndpointVersions(app: FastifyInstance, { contextOf, endpoints }: EndpointDeps): void {
  app.get(`${ENDPOINT_ROUTE}/compare`, needs('endpoints:read'), async (request, reply) => {
    const parameters = readParameters(request.raw.url ?? '', ['from', 'to'])
    const [from, to] = [parameters.get('from'), parameters.get('to')]
    if (from === undefined || to === undefined)
      throw new ServiceError('invalid_request', 'from and to must each name a version')
    const differences = await endpoints.compare(contextOf(request), nameOf(request), { from, to })
    return sendJson(reply, 200, { differences: differences.map(toDifferenceView) })
  })
}

const ALIAS_ROUTE = `${ENDPOINT_ROUTE}/aliases/:alias`

function aliasOf(request: FastifyRequest): string {
  return (request.params as { readonly alias: string }).alias
}

function putEndpointAlias(app: FastifyInstance, deps: EndpointDeps): void {
  app.put(ALIAS_ROUTE, needs('endpoints:write'), async (request, reply) => {
    const context = deps.contextOf(request)
    const body = await readBody(request, deps, 'EndpointAliasRequest')
    const moved = deps.endpoints.moveAlias(keyOf(request, context), aliasOf(request), body['version'] as number)
    return sendEndpoint(reply, await moved, context, deps)
  })
}

function deleteEndpointAlias(app: FastifyInstance, deps: EndpointDeps): void {
  app.delete(ALIAS_ROUTE, needs('endpoints:write'), async (request, reply) => {
    const context = deps.contextOf(request)
    const moved = await deps.endpoints.moveAlias(keyOf(request, context), aliasOf(request), null)
    return sendEndpoint(reply, moved, context, deps)
  })
}

/** `version` in the query: a number, `latest` or an alias. */
async function resolveAsked(request: FastifyRequest, { contextOf, endpoints }: EndpointDeps) {
  const { selector, reference } = readAsked(request)
  const context = contextOf(request)
  const resolved = await endpoints.resolveToCall(context, reference)
  return { ...resolved, endpoint: toCalled(resolved.endpoint, context.accountId), selector }
}

function readAsked(request: FastifyRequest) {
  const selector = readParameters(request.raw.url ?? '', ['version']).get('version')
  return { selector, reference: selector === undefined ? nameOf(request) : `${nameOf(request)}@${selector}` }
}

function getEndpointSchema(app: FastifyInstance, deps: EndpointDeps): void {
  app.get(`${ENDPOINT_ROUTE}/schema`, needs('endpoints:read'), async (request, reply) => {
    const { version } = await resolveAsked(request, deps)
    return sendJson(reply, 200, stringifyLosslessJson(toInputSchema(version.inputs)))
  })
}

function describeEndpoint(app: FastifyInstance, deps: EndpointDeps): void {
  app.get(`${ENDPOINT_ROUTE}/openapi.json`, needs('endpoints:read'), async (request, reply) => {
    const document = toOpenapi([await resolveAsked(request, deps)], deps.contextOf(request), deps.needsCredentials)
    return sendJson(reply, 200, stringifyLosslessJson(document))
  })
}

function showEndpoint(app: FastifyInstance, deps: EndpointDeps): void {
  app.get(`${ENDPOINT_ROUTE}/docs`, needs('endpoints:read'), async (request, reply) => {
    const asked = await resolveAsked(request, deps)
    const context = deps.contextOf(request)
    const base = `${context.origin}${context.mountPrefix}${ENDPOINTS_PATH}`
    const name = encodeURIComponent(asked.endpoint.name)
    const query = asked.selector === undefined ? '' : `?version=${encodeURIComponent(asked.selector)}`
    return sendPage(reply, toDocumentNode(toOpenapi([asked], context, deps.needsCredentials)), {
      documentUrl: `${base}/${name}/openapi.json${query}`,
      others: [{ url: `${base}/docs`, title: 'All endpoints' }],
    })
  })
}

function exportEndpoint(app: FastifyInstance, deps: EndpointDeps): void {
  app.get(`${ENDPOINT_ROUTE}/export`, needs('endpoints:read'), async (request, reply) =>
    // With its workflow, so of the account's own alone.
    sendJson(
      reply,
      200,
      toExportText(await deps.endpoints.resolve(deps.contextOf(request), readAsked(request).reference)),
    ),
  )
}

export const ENDPOINT_OPERATIONS = [
  ...[previewEndpoint, publishEndpoint, publishEndpointVersion, listEndpoints, describeEndpoints, getEndpoint],
  ...[updateEndpoint, deleteEndpoint, listEndpointVersions, getEndpointVersion, compareEndpointVersions],
  ...[putEndpointAlias, deleteEndpointAlias, getEndpointSchema, describeEndpoint, exportEndpoint],
  ...[showEndpoints, showEndpoint],
]
