/**
 * Endpoints as image models of OpenAI's clients: `/v1/images/generations`, `/v1/images/edits` and `/v1/models`. `model` is the name of an
 * endpoint. The surface may be left out: deleting this folder leaves a service without it.
 */
import { hash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Endpoint } from '../../domain/endpoints/endpoint.ts'
import { createWaitForRun } from '../../domain/endpoints/wait-for-run.ts'
import { readIdempotencyKey } from '../../domain/idempotency/idempotency-key.ts'
import { mustBeObject, parseLosslessBody, readBodyBytes } from '../kit/bodies/json-body.ts'
import { type AccountConnections, createAccountConnections } from '../kit/connections/account-connections.ts'
import { type Contract, openContract } from '../kit/contracts/contract.ts'
import { needs, sendError, serviceAddressOf } from '../kit/guards/routes.ts'
import { createDoor, type Door } from '../kit/jobs/endpoint-door.ts'
import { idOf, sendJson } from '../kit/request.ts'
import { mount, type Surface } from '../kit/surface.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import { readEditForm } from './edit-form.ts'
import { createAnswerImageError, createTellImageError, modelNotFound } from './image-errors.ts'
import { readImageRequest } from './image-request.ts'
import { createJoinedRuns, type JoinedRuns } from './joined-runs.ts'
import { type AnswerDeps, serveImages } from './serve-images.ts'
import { findModel, type ImageCall, makesPictures, startImages } from './start-images.ts'

const SOURCE = new URL('../../../spec/images.openapi.json', import.meta.url)
const MODELS_PATH = '/v1/models'
const IMAGES_PATH = '/v1/images'
// Each may be held for minutes.
const CALLS_AT_A_TIME = 100

interface ImageDeps {
  readonly parts: SurfaceParts
  readonly door: Door
  readonly spec: Contract
  readonly joined: JoinedRuns
  readonly calls: AccountConnections
  readonly answers: AnswerDeps
}

export function createSurface(parts: SurfaceParts): Surface {
  const { gate, log, clock, pictures, endpoints } = parts
  const { mountPrefix } = gate
  const answerError = createAnswerImageError(log)
  const spec = openContract({ source: SOURCE, requestSchemas: [], needsCredentials: gate.hasCredentials })
  const door = createDoor(parts)
  let isStopping = false
  // Bounded by the calls of the account, so not once more by those who wait.
  const waits = createWaitForRun({ ...endpoints, maxPerAccount: Number.POSITIVE_INFINITY })
  const joined = createJoinedRuns({ waits, ticker: endpoints.ticker })
  const answers: AnswerDeps = {
    ...{ clock, pictures, endpoints, openContent: parts.console.openContent, linkTo: door.linkTo },
    tellError: createTellImageError(log),
    isStopping: () => isStopping,
  }
  const calls = createAccountConnections(CALLS_AT_A_TIME)
  const deps: ImageDeps = { parts, door, spec, joined, calls, answers }

  const isOurs = (path: string) =>
    [IMAGES_PATH, MODELS_PATH].some((own) => path === mountPrefix + own || path.startsWith(`${mountPrefix}${own}/`))
  return {
    name: 'images-v1',
    register(app) {
      app.addHook('onRequest', async (request, reply) => void reply.header('x-request-id', request.id))
      app.setErrorHandler((error, request, reply) => {
        const answer = answerError(error, request.id)
        // Some clients show nothing but this line.
        reply.raw.statusMessage = toReason(answer.body)
        return sendError(reply, answer)
      })
      mount(app, mountPrefix, (mounted) => {
        door.protect(mounted)
        for (const register of [createImage, editImage, listModels, getModel, getImagesOpenapi]) register(mounted, deps)
      })
    },
    reference: {
      path: '/docs/images',
      title: 'Endpoints as image models',
      document: spec.document,
      examplePath: MODELS_PATH,
    },
    allowedMethods: (path) => (isOurs(path) ? spec.methodsOf(path.slice(mountPrefix.length)) : []),
    answerErrorFor: (path) => (isOurs(path) ? answerError : null),
    drain() {
      isStopping = true
      joined.close()
    },
  }
}

