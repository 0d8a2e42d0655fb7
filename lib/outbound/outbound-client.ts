/**
 * The one way out over HTTP: kept connections, and requests whose every phase is bounded (see exchange.ts). Redirects are
 * answers like any other: whoever may follow one decides that for itself.
 */
import { Agent, type buildConnector } from 'undici'
import {
  type ExchangeAnswer,
  type ExchangeLimits,
  type ExchangeRequest,
  exchange,
  type TotalLimits,
} from './exchange.ts'

// A server or proxy between us may close an idle connection at any moment; a young one is hardly ever hit.
const KEEP_ALIVE_MS = 4_000

export interface OutboundClient extends AsyncDisposable {
  /** Any status is an answer. Throws ExchangeError when no whole answer came within the limits. */
  send(request: ExchangeRequest, limits: ExchangeLimits): Promise<ExchangeAnswer>
}

interface OutboundClientOptions {
  readonly connectionsPerHost: number
  /** How connections are made: how long that may take, or a function that makes them. Absent: the transport's default. */
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
  /** False: only the head of the answer counts, and its body comes back empty, however long it is. */
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
