/**
 * The client for all outgoing HTTP: keeps connections open, and bounds every phase of a request (see exchange.ts). It follows no
 * redirects: callers get them as answers and decide themselves.
 */

import { createRequire } from 'node:module'
import type * as undici from 'undici'
import type { Agent, buildConnector } from 'undici'
import { toTraceHeaders } from '../tracing/trace-context.ts'
import { inSpan, type Tracer } from '../tracing/tracer.ts'
import {
  type ExchangeAnswer,
  type ExchangeLimits,
  type ExchangeRequest,
  exchange,
  type TotalLimits,
} from './exchange.ts'

// The HTTP client, loaded with the first request that leaves: it takes a good part of a tenth of a second, which a start and a
// service that calls nobody can do without.

const require = createRequire(import.meta.url)
let loaded: typeof undici | null = null

export function loadUndici(): typeof undici {
  loaded ??= require('undici') as typeof undici
  return loaded
}

// A server or proxy may close an idle connection at any moment; after a short idle time that is unlikely.
const KEEP_ALIVE_MS = 4_000
const FIRST_FAILURE = 400

export interface OutboundClient extends AsyncDisposable {
  /** Resolves with any status. Throws ExchangeError when no complete answer arrived within the limits. */
  send(request: ExchangeRequest, limits: ExchangeLimits): Promise<ExchangeAnswer>
}

interface OutboundClientOptions {
  readonly connectionsPerHost: number
  /** The time limit for connecting, or a function that makes connections. Absent: the transport's default. */
  readonly connect?: { readonly timeout: number } | buildConnector.connector
  /** Left out: no request is traced, and none tells its server of a trace. */
  readonly traces?: OutboundTraces
}

interface OutboundTraces {
  readonly tracer: Tracer
  /** What a request is called in a trace: never by anything that a user wrote. */
  readonly nameOf: (request: ExchangeRequest) => string
}

export function openOutboundClient({ connectionsPerHost, connect, traces }: OutboundClientOptions): OutboundClient {
  let agent: Agent | null = null
  let isClosed = false
  function openAgent(): Agent {
    const opened = new (loadUndici().Agent)({
      connections: connectionsPerHost,
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      ...(connect !== undefined && { connect }),
    })
    // It refuses what it is asked after its end as it refuses everything else.
    if (isClosed) void opened.destroy()
    return opened
  }
  const send: OutboundClient['send'] = (request, limits) => {
    agent ??= openAgent()
    return exchange(agent, request, limits)
  }
  return {
    send: traces === undefined ? send : withTraces(send, traces),
    async [Symbol.asyncDispose]() {
      isClosed = true
      await agent?.destroy()
    },
  }
}

/** A span for each request that is made on behalf of another one; what the program does of its own accord is not traced. */
function withTraces(send: OutboundClient['send'], { tracer, nameOf }: OutboundTraces): OutboundClient['send'] {
  return (request, limits) => {
    if (tracer.active() === undefined) return send(request, limits)
    const attributes = { 'http.request.method': request.method, 'server.address': new URL(request.origin).host }
    return inSpan(tracer, nameOf(request), { kind: 'client', attributes }, async (span) => {
      const headers = { ...request.headers, ...toTraceHeaders(span.context) }
      const answer = await send({ ...request, headers }, limits)
      span.set({ 'http.response.status_code': answer.status })
      if (answer.status >= FIRST_FAILURE) span.fail(String(answer.status))
      return answer
    })
  }
}

interface OnceRequest extends Omit<ExchangeRequest, 'origin' | 'path'> {
  readonly url: string
  /** False: only status and headers are needed; the body is not read and comes back empty. */
  readonly wantsBody: boolean
}

interface OnceAnswer extends ExchangeAnswer {
  readonly body: Buffer
}

/** For a call so rare that no connection is worth keeping. Throws ExchangeError. */
export async function sendOnce(
  { url, wantsBody, ...request }: OnceRequest,
  limits: Omit<TotalLimits, 'mayStream'>,
): Promise<OnceAnswer> {
  const { origin, pathname, search, username, password } = new URL(url)
  if (username !== '' || password !== '') throw new Error('an address with a user name in it is not called')
  await using client = openOutboundClient({ connectionsPerHost: 1 })
  const whole = { ...limits, mayStream: () => !wantsBody }
  const { status, headers, body } = await client.send({ ...request, origin, path: `${pathname}${search}` }, whole)
  if (Buffer.isBuffer(body)) return { status, headers, body }
  body.on('error', () => {}).destroy()
  return { status, headers, body: Buffer.alloc(0) }
}
