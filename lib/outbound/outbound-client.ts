/**
 * The client for all outgoing HTTP: keeps connections open, and bounds every phase of a request (see exchange.ts). It follows no
 * redirects: callers get them as answers and decide themselves.
 */
import { Agent, type buildConnector } from 'undici'
import {
  type ExchangeAnswer,
  type ExchangeLimits,
  type ExchangeRequest,
  exchange,
  type TotalLimits,
} from './exchange.ts'

// A server or proxy may close an idle connection at any moment; after a short idle time that is unlikely.
const KEEP_ALIVE_MS = 4_000

export interface OutboundClient extends AsyncDisposable {
  /** Resolves with any status. Throws ExchangeError when no complete answer arrived within the limits. */
  send(request: ExchangeRequest, limits: ExchangeLimits): Promise<ExchangeAnswer>
}

interface OutboundClientOptions {
  readonly connectionsPerHost: number
  /** The time limit for connecting, or a function that makes connections. Absent: the transport's default. */
  readonly connect?: { readonly timeout: number } | buildConnector.connector
}

export function openOutboundClient({ connectionsPerHost, connect }: OutboundClientOptions): OutboundClient {
  const agent = new Agent({
    connections: connectionsPerHost,
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    ...(connect !== undefined && { connect }),
  })
  return {
    send: (request, limits) => exchange(agent, request, limits),
    [Symbol.asyncDispose]: () => agent.destroy(),
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
