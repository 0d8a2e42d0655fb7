/**
 * Calls to one provider's API. The provider's base address comes from the operator and has its own connections; every other
 * address came out of an answer, so it must be on the provider's hosts and is fetched by the guarded client. The key is sent to
 * these hosts only.
 */
import {
  type ExchangeAnswer,
  ExchangeError,
  type ExchangeRequest,
  type PhaseLimits,
} from '../../../../lib/outbound/exchange.ts'
import { matchesHost } from '../../../../lib/outbound/network.ts'
import { openOutboundClient } from '../../../../lib/outbound/outbound-client.ts'
import type { Tracer } from '../../../../lib/tracing/tracer.ts'
import type { SafeFetch } from './safe-fetch.ts'

// Twice the number of generations, since polls and downloads run beside them.
const CONNECTIONS_PER_SLOT = 2

export interface ApiRequest extends Omit<ExchangeRequest, 'origin' | 'path'> {
  /** A path below the provider's base, or an absolute address that an answer gave. */
  readonly target: string
  /** Sent to the provider's hosts only. */
  readonly keyHeaders: Readonly<Record<string, string>>
}

export interface ApiClient extends AsyncDisposable {
  call(request: ApiRequest, limits: PhaseLimits): Promise<ExchangeAnswer>
  /** Whether an address is the provider's API itself, which may see the key. */
  isApiHost(url: URL): boolean
}

interface ApiClientOptions {
  readonly baseUrl: string
  readonly apiHosts: readonly string[]
  readonly concurrency: number
  readonly fetch: SafeFetch
  /** Left out: tracing is off. */
  readonly traces?: { readonly tracer: Tracer; readonly provider: string }
}

export function openApiClient({ baseUrl, apiHosts, concurrency, fetch, traces }: ApiClientOptions): ApiClient {
  const base = new URL(baseUrl)
  const basePath = base.pathname.replace(/\/$/, '')
  const client = openOutboundClient({
    connectionsPerHost: concurrency * CONNECTIONS_PER_SLOT,
    ...(traces !== undefined && {
      traces: { tracer: traces.tracer, nameOf: ({ method }) => `${traces.provider} ${method}` },
    }),
  })
  const isApiHost = (url: URL) =>
    url.origin === base.origin || (url.protocol === base.protocol && matchesHost(url.hostname, apiHosts))

  function callOther({ target, method, keyHeaders, headers }: ApiRequest, limits: PhaseLimits) {
    if (method !== 'GET') throw new Error('an address from an answer is only ever read')
    const headersFor = (url: URL) => (isApiHost(url) ? { ...headers, ...keyHeaders } : headers)
    return fetch(target, { ...limits, allowedHosts: apiHosts, headersFor })
  }

  return {
    isApiHost,
    async call(request, limits) {
      const url = request.target.startsWith('/') ? null : URL.parse(request.target)
      if (url !== null && url.origin !== base.origin) return callOther(request, limits)
      const path = url === null ? `${basePath}${request.target}` : `${url.pathname}${url.search}`
      const { method, body } = request
      const headers = { ...request.headers, ...request.keyHeaders }
      const answer = await client.send({ origin: base.origin, path, method, body, headers }, limits)
      if (answer.status < 300 || answer.status >= 400) return answer
      if (!Buffer.isBuffer(answer.body)) answer.body.destroy()
      // A redirect of the API could lead anywhere, with the key in hand.
      throw new ExchangeError('broken', 'the provider redirects', { wasSent: true, status: answer.status })
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  }
}
