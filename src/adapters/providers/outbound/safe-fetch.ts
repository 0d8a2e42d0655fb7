/**
 * Reads an address that somebody else wrote: a provider's result, a caller's image. Scheme and host are judged before every
 * hop, the resolved address when the connection is made, and redirects are followed here, a few at most, so that none of
 * the checks is skipped on the second hop. What is sent along is decided per hop too: a key never travels to another host.
 */
import { Agent, type Dispatcher } from 'undici'
import { type ExchangeAnswer, type ExchangeLimits, exchange } from '../../../../lib/outbound/exchange.ts'
import { createGuardedConnector } from './guarded-connect.ts'
import { BlockedAddressError, matchesHost, type Network } from './network.ts'

const MAX_REDIRECTS = 3
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
const CONNECTIONS_PER_HOST = 16
const KEEP_ALIVE_MS = 4000
const URL_MAX_LENGTH = 8192

export interface SafeFetchOptions extends ExchangeLimits {
  /** null: every public host. A leading dot admits a domain with everything below it. */
  readonly allowedHosts: readonly string[] | null
  /** Asked again for every hop. */
  readonly headersFor?: (url: URL) => Readonly<Record<string, string>>
}

/** Throws BlockedAddressError or ExchangeError. The answer may have any status but a redirect. */
export type SafeFetch = (url: string, options: SafeFetchOptions) => Promise<ExchangeAnswer>

export interface SafeFetcher extends AsyncDisposable {
  readonly fetch: SafeFetch
}

export function openSafeFetcher(network: Network): SafeFetcher {
  const agent = new Agent({
    connect: createGuardedConnector(network),
    allowH2: false,
    connections: CONNECTIONS_PER_HOST,
    keepAliveTimeout: KEEP_ALIVE_MS,
    pipelining: 1,
  })
  return {
    fetch: (url, options) => followByHand(agent, url, { ...options, network }),
    [Symbol.asyncDispose]: () => agent.destroy(),
  }
}

interface FollowOptions extends SafeFetchOptions {
  readonly network: Network
}

async function followByHand(agent: Dispatcher, start: string, options: FollowOptions): Promise<ExchangeAnswer> {
  let url = readAddress(start, null)
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    checkAddress(url, options)
    const request = {
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: 'GET' as const,
      headers: { accept: '*/*', 'accept-encoding': 'identity', ...options.headersFor?.(url) },
    }
    const answer = await exchange(agent, request, options).catch(unwrapBlocked)
    const location = REDIRECTS.has(answer.status) ? answer.headers.location : undefined
    if (location === undefined) return answer
    if (!Buffer.isBuffer(answer.body)) answer.body.destroy()
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
export function checkAddress(
  url: URL,
  { network, allowedHosts }: Pick<FollowOptions, 'network' | 'allowedHosts'>,
): void {
  const isPlain = url.protocol === 'http:' && network.allowsPlainHttp
  if (url.protocol !== 'https:' && !isPlain) throw new BlockedAddressError(url.host, 'only https is allowed')
  if (url.username !== '' || url.password !== '') throw new BlockedAddressError(url.host, 'it carries a user name')
  if (allowedHosts !== null && !matchesHost(url.hostname, allowedHosts)) {
    throw new BlockedAddressError(url.host, 'the host is not on the list of allowed hosts')
  }
}

/** The guard speaks through the connection's error; its own word is the clearer one. */
function unwrapBlocked(error: unknown): never {
  const cause = error instanceof Error ? error.cause : null
  throw cause instanceof BlockedAddressError ? cause : error
}
