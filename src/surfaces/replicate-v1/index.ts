/**
 * Endpoints as models of Replicate's clients, below `/replicate/v1`. A prediction is a job, `account/name` an endpoint of the caller. The
 * surface may be left out: deleting this folder leaves a service without it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { toSecretText } from '../../../lib/standard-webhooks.ts'
import { isWithin } from '../../domain/endpoints/reach.ts'
import { deploymentOf } from '../../domain/engine/copy-pool.ts'
import { invalidField, ServiceError } from '../../domain/errors.ts'
import { readIdempotencyKey } from '../../domain/idempotency/idempotency-key.ts'
import { noSuchJob } from '../../domain/jobs/read/job-reader.ts'
import { readRunLabels } from '../../domain/jobs/submit/job-labels.ts'
import type { HookWish } from '../../domain/webhooks/job-hooks.ts'
import { readJsonObject } from '../kit/bodies/json-body.ts'
import { type Contract, openContract } from '../kit/contracts/contract.ts'
import { createTimeCursors, type TimeCursors } from '../kit/cursor.ts'
import { needs, sendError, serviceAddressOf } from '../kit/guards/routes.ts'
import { createDoor, type Door, type DoorContext } from '../kit/jobs/endpoint-door.ts'
import { idOf, readParameters, readWait, sendJson } from '../kit/request.ts'
import { mount, type Surface } from '../kit/surface.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import {
  createAnswerReplicateError,
  REPLICATE_PATH,
  toModelView,
  toPrediction,
  toVersionId,
  toVersionView,
} from './prediction-view.ts'
import { createTellMessage, linksOf, tell } from './tell-prediction.ts'

const SOURCE = new URL('../../../spec/replicate.openapi.json', import.meta.url)
const PREDICTIONS = `${REPLICATE_PATH}/predictions`
const MODEL = `${REPLICATE_PATH}/models/:account/:name`
const OPERATIONS = [
  ...[createPrediction, createModelPrediction, createDeploymentPrediction, listPredictions, getPrediction],
  ...[cancelPrediction, getReplicateModel, getReplicateVersion, getDefaultWebhookSecret, getReplicateOpenapi],
]

interface ReplicateDeps {
  readonly parts: SurfaceParts
  readonly door: Door
  readonly spec: Contract
  readonly cursors: TimeCursors
}

export function createSurface(parts: SurfaceParts): Surface {
  const { mountPrefix, hasCredentials } = parts.gate
  const answerError = createAnswerReplicateError(parts.log)
  const spec = openContract({ source: SOURCE, requestSchemas: ['PredictionRequest'], needsCredentials: hasCredentials })
  const door = createDoor(parts)
  const deps = { parts, door, spec, cursors: createTimeCursors(parts.console.cursorSecret) }
  parts.endpoints.tellAs(FORM, createTellMessage(deps))
  const isOurs = (path: string) => path.startsWith(`${mountPrefix}${REPLICATE_PATH}/`)
  return {
    name: 'replicate-v1',
    register(app) {
      app.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
      mount(app, mountPrefix, (mounted) => {
        door.protect(mounted)
        for (const register of OPERATIONS) register(mounted, deps)
      })
    },
    reference: {
      path: '/docs/replicate',
      title: 'Endpoints as Replicate models',
      document: spec.shown,
      examplePath: PREDICTIONS,
    },
    allowedMethods: (path) => (isOurs(path) ? spec.methodsOf(path.slice(mountPrefix.length)) : []),
    answerErrorFor: (path) => (isOurs(path) ? answerError : null),
  }
}

/** The endpoint that an address names, of the account that calls or of another. */
function namedBy(request: FastifyRequest, { accountId }: DoorContext): string {
  const { account, name } = request.params as { readonly account: string; readonly name: string }
  return account === accountId ? name : `${account}/${name}`
}

function createPrediction(app: FastifyInstance, deps: ReplicateDeps): void {
  app.post(PREDICTIONS, needs('endpoints:run'), async (request, reply) => {
    const context = deps.door.contextOf(request)
    const body = await readBody(request, deps)
    const version = body['version']
    if (typeof version !== 'string') throw invalidField('version', 'is required')
    return run(request, reply, { body, reference: await findVersion(deps, context, version) }, deps)
  })
}

function createModelPrediction(app: FastifyInstance, deps: ReplicateDeps): void {
  app.post(`${MODEL}/predictions`, needs('endpoints:run'), (request, reply) => runNamed(request, reply, deps))
}

