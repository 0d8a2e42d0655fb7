/**
 * One listener for all surfaces. In front of the framework stand the hot routes; behind it, whatever it cannot parse is still
 * answered in an envelope. It bounds headers, connections and time, and ends in order: no new connections, event
 * streams are told, requests under way finish, and after a bounded wait everything is cut.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyInstance } from 'fastify'
import type { BodyMemory } from './kit/bodies/body-memory.ts'
import {
  answerBrokenRequests,
  answerHalfClosed,
  createShouldUpgrade,
  isStreamSocket,
  prepareDrain,
  routeUpgrades,
  writeAnswer,
} from './kit/connections/raw-connections.ts'
import type { RouteDeployment } from './kit/guards/addresses.ts'
import type { Gate } from './kit/guards/gate.ts'
import { type DeclaredRoute, guardRequests, watchRoutes } from './kit/guards/routes.ts'
import { pathOf, requestIdOf, routeOf } from './kit/request.ts'
import { type AnswerError, mount, type Surface, type UpgradeRoute } from './kit/surface.ts'
import type { TraceRequest } from './kit/tracing.ts'

/** One answered request, for metrics and the request log. */
export interface AnsweredRequest {
  readonly requestId: string
  readonly method: string
  /** The route's template; '' when none took it. */
  readonly route: string
  readonly status: number
  readonly durationMs: number
}

export interface ServerOptions {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  readonly gate: Gate
  readonly surfaces: readonly Surface[]
  /** The envelope of answers that belong to no surface. */
  readonly answerError: AnswerError
  /** How long requests under way may take to finish when the server closes. */
  readonly drainMs?: number
  readonly maxConnections?: number
  /** Silence on a connection with a request under way. */
  readonly idleMs?: number
  /** null, or left out: no request is observed, and none pays for it. */
  readonly onAnswered?: ((request: AnsweredRequest) => void) | null
  readonly trace?: TraceRequest | null
  /** Bounds what bodies take in memory together; left out: each has its own bound only. */
  readonly bodyMemory?: BodyMemory | null
  /** Takes a deployment's prefix off the address before anything else reads it; left out: no prefix means anything. */
  readonly routeDeployment?: RouteDeployment | null
}

export interface RunningServer extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly routes: readonly DeclaredRoute[]
  /** A second call waits for the first. */
  close(): Promise<void>
}

const DRAIN_MS = 10_000
const MAX_CONNECTIONS = 20_000
const IDLE_MS = 120_000
// Room for the longest list query; see the URL bound in the gate.
const MAX_HEADER_BYTES = 32_768
const MAX_HEADERS = 100
const HEADERS_MS = 30_000
// An upload may take hours; silence is bounded by IDLE_MS, and small bodies have a deadline of their own.
const REQUEST_MS = 6 * 60 * 60 * 1000
// Above the 60 s after which common load balancers give idle connections up, so that they close first.
const KEEP_ALIVE_MS = 65_000
// When the kernel begins to ask whether a silent peer still exists.
const TCP_PROBE_MS = 60_000
// Longer than any id; the router refuses longer path segments before it looks at them.
const MAX_SEGMENT_LENGTH = 200
const METHODS_WITH_BODY = ['POST', 'PUT', 'PATCH', 'DELETE']

