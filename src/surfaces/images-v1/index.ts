/**
 * Endpoints and models of the catalogue as image models of OpenAI's clients: `/v1/images/generations` and `/v1/images/edits`, where
 * `model` is the name of an endpoint or the id of a model; and `/v1/models`, what such clients can call here. The surface may be left out: deleting this folder leaves a service without it.
 */
import { hash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { hasScope, mustHaveScope } from '../../domain/accounts/caller.ts'
import { createWaitForRun } from '../../domain/endpoints/wait-for-run.ts'
import { readIdempotencyKey } from '../../domain/idempotency/idempotency-key.ts'
import type { OpenedModel } from '../../domain/models/access/own-models.ts'
import { mustBeObject, parseLosslessBody, readBodyBytes } from '../kit/bodies/json-body.ts'
import { type AccountConnections, createAccountConnections } from '../kit/connections/account-connections.ts'
import { type Contract, openContract } from '../kit/contracts/contract.ts'
import { needs, sendError, serviceAddressOf } from '../kit/guards/routes.ts'
import { createDoor, type Door } from '../kit/jobs/endpoint-door.ts'
import { createAnswerOpenAIError, createTellOpenAIError } from '../kit/openai-errors.ts'
import { sendJson } from '../kit/request.ts'
import { mount, type Surface } from '../kit/surface.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import { readEditForm } from './edit-form.ts'
import { readImageRequest } from './image-request.ts'
import { createJoinedRuns, type JoinedRuns } from './joined-runs.ts'
import { getModel, listModels, MODELS_PATH, mustReach } from './operations/models.ts'
import { answerFromModel, openImageModel } from './run-model.ts'
import { type AnswerDeps, serveImages } from './serve-images.ts'
import { type ImageCall, isEndpoint, startImages } from './start-images.ts'

const SOURCE = new URL('../../../spec/images.openapi.json', import.meta.url)
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
  const answerError = createAnswerOpenAIError(log)
  const spec = openContract({ source: SOURCE, requestSchemas: [], needsCredentials: gate.hasCredentials })
  const door = createDoor(parts)
  let isStopping = false
  // Bounded by the calls of the account, so not once more by those who wait.
  const waits = createWaitForRun({ ...endpoints, maxPerAccount: Number.POSITIVE_INFINITY })
  const joined = createJoinedRuns({ waits, ticker: endpoints.ticker })
  const answers: AnswerDeps = {
    ...{ clock, pictures, endpoints, openContent: parts.console.openContent, linkTo: door.linkTo },
    tellError: createTellOpenAIError(log),
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
      document: spec.shown,
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
  app.post(`${IMAGES_PATH}/generations`, needs('any_scope'), async (request, reply) => {
    const context = deps.door.contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const bytes = await readBodyBytes(request.raw, { maxBytes: deps.parts.limits.maxBodyBytes })
    const digest = hash('sha256', bytes, 'base64url')
    const body = mustBeObject(await parseLosslessBody(request.raw, bytes))
    const call = { context, form: null, idempotencyKey, digest, request: readImageRequest(body, { areTexts: false }) }
    return answerCall(request, reply, call, deps)
  })
}

function editImage(app: FastifyInstance, deps: ImageDeps): void {
  app.post(`${IMAGES_PATH}/edits`, needs('any_scope'), async (request, reply) => {
    const context = deps.door.contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const form = await readEditForm(request, { files: deps.parts.assets, accountId: context.accountId })
    try {
      const asked = readImageRequest(form.fields, { areTexts: true })
      const call = { context, form, idempotencyKey, digest: form.digest, request: asked }
      return await answerCall(request, reply, call, deps)
    } finally {
      await form.dispose()
    }
  })
}

async function answerCall(request: FastifyRequest, reply: FastifyReply, call: ImageCall, deps: ImageDeps) {
  const { parts, joined, calls, answers } = deps
  const { accountId, keyId, pool, baseUrl } = call.context
  const opened = await findCatalogModel(parts, call)
  if (opened !== null) return answerFromModel(request, reply, { opened, call }, deps)
  const event = call.form === null ? 'image_generation' : 'image_edit'
  await calls.take(accountId)
  reply.raw.once('close', () => calls.giveBack(accountId))
  const key = JSON.stringify([accountId, keyId, pool, event, call.digest, call.idempotencyKey])
  const run = joined.join(key, () => startImages(parts, call))
  return serveImages(reply, run, { request: call.request, baseUrl, event }, answers)
}

/** null: an endpoint is meant: those of other accounts have names with a stroke, too. */
async function findCatalogModel(parts: SurfaceParts, { context, request }: ImageCall): Promise<OpenedModel | null> {
  mustReach(context)
  const { model } = request
  if (model === null || !model.includes('/') || !hasScope(context, 'models:run')) {
    mustHaveScope(context, 'endpoints:run')
    return null
  }
  if (hasScope(context, 'endpoints:run') && (await isEndpoint(parts, context, model))) return null
  return openImageModel(parts, context, model)
}

/** The contract, with the address at which this caller reached us. */
function getImagesOpenapi(app: FastifyInstance, { spec }: ImageDeps): void {
  app.get(`${IMAGES_PATH}/openapi.json`, needs('public'), (request: FastifyRequest, reply) => {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, spec.textFor(origin + mountPrefix))
  })
}