function createDeploymentPrediction(app: FastifyInstance, deps: ReplicateDeps): void {
  const route = `${REPLICATE_PATH}/deployments/:account/:name/predictions`
  app.post(route, needs('endpoints:run'), (request, reply) => runNamed(request, reply, deps))
}

async function runNamed(request: FastifyRequest, reply: FastifyReply, deps: ReplicateDeps): Promise<FastifyReply> {
  const reference = namedBy(request, deps.door.contextOf(request))
  const body = await readBody(request, deps)
  if (body['version'] !== undefined) throw invalidField('version', 'belongs to /predictions')
  return run(request, reply, { body, reference }, deps)
}

async function readBody(request: FastifyRequest, { parts, spec }: ReplicateDeps): Promise<JsonObject> {
  const body = await readJsonObject(request, { maxBytes: parts.limits.maxBodyBytes })
  // Inputs are judged by the endpoint, and their numbers keep their digits.
  const problem = spec.check(
    'PredictionRequest',
    { ...body, ...(isJsonObject(body['input']) && { input: {} }) },
    'body',
  )
  if (problem !== null) throw new ServiceError('invalid_field', problem.replace(/^body\./, ''))
  return body
}

const HEX = /^(?:sha256:)?([0-9a-f]{64})$/

/** `version` without or with its model in front: a hash, `name@version`, or the name alone. */
async function findVersion({ parts }: ReplicateDeps, context: DoorContext, given: string): Promise<string> {
  const { accountId } = context
  const own = given.startsWith(`${accountId}/`) ? given.slice(accountId.length + 1) : given
  const [, model = null, version = own] =
    /^([^:@/]+(?:\/[^:@/]+)?):(.+)$/.exec(own.startsWith('sha256:') ? '' : own) ?? []
  const hex = HEX.exec(version)?.[1]
  if (hex === undefined) return model === null || version.includes('@') ? version : `${model}@${version}`
  const versions = await parts.endpoints.endpoints.findByHash(context, `sha256:${hex}`)
  // Without its model: equal versions make equal pictures.
  const found = versions.find(({ name }) => model === null || name === model)
  if (found === undefined) throw new ServiceError('not_found', 'there is no version with this hash')
  return `${found.name}@${found.number}`
}

interface Asked {
  readonly body: JsonObject
  readonly reference: string
}

async function run(request: FastifyRequest, reply: FastifyReply, { body, reference }: Asked, deps: ReplicateDeps) {
  const { runs, waits } = deps.parts.endpoints
  const context = deps.door.contextOf(request)
  const { accountId, keyId, endpoints, pool, baseUrl } = context
  const waitMs = readWait(request.headers['prefer'])
  const { job, version, inputs, endpoint } = await runs.run({
    ...{ accountId, keyId, endpoints, pool, reference, inputs: (body['input'] ?? {}) as JsonObject },
    ...{ webhook: readHook(body, baseUrl), extraData: null, metadata: {}, priority: 0 },
    idempotencyKey: readIdempotencyKey(request.raw.headersDistinct['idempotency-key']),
  })
  const waited = waitMs === null ? { job, hasEnded: true } : await waits.wait(job, waitMs)
  void reply.header('location', `${baseUrl}${PREDICTIONS}/${job.id}`)
  const prediction = toPrediction({
    ...{
      job: waited.job,
      model: `${endpoint.accountId}/${endpoint.name}`,
      version: toVersionId(version),
      input: inputs,
    },
    ...{ outputs: version.outputs, isNew: true, baseUrl, linkTo: linksOf(waited.job, context, deps) },
  })
  return sendJson(reply, waited.hasEnded ? 201 : 202, stringifyLosslessJson(prediction))
}

const EVENTS: Readonly<Record<string, readonly string[]>> = {
  start: ['job.started'],
  output: ['output.created'],
  logs: [],
  completed: ['job.succeeded', 'job.failed', 'job.canceled', 'job.expired'],
}

/** The words that messages about predictions are in. */
const FORM = 'prediction'

/** There are no logs: whoever wants nothing else is told nothing. */
function readHook({ webhook, webhook_events_filter: filter }: JsonObject, base: string): HookWish | null {
  if (typeof webhook !== 'string') return null
  const wanted = (filter as readonly string[] | undefined) ?? Object.keys(EVENTS)
  const events = [...new Set(wanted)].flatMap((event) => EVENTS[event] ?? [])
  return events.length === 0 ? null : { url: webhook, events, secret: null, form: { name: FORM, base } }
}