export async function openServer(options: ServerOptions): Promise<RunningServer> {
  const { surfaces } = options
  let isDraining = false
  const hotRoutes = surfaces.flatMap(({ hotRoute }) => hotRoute ?? [])
  const app = createApp(options, (framework) => createHttpServer(options, framework, answer))
  const { server } = app
  const drain = prepareDrain(server)

  function answer(framework: Handler, request: IncomingMessage, response: ServerResponse): void {
    // A stream's connection is no longer HTTP; if a client sends another request on it, it is closed.
    if (isStreamSocket(request.socket)) {
      request.socket.destroy()
      return
    }
    options.routeDeployment?.(request)
    if (isDraining) response.setHeader('Connection', 'close')
    else {
      const { url = '' } = request
      for (const route of hotRoutes) if (url.startsWith(route.prefix) && route.answer(request, response)) return
    }
    framework(request, response)
  }

  routeUpgrades(server, upgradesOf(options), options.gate)
  const routes = watchRoutes(app)
  for (const surface of surfaces) mount(app, '', (own) => surface.register(own))
  await app.ready()
  const declared = routes()
  await listen(server, options)
  const { port } = server.address() as AddressInfo

  async function end(): Promise<void> {
    isDraining = true
    const onStopped = () => {
      for (const surface of surfaces) surface.drain?.()
    }
    await drain.run({ withinMs: options.drainMs ?? DRAIN_MS, onStopped })
    await app.close()
  }

  let closing: Promise<void> | null = null
  const close = () => {
    closing ??= end()
    return closing
  }
  return { url: toUrl(options.host, port), port, routes: declared, close, [Symbol.asyncDispose]: close }
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void

function createApp(options: ServerOptions, serverFactory: (framework: Handler) => Server): FastifyInstance {
  const { gate, answerError, surfaces } = options
  const answerErrorFor = (path: string) =>
    surfaces.map((surface) => surface.answerErrorFor?.(path)).find((answer) => answer != null) ?? answerError
  const app = fastify({
    serverFactory,
    logger: false,
    genReqId: requestIdOf,
    requestIdHeader: false,
    // A path that cannot be routed: a bad escape, an endless segment. No hook has run for it.
    frameworkErrors(error, request, reply) {
      const headers = gate.answerHeaders(request.headers.origin, request.id)
      writeAnswer(reply.raw, headers, answerErrorFor(pathOf(request.raw.url ?? ''))(error, request.id))
    },
    routerOptions: {
      maxParamLength: MAX_SEGMENT_LENGTH,
      // Operations that take a query read the raw text: leniency would hide what must be refused.
      querystringParser: () => ({}),
    },
  })
  // Surfaces read bodies themselves: streaming, whatever the media type says, with bounds of their own.
  for (const method of METHODS_WITH_BODY) app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  const allowedMethods = (path: string) => surfaces.flatMap((surface) => surface.allowedMethods(path))
  guardRequests(app, { gate, answerErrorFor, allowedMethods })
  return app
}

function createHttpServer(
  options: ServerOptions,
  framework: Handler,
  answer: (framework: Handler, request: IncomingMessage, response: ServerResponse) => void,
): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // A missing Host is refused by the gate, in the envelope.
    requireHostHeader: false,
    keepAlive: true,
    keepAliveInitialDelay: TCP_PROBE_MS,
    noDelay: true,
    shouldUpgradeCallback: createShouldUpgrade(upgradesOf(options)),
  })
  server.maxHeadersCount = MAX_HEADERS
  server.maxConnections = options.maxConnections ?? MAX_CONNECTIONS
  server.setTimeout(options.idleMs ?? IDLE_MS)
  const { onAnswered = null, trace = null, bodyMemory = null } = options
  server.on('request', (request, response) => {
    bodyMemory?.admit(request, response)
    if (onAnswered !== null) observe(request, response, onAnswered)
    if (trace === null) answer(framework, request, response)
    else trace(request, response, () => answer(framework, request, response))
  })
  // Node would answer an expectation that it does not know with a bare 417; RFC 9110 (10.1.1) lets us ignore it.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  answerBrokenRequests(server, options)
  answerHalfClosed(server)
  return server
}

/** Throws for one that does not declare what it needs, as for routes. */
function upgradesOf({ surfaces }: ServerOptions): UpgradeRoute[] {
  return surfaces.flatMap(({ name, upgrades = null }) => {
    if (upgrades === null) return []
    if (upgrades.right === undefined) throw new Error(`the sockets of ${name} do not declare what they need`)
    return [upgrades]
  })
}

function observe(request: IncomingMessage, response: ServerResponse, tell: (answered: AnsweredRequest) => void): void {
  const startedAt = performance.now()
  response.once('close', () => {
    tell({
      requestId: requestIdOf(request),
      method: request.method ?? '',
      route: routeOf(request),
      status: response.statusCode,
      durationMs: performance.now() - startedAt,
    })
  })
}

function listen(server: Server, { host, port }: ServerOptions): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen({ host, port }, () => {
    server.off('error', reject)
    resolve()
  })
  return promise
}

function toUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
