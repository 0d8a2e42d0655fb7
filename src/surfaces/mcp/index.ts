/**
 * `/mcp`: the service as tools for agents, over Streamable HTTP of the Model Context Protocol. Nothing is kept between two requests, so
 * there are no sessions to bound and any process of the service answers any of them; what is held open per account is bounded.
 * Tools call this service's own public API on the address at which the agent's request came in, with the agent's credential; at the
 * address of a deployment they reach what that address shows. The surface may be left out: deleting this folder leaves a service
 * without it.
 */

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '../../../lib/log.ts'
import { readTraceContext, toTraceHeaders } from '../../../lib/tracing/trace-context.ts'
import type { Caller } from '../../domain/accounts/caller.ts'
import { ServiceError } from '../../domain/errors.ts'
import { createErrorBoundary, DEFECT_MESSAGE, REFUSAL_STATUS, toJsonAnswer } from '../kit/answer-errors.ts'
import { type JsonReading, parseBody, readBodyBytes } from '../kit/bodies/json-body.ts'
import { createAccountConnections } from '../kit/connections/account-connections.ts'
import { toDeploymentPrefix } from '../kit/guards/addresses.ts'
import { readCredential } from '../kit/guards/gate.ts'
import { createRouteGuard, needs, sendError, serviceAddressOf } from '../kit/guards/routes.ts'
import { type AnswerError, type ErrorAnswer, mount, type Surface } from '../kit/surface.ts'
import type { AgentConnection, SurfaceParts } from '../kit/surface-parts.ts'
import { createServiceApi } from './service-api.ts'
import type { ToolHost } from './tool.ts'

const PATH = '/mcp'
// Room for a large workflow, or for a file of about 3 MB in base64.
const MAX_BODY_BYTES = 4_194_304
const READING: JsonReading<number> = { parse: JSON.parse, readNumber: Number, maxValues: 200_000 }
// Each may wait for minutes.
const CALLS_AT_A_TIME = 32

interface Asked {
  readonly host: ToolHost
  /** The address names a deployment. */
  readonly isDeployment: boolean
}

export function createSurface(parts: SurfaceParts): Surface {
  const { gate, log, poolOf } = parts
  const answerError = createAnswerMcpError(log)
  const calls = createAccountConnections(CALLS_AT_A_TIME)
  const asked = new WeakMap<Request, Asked>()
  const stop = new AbortController()
  let opening: ReturnType<typeof openHandler> | null = null

  const guard = createRouteGuard<Caller>({
    account(request) {
      // A browser's session cookie does not count: tools call the API with a credential that they can pass on.
      if (gate.hasCredentials && readCredential(request.raw, 'api_key') === null)
        throw new ServiceError('unauthorized', 'a key is required: send Authorization: Bearer <key>')
      return gate.authenticate(request.raw, 'api_key')
    },
  })

  async function answer(request: FastifyRequest, reply: FastifyReply) {
    const { accountId } = guard.knownOf(request)
    const pool = poolOf(serviceAddressOf(request), accountId)
    const bytes = await readBodyBytes(request.raw, { maxBytes: MAX_BODY_BYTES })
    const parsedBody: unknown = await parseBody(request.raw, bytes, READING)
    if (request.raw.socket.destroyed) return reply.hijack()
    calls.take(accountId)
    const gone = new AbortController()
    reply.raw.once('close', () => {
      calls.giveBack(accountId)
      gone.abort(null)
    })
    const signal = AbortSignal.any([gone.signal, stop.signal])
    const message = new Request(new URL(PATH, serviceAddressOf(request).origin), {
      method: 'POST',
      headers: toHeaders(request),
      signal,
    })
    asked.set(message, { host: toHost(request, pool, parts), isDeployment: pool !== null })
    opening ??= openHandler(parts, asked)
    const handler = await opening
    const response = await handler.fetch(message, { parsedBody }).catch((error: unknown) => {
      if (stop.signal.aborted) throw new ServiceError('shutting_down', 'this process is about to stop')
      // The client is gone, and the call was aborted with it.
      if (gone.signal.aborted) return null
      throw error
    })
    if (response === null) return reply.hijack()
    return sendAnswer(response, reply)
  }

  const isOurs = (path: string) => path === gate.mountPrefix + PATH
  return {
    name: 'mcp',
    register: (app) =>
      mount(app, gate.mountPrefix, (mounted) => {
        mounted.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
        guard.protect(mounted)
        // Which scopes are needed depends on the tool: the API that it calls asks for them.
        mounted.post(PATH, needs('any_scope'), answer)
      }),
    allowedMethods: (path) => (isOurs(path) ? ['POST'] : []),
    answerErrorFor: (path) => (isOurs(path) ? answerError : null),
    // Jobs and calls go on; a client that waited for one asks another process again.
    drain: () => stop.abort(null),
  }
}