const PAGE = 100

function listPredictions(app: FastifyInstance, deps: ReplicateDeps): void {
  app.get(PREDICTIONS, needs('endpoints:run'), async (request, reply) => {
    const context = deps.door.contextOf(request)
    const { accountId, pool, baseUrl } = context
    const text = readParameters(request.raw.url ?? '', ['cursor']).get('cursor')
    const filters = JSON.stringify(['predictions', accountId, pool])
    const cursor = text === undefined ? null : deps.cursors.read(text, filters)
    const asked = { pool, statuses: null, metadata: {}, limit: PAGE, cursor }
    const { jobs, next } = await deps.parts.jobs.list(accountId, asked)
    const results: JsonValue[] = []
    for (const job of jobs) {
      const called = readRunLabels(job.metadata)
      if (called !== null && isWithin(context, called.name)) results.push(await tell({ job, called }, context, deps))
    }
    const after = next === null ? null : encodeURIComponent(deps.cursors.encode(next, filters))
    const more = after === null ? null : `${baseUrl}${PREDICTIONS}?cursor=${after}`
    return sendJson(reply, 200, stringifyLosslessJson({ previous: null, next: more, results }))
  })
}

function getPrediction(app: FastifyInstance, deps: ReplicateDeps): void {
  app.get(`${PREDICTIONS}/:id`, needs('endpoints:run'), async (request, reply) => {
    const context = deps.door.contextOf(request)
    const { job, called } = await findRun(idOf(request), context, deps)
    return sendJson(reply, 200, stringifyLosslessJson(await tell({ job, called }, context, deps)))
  })
}

function cancelPrediction(app: FastifyInstance, deps: ReplicateDeps): void {
  app.post(`${PREDICTIONS}/:id/cancel`, needs('endpoints:run'), async (request, reply) => {
    const context = deps.door.contextOf(request)
    const { called } = await findRun(idOf(request), context, deps)
    const job = await deps.parts.jobs.cancel(context.accountId, idOf(request))
    return sendJson(reply, 200, stringifyLosslessJson(await tell({ job, called }, context, deps)))
  })
}

/** Throws not_found, also for a job that is no call of an endpoint. */
async function findRun(id: string, context: DoorContext, { parts }: ReplicateDeps) {
  const { accountId, pool } = context
  const job = await parts.jobs.reader.find(accountId, id)
  const called = readRunLabels(job.metadata)
  if (
    called === null ||
    !isWithin(context, called.name) ||
    (pool !== null && deploymentOf(job.pool) !== deploymentOf(pool))
  )
    throw noSuchJob()
  return { job, called }
}

function getReplicateModel(app: FastifyInstance, { parts, door }: ReplicateDeps): void {
  app.get(MODEL, needs('endpoints:run'), async (request, reply) => {
    const context = door.contextOf(request)
    const { endpoint, version } = await parts.endpoints.endpoints.resolveToCall(context, namedBy(request, context))
    return sendJson(reply, 200, stringifyLosslessJson(toModelView(endpoint, version, context.baseUrl)))
  })
}

function getReplicateVersion(app: FastifyInstance, deps: ReplicateDeps): void {
  app.get(`${MODEL}/versions/:hash`, needs('endpoints:run'), async (request, reply) => {
    const context = deps.door.contextOf(request)
    const name = namedBy(request, context)
    const { hash } = request.params as { readonly hash: string }
    const reference = await findVersion(deps, context, `${name}:${hash}`)
    const { version } = await deps.parts.endpoints.endpoints.resolveToCall(context, reference)
    return sendJson(reply, 200, stringifyLosslessJson(toVersionView(version)))
  })
}

function getDefaultWebhookSecret(app: FastifyInstance, { parts, door }: ReplicateDeps): void {
  // Whoever may only run endpoints must not be able to forge signatures of the service.
  app.get(`${REPLICATE_PATH}/webhooks/default/secret`, needs('jobs:write'), async (request, reply) =>
    sendJson(reply, 200, { key: toSecretText(parts.endpoints.webhookSecret(door.contextOf(request).accountId)) }),
  )
}

/** The contract, with the address at which this caller reached us. */
function getReplicateOpenapi(app: FastifyInstance, { spec }: ReplicateDeps): void {
  app.get(`${REPLICATE_PATH}/openapi.json`, needs('public'), (request, reply) => {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, spec.textFor(origin + mountPrefix))
  })
}
