/**
 * Models of the catalogue for OpenAI's chat clients: `/v1/chat/completions`. A request is one call of the model router, and its answer
 * is the provider's own. The surface may be left out: deleting this folder leaves a service without it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { replaceText } from '../../../lib/json/replace-text.ts'
import type { Caller } from '../../domain/accounts/caller.ts'
import { openChat } from '../../domain/models/access/chat-models.ts'
import type { Served } from '../../domain/models/calls/call-plan.ts'
import type { CallResult } from '../../domain/models/calls/call-store.ts'
import type { JsonRecord } from '../../domain/models/catalog/model.ts'
import { RouterError } from '../../domain/models/router-error.ts'
import { claimOf } from '../kit/bodies/body-memory.ts'
import { readBodyBytes } from '../kit/bodies/json-body.ts'
import { holdOpen, keepUntilAnswered } from '../kit/connections/raw-connections.ts'
import { type Contract, openContract } from '../kit/contracts/contract.ts'
import { mustNameNoDeployment } from '../kit/guards/addresses.ts'
import { createRouteGuard, needs, type RouteGuard, sendError, serviceAddressOf } from '../kit/guards/routes.ts'
import { fingerprintOf, mustBeResult, parseModelInput, readCallTag, readKey } from '../kit/model-calls.ts'
import { createAnswerOpenAIError, createTellOpenAIError } from '../kit/openai-errors.ts'
import { readQuery, sendJson } from '../kit/request.ts'
import { mount, type Surface } from '../kit/surface.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import { EventAnswer } from './event-answer.ts'

const SOURCE = new URL('../../../spec/chat.openapi.json', import.meta.url)
const CHAT_PATH = '/v1/chat'

interface ChatDeps {
  readonly chat: SurfaceParts['chat']
  readonly guard: RouteGuard<Caller>
  readonly spec: Contract
  readonly tellError: ReturnType<typeof createTellOpenAIError>
  /** Names another provider than the one that was asked for, where one answers. */
  readonly tellServer: (reply: FastifyReply, served: Served | null) => void
}

export function createSurface({ gate, log, chat, brands }: SurfaceParts): Surface {
  const { mountPrefix } = gate
  const answerError = createAnswerOpenAIError(log)
  const spec = openContract({ source: SOURCE, requestSchemas: [], needsCredentials: gate.hasCredentials })
  const guard = createRouteGuard<Caller>({
    before: (request) => mustNameNoDeployment(serviceAddressOf(request)),
    account: (request) => gate.authenticate(request.raw, 'bearer'),
  })
  const tellServer = (reply: FastifyReply, served: Served | null) => {
    const provider = served?.fallbackProvider ?? null
    if (provider !== null) for (const brand of brands) reply.header(`x-${brand}-router-fallback-provider`, provider)
  }
  const deps: ChatDeps = { chat, guard, spec, tellError: createTellOpenAIError(log), tellServer }
  const isOurs = (path: string) => path.startsWith(`${mountPrefix}${CHAT_PATH}/`)
  return {
    name: 'chat-v1',
    register(app) {
      app.addHook('onRequest', async (request, reply) => void reply.header('x-request-id', request.id))
      app.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
      mount(app, mountPrefix, (mounted) => {
        guard.protect(mounted)
        for (const register of [createChatCompletion, getChatOpenapi]) register(mounted, deps)
      })
    },
    reference: {
      path: '/docs/chat',
      title: 'Models for chat clients',
      document: spec.shown,
      examplePath: '/v1/models',
    },
    allowedMethods: (path) => (isOurs(path) ? spec.methodsOf(path.slice(mountPrefix.length)) : []),
    answerErrorFor: (path) => (isOurs(path) ? answerError : null),
  }
}

function createChatCompletion(app: FastifyInstance, { chat, guard, tellError, tellServer }: ChatDeps): void {
  app.post(`${CHAT_PATH}/completions`, needs('models:run'), async (request, reply) => {
    const { raw } = request
    const caller = guard.knownOf(request)
    const key = readKey(raw)
    const asked = await readConversation(request, chat.maxBodyBytes)
    const { opened, sentName } = await openChat(chat.access, caller, asked.name, { mayFallBack: readMayFallBack(raw) })
    const { origin, mountPrefix } = serviceAddressOf(request)
    keepUntilAnswered(raw.socket)
    holdOpen(reply.raw, chat.holdMs)
    const events = new EventAnswer(reply, (served) => tellServer(reply, served))
    try {
      const answer = await chat.runModel({
        opened,
        accountId: caller.accountId,
        keyId: caller.keyId,
        tag: readCallTag(raw.headers),
        requestId: request.id,
        key,
        fingerprint: key === null ? '' : fingerprintOf(raw, asked.bytes),
        ...withName(asked, sentName),
        baseUrl: origin + mountPrefix,
        listener: { isConnected: () => !reply.raw.destroyed, relay: events },
        holdBody: () => claimOf(raw).hold(),
      })
      const result = mustBeResult(answer)
      if (answer.isReplay) reply.header('idempotent-replayed', 'true')
      if (!events.hasBegun) {
        tellServer(reply, result.served ?? null)
        return await sendResult(reply, result, chat)
      }
      events.end()
    } catch (error) {
      if (!events.hasBegun) throw error
      events.fail(tellError(error, request.id).error)
    }
    return reply
  })
}

/** Only the exact `fallback_provider=false` keeps a call from a second provider, as at the router. */
function readMayFallBack({ url = '' }: FastifyRequest['raw']): boolean {
  const query = readQuery(url)
  if (query === null) throw new RouterError('malformed', 'the query cannot be read')
  return !query.some(([name, value]) => name === 'fallback_provider' && value === 'false')
}

interface Conversation {
  readonly bytes: Buffer
  readonly input: JsonRecord
  readonly name: string
}

async function readConversation({ raw }: FastifyRequest, maxBytes: number): Promise<Conversation> {
  const bytes = await readBodyBytes(raw, { maxBytes })
  const input = await parseModelInput(raw, bytes)
  if (input instanceof RouterError) throw input
  const { model: name } = input
  if (typeof name === 'string' && name !== '') return { bytes, input, name }
  const failure = {
    loc: ['body', 'model'],
    msg: 'must name a model; GET /v1/models lists what there is',
    type: 'missing',
  }
  throw new RouterError('invalid_fields', 'no model is named', { failures: [failure] })
}

/** The same request with the provider's name of the model; every other byte stays. */
function withName(
  { bytes, input }: Conversation,
  model: string,
): { readonly body: Buffer; readonly input: JsonRecord } {
  return { body: replaceText(bytes, 'model', model), input: { ...input, model } }
}

async function sendResult(
  reply: FastifyReply,
  { contentType, body, sizeBytes }: CallResult,
  { blobs }: Pick<SurfaceParts['chat'], 'blobs'>,
): Promise<FastifyReply> {
  reply.code(200).header('content-type', contentType).header('content-length', sizeBytes)
  return reply.send(body.kind === 'inline' ? Buffer.from(body.bytes) : await blobs.open(body.hash))
}

/** The contract, with the address at which this caller reached us. */
function getChatOpenapi(app: FastifyInstance, { spec }: ChatDeps): void {
  app.get(`${CHAT_PATH}/openapi.json`, needs('public'), (request: FastifyRequest, reply) => {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, spec.textFor(origin + mountPrefix))
  })
}