/** The protocol's library is large; a service that no agent comes to never loads it. */
async function openHandler({ version, log }: SurfaceParts, asked: WeakMap<Request, Asked>) {
  const { createAgentServers, openAgentHandler } = await import('./agent-server.ts')
  // Models belong to the account as a whole, and are not at the address of a deployment.
  const atService = createAgentServers({ version, isOnThisMachine: false, hasModels: true })
  const atDeployment = createAgentServers({ version, isOnThisMachine: false, hasModels: false })
  const onError = (err: Error) => log.debug({ err }, 'a request of an agent was refused or broke off')
  return openAgentHandler(({ requestInfo }) => {
    const known = requestInfo === undefined ? undefined : asked.get(requestInfo)
    if (known === undefined) throw new Error('a request of an agent came from nowhere')
    return known.isDeployment ? atDeployment(known.host) : atService(known.host)
  }, onError)
}

function toHost(
  request: FastifyRequest,
  pool: string | null,
  { gate, log, catalog, pictures }: SurfaceParts,
): ToolHost {
  const { origin, mountPrefix, deploymentId } = serviceAddressOf(request)
  const api = createServiceApi({
    baseUrl: ownAddressOf(request) + gate.mountPrefix + toDeploymentPrefix(deploymentId),
    publicUrl: origin + mountPrefix,
    credential: readCredential(request.raw, 'api_key'),
    headers: traceHeadersOf(request),
  })
  const onDefect = (err: unknown) => log.error({ err, requestId: request.id }, 'a tool of an agent failed unexpectedly')
  return { api, catalog: async () => catalog(pool), pictures, onDefect, openFile: null }
}

/** The same tools without a listener, for the command that an agent starts. */
export async function serveAgent(connection: AgentConnection): Promise<void> {
  const { serveOverStdio } = await import('./stdio.ts')
  return serveOverStdio(connection)
}

/** What a tool does belongs to the trace of the agent. */
function traceHeadersOf({ headers: { traceparent, tracestate } }: FastifyRequest): Record<string, string> {
  const context = readTraceContext(traceparent, tracestate)
  return context === null ? {} : toTraceHeaders(context)
}

/** The address at which this process accepted the connection, whatever its public name is. */
function ownAddressOf({ raw: { socket } }: FastifyRequest): string {
  const { localAddress = '', localPort } = socket
  const plain = localAddress.replace(/^::ffff:(?=\d+\.)/, '')
  return `http://${plain.includes(':') ? `[${plain}]` : plain}:${localPort}`
}

/** Those that the protocol reads. */
function toHeaders({ headers }: FastifyRequest): Headers {
  const kept = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    const isProtocol = name.startsWith('mcp-') || name === 'accept' || name === 'content-type'
    if (isProtocol && typeof value === 'string') kept.set(name, value)
  }
  return kept
}

// Refusals in front of the protocol as errors of JSON-RPC, with the status that clients act on.

// Of the range that JSON-RPC leaves to servers; the status says what kind it is.
const REFUSED = -32_000
const INTERNAL_ERROR = -32_603

function createAnswerMcpError(log: Log): AnswerError {
  return createErrorBoundary(log, {
    answerRefusal,
    defect: toAnswer(500, { code: INTERNAL_ERROR, message: DEFECT_MESSAGE }),
  })
}

function answerRefusal({ refusal, message, retryAfterSeconds }: ServiceError): ErrorAnswer {
  return toAnswer(REFUSAL_STATUS[refusal], { code: REFUSED, message }, retryAfterSeconds)
}

function toAnswer(status: number, error: object, retryAfterSeconds: number | null = null): ErrorAnswer {
  return toJsonAnswer(status, { jsonrpc: '2.0', id: null, error }, retryAfterSeconds)
}

// Writes an answer of the protocol's library to its connection. The head goes out before there is anything to tell, so that a client
// knows at once that its call was taken; and a client that left is noticed at once, so that nothing waits for it any longer.

const COMMENT = ': still there?\n\n'
// A client that is gone answers the first write with a reset, and only a second write fails because of it.
const PROBE_AGAIN_MS = 20

async function sendAnswer(answer: Response, reply: FastifyReply): Promise<void> {
  const { raw } = reply.hijack()
  for (const [name, value] of [...Object.entries(reply.getHeaders()), ...answer.headers])
    if (value !== undefined) raw.setHeader(name, value)
  raw.statusCode = answer.status
  raw.flushHeaders()
  if (answer.body === null) {
    raw.end()
    return
  }
  const { socket } = raw
  const isStream = answer.headers.get('Content-Type')?.startsWith('text/event-stream') === true
  // Frames are written whole, so a comment stands between two of them.
  const probe = () => void (isStream && !raw.writableEnded && raw.write(COMMENT))
  const timers = new Set<NodeJS.Timeout>()
  const onPeerEnd = () => {
    probe()
    timers.add(setTimeout(probe, PROBE_AGAIN_MS))
  }
  socket?.once('end', onPeerEnd)
  try {
    await pipeline(Readable.fromWeb(answer.body), raw)
  } catch {
    // One side closed the connection, so the error cannot be reported to it.
    raw.destroy()
  } finally {
    socket?.off('end', onPeerEnd)
    for (const timer of timers) clearTimeout(timer)
  }
}