function toReason(body: string): string {
  const { error } = JSON.parse(body) as { readonly error: { readonly message: string } }
  return error.message.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 200)
}

function createImage(app: FastifyInstance, deps: ImageDeps): void {
  app.post(`${IMAGES_PATH}/generations`, needs('endpoints:run'), async (request, reply) => {
    const context = deps.door.contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const bytes = await readBodyBytes(request.raw, { maxBytes: deps.parts.limits.maxBodyBytes })
    const digest = hash('sha256', bytes, 'base64url')
    const body = mustBeObject(await parseLosslessBody(request.raw, bytes))
    const call = { context, form: null, idempotencyKey, digest, request: readImageRequest(body, { areTexts: false }) }
    return answerCall(reply, call, deps)
  })
}

function editImage(app: FastifyInstance, deps: ImageDeps): void {
  app.post(`${IMAGES_PATH}/edits`, needs('endpoints:run'), async (request, reply) => {
    const context = deps.door.contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const form = await readEditForm(request, { files: deps.parts.assets, accountId: context.accountId })
    try {
      const asked = readImageRequest(form.fields, { areTexts: true })
      return await answerCall(reply, { context, form, idempotencyKey, digest: form.digest, request: asked }, deps)
    } finally {
      await form.dispose()
    }
  })
}

async function answerCall(reply: FastifyReply, call: ImageCall, { parts, joined, calls, answers }: ImageDeps) {
  const { accountId, keyId, pool, baseUrl } = call.context
  const event = call.form === null ? 'image_generation' : 'image_edit'
  await calls.take(accountId)
  reply.raw.once('close', () => calls.giveBack(accountId))
  const key = JSON.stringify([accountId, keyId, pool, event, call.digest, call.idempotencyKey])
  const run = joined.join(key, () => startImages(parts, call))
  return serveImages(reply, run, { request: call.request, baseUrl, event }, answers)
}

const PAGE = 1000
// Clients of images read the list in one piece; whatever an endpoint is called further can be called, listed or not.
const MAX_MODELS = 10_000

function listModels(app: FastifyInstance, { parts, door }: ImageDeps): void {
  app.get(MODELS_PATH, needs('endpoints:run'), async (request, reply) => {
    const caller = door.contextOf(request)
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
    const all = new Map([...models, ...[...aliases].filter(([alias]) => !models.has(alias))].slice(0, MAX_MODELS))
    return sendJson(reply, 200, {
      object: 'list',
      data: [...all].map(([id, endpoint]) => toModelView(id, endpoint)).sort((a, b) => (a.id < b.id ? -1 : 1)),
    })
  })
}

/** All that an account has published; of what the service offers, what makes a picture of a text. */
async function isModel(
  { endpoints: { endpoints } }: SurfaceParts,
  { name, accountId, isOfService }: Endpoint,
): Promise<boolean> {
  return isOfService !== true || makesPictures((await endpoints.resolve({ accountId, endpoints: null }, name)).version)
}

function getModel(app: FastifyInstance, { parts, door }: ImageDeps): void {
  app.get(`${MODELS_PATH}/:id`, needs('endpoints:run'), async (request, reply) => {
    const id = idOf(request)
    const { endpoint } = await findModel(parts, door.contextOf(request), id)
    if (endpoint.state !== 'ready') throw modelNotFound(id)
    return sendJson(reply, 200, toModelView(id, endpoint))
  })
}

function toModelView(id: string, { createdAt, accountId, isOfService }: Endpoint) {
  const owner = isOfService === true ? 'service' : accountId
  return { id, object: 'model', created: Math.floor(createdAt.getTime() / 1000), owned_by: owner }
}

/** The contract, with the address at which this caller reached us. */
function getImagesOpenapi(app: FastifyInstance, { spec }: ImageDeps): void {
  app.get(`${IMAGES_PATH}/openapi.json`, needs('public'), (request: FastifyRequest, reply) => {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, spec.textFor(origin + mountPrefix))
  })
}
