/**
 * Fetches an address that came from outside: a provider's result, a caller's image. Scheme and host are checked before every hop,
 * the resolved IP address when the connection is made, and redirects are followed here, a few at most, so that no check is
 * skipped on the second hop. Headers are decided per hop too: a key is never sent to another host.
 */
import { type ExchangeAnswer, type OutboundClient, openOutboundClient, type PhaseLimits } from './exchange.ts'
import {
  BlockedAddressError,
  createGuardedConnector,
  matchesHost,
  mustBeOpen,
  type Network,
  unwrapBlocked,
} from './network.ts'

const MAX_REDIRECTS = 3
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
const CONNECTIONS_PER_HOST = 16
const URL_MAX_LENGTH = 8192

export interface SafeFetchOptions extends PhaseLimits {
  /** null: every public host. A leading dot admits a domain with everything below it. */
  readonly allowedHosts: readonly string[] | null
  /** Throws BlockedAddressError for what must not be tried; `from` is the address that led there. Asked for every hop. */
  readonly check?: (url: URL, from: URL | null) => void
  /** Asked again for every hop. */
  readonly headersFor?: (url: URL) => Readonly<Record<string, string>>
}

/** Throws BlockedAddressError or ExchangeError. The answer may have any status but a redirect. */
export type SafeFetch = (url: string, options: SafeFetchOptions) => Promise<ExchangeAnswer>

interface SafeFetcher extends AsyncDisposable {
  readonly fetch: SafeFetch
}

interface SafeFetcherOptions {
  /** Which network an address belongs to: some may lead where others must not. Each must be one of a few. */
  readonly networkOf: (url: URL) => Network
  /** Left out: that of other outbound calls. */
  readonly connectTimeoutMs?: number
}

export function openSafeFetcher(networks: Network | SafeFetcherOptions): SafeFetcher {
  const { networkOf, connectTimeoutMs } = 'networkOf' in networks ? networks : { networkOf: () => networks }
  const clients = new Map<Network, OutboundClient>()
  function clientOf(network: Network): OutboundClient {
    const open = () =>
      openOutboundClient({
        connectionsPerHost: CONNECTIONS_PER_HOST,
        connect: createGuardedConnector(network, connectTimeoutMs),
      })
    const client = clients.get(network) ?? open()
    clients.set(network, client)
    return client
  }
  return {
    fetch: (url, options) => followByHand(url, options, { networkOf, clientOf }),
    async [Symbol.asyncDispose]() {
      await Promise.all([...clients.values()].map((client) => client[Symbol.asyncDispose]()))
    },
  }
}

interface Ways extends Pick<SafeFetcherOptions, 'networkOf'> {
  readonly clientOf: (network: Network) => OutboundClient
}

async function followByHand(
  start: string,
  options: SafeFetchOptions,
  { networkOf, clientOf }: Ways,
): Promise<ExchangeAnswer> {
  let url = readAddress(start, null)
  let from: URL | null = null
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const network = networkOf(url)
    checkAddress(url, network, options)
    options.check?.(url, from)
    const request = {
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: 'GET' as const,
      headers: { accept: '*/*', 'accept-encoding': 'identity', ...options.headersFor?.(url) },
    }
    const answer = await clientOf(network).send(request, options).catch(unwrapBlocked)
    const location = REDIRECTS.has(answer.status) ? answer.headers.location : undefined
    if (location === undefined) return answer
    if (!Buffer.isBuffer(answer.body)) answer.body.destroy()
    from = url
    url = readAddress(location, url)
  }
  throw new BlockedAddressError(url.host, `more than ${MAX_REDIRECTS} redirects`)
}

function readAddress(text: string, base: URL | null): URL {
  if (text.length > URL_MAX_LENGTH) throw new BlockedAddressError(base?.host ?? '', 'the address is too long')
  const url = URL.parse(text, base?.href)
  if (url === null) throw new BlockedAddressError(base?.host ?? '', 'it is not an address')
  return url
}

/** Throws BlockedAddressError when the address must not even be tried. */
function checkAddress(url: URL, network: Network, { allowedHosts }: SafeFetchOptions): void {
  mustBeOpen(url, network)
  if (allowedHosts !== null && !matchesHost(url.hostname, allowedHosts)) {
    throw new BlockedAddressError(url.host, 'the host is not on the list of allowed hosts')
  }
}
