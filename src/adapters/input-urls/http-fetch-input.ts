/**
 * Files from addresses that callers gave, over HTTP. Only what the operator allows is asked: by default any public host over https.
 * An origin that the operator lists may be plain http, have any port and lie in a private network. Nothing may be where clouds
 * serve the credentials of machines, nor this service itself. Every redirect is judged like a first address.
 * Messages name the host and never what it was resolved to: a name that leads nowhere and one that leads inside look the same.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { Ticker } from '../../../lib/clock.ts'
import { ExchangeError } from '../../../lib/outbound/exchange.ts'
import {
  BlockedAddressError,
  isInnerAddress,
  isPublicAddress,
  matchesHost,
  type Network,
} from '../../../lib/outbound/network.ts'
import { openSafeFetcher } from '../../../lib/outbound/safe-fetch.ts'
import { MAX_TIMER_MS } from '../../../lib/waiting/sleep.ts'
import { type FetchInput, GivenFileError } from '../../domain/assets/given-files.ts'

/** Which addresses callers may name. */
export interface InputUrlPolicy {
  /** Every public host. */
  readonly isPublic: boolean
  /** Host names; a leading dot admits a domain with everything below it. */
  readonly hosts: readonly string[]
  /** `scheme://host:port`, trusted as they are. */
  readonly origins: readonly string[]
}

interface OwnAddresses {
  /** Names under which callers reach this service. */
  readonly hosts: readonly string[]
  /** Whether an IP address is one of this machine. */
  isHere(address: string): boolean
  /** Whether this service listens on the port. */
  isPort(port: number): boolean
}

interface FetchInputOptions {
  readonly policy: InputUrlPolicy
  readonly own: OwnAddresses
  /** The headers that the operator gives for a host, by its name. */
  readonly headers: ReadonlyMap<string, Readonly<Record<string, string>>>
  readonly network: Network
  readonly ticker: Ticker
  readonly version: string
  /** Those that need not be listed. */
  readonly ports?: readonly number[]
}

interface OpenedFetchInput extends AsyncDisposable {
  readonly fetchInput: FetchInput
}

const CONNECT_MS = 5_000
const FIRST_BYTE_MS = 10_000
// Slower than any line that is worth waiting for.
const LEAST_BYTES = 100 * 1024
const LEAST_EACH_MS = 10_000
const HTTPS_PORT = 443
// A parser drops blanks and control characters; an address is asked as it was given, or not at all.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const BLANKS = /[\u0000-\u0020\u007f]/

export function openFetchInput(options: FetchInputOptions): OpenedFetchInput {
  const { headers, ticker, version } = options
  const fetcher = openSafeFetcher({ networkOf: createNetworkOf(options), connectTimeoutMs: CONNECT_MS })
  const check = createCheck(options)
  const headersFor = (url: URL) => ({ 'user-agent': `atelier/${version}`, ...headers.get(url.hostname) })

  async function fetchInput(url: string, { maxBytes, signal }: Parameters<FetchInput>[1]) {
    const host = URL.parse(url)?.host ?? ''
    if (BLANKS.test(url) || host === '') throw new GivenFileError('fetch_forbidden', 'this is not an https address')
    const ending = new AbortController()
    const giveUp = (reason: string) => ending.abort(new GivenFileError('fetch_failed', `${host}: ${reason}`))
    const both = AbortSignal.any([signal, ending.signal])
    const toFailure = (error: unknown) => asFailure(error, host, both)
    const late = () => giveUp(`no answer came within ${FIRST_BYTE_MS / 1000} s`)
    let endWait = () => {}
    let finalUrl = url
    const ask = () =>
      fetcher.fetch(url, {
        ...{ signal: both, headTimeMs: MAX_TIMER_MS, bodyTimeMs: MAX_TIMER_MS, maxBytes, mayStream: () => true },
        ...{ allowedHosts: null, headersFor },
        check(to, from) {
          check(to, from)
          finalUrl = to.href
          endWait()
          endWait = ticker.after(FIRST_BYTE_MS, late)
        },
      })
    try {
      const answer = await ask().catch((error: unknown) => {
        // A connection that was kept may have been closed by its server at that very moment.
        if (error instanceof ExchangeError && error.fault === 'broken' && error.status === null) return ask()
        throw error
      })
      // Also while nobody reads it, its end must not be a defect.
      const body = (answer.body as Readable).on('error', () => {})
      const { status, headers: said } = answer
      const fault = findFault(status, said['content-encoding'])
      if (fault === null) return { ...toFetched(body, { ticker, giveUp, toFailure }), ...toFacts(said), finalUrl }
      body.destroy()
      throw new GivenFileError('fetch_failed', `${host}: ${fault}`, status === 200 ? null : status)
    } catch (error) {
      throw toFailure(error)
    } finally {
      endWait()
    }
  }

  return { fetchInput, [Symbol.asyncDispose]: () => fetcher[Symbol.asyncDispose]() }
}

function findFault(status: number, encoding: string | undefined): string | null {
  if (status !== 200) return `its server answered ${status}`
  return encoding === undefined || encoding === 'identity' ? null : 'its server sends compressed content'
}

interface BodyWatch {
  readonly ticker: Ticker
  giveUp(reason: string): void
  toFailure(error: unknown): unknown
}

/** What the headers of an answer say of a file. */
function toFacts(said: IncomingHttpHeaders) {
  const length = said['content-length'] ?? ''
  const disposition = said['content-disposition'] ?? ''
  const named = /;\s*filename="?([^";]{1,1024})"?/i.exec(disposition)?.[1]?.trim() ?? ''
  return {
    contentType: said['content-type'] ?? '',
    sizeBytes: /^\d{1,15}$/.test(length) ? Number(length) : null,
    fileName: named === '' ? null : named,
  }
}

function toFetched(body: Readable, { ticker, giveUp, toFailure }: BodyWatch) {
  let bytes = 0
  const endWatch = ticker.every(LEAST_EACH_MS, () => {
    if (bytes < LEAST_BYTES) giveUp('its server sends less than 10 KB per second')
    bytes = 0
  })
  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of body) {
        bytes += (chunk as Buffer).length
        yield chunk as Buffer
      }
    } catch (error) {
      throw toFailure(error)
    }
  }
  return {
    body: read(),
    async [Symbol.asyncDispose]() {
      endWatch()
      body.destroy()
    },
  }
}

/** Where addresses may lead: listed origins nearly anywhere, all others to public addresses alone. */
function createNetworkOf({ policy, own, network }: FetchInputOptions): (url: URL) => Network {
  const resolve: Network['resolve'] = (hostname) => network.resolve(hostname).catch(() => [])
  const others: Network = {
    resolve,
    mayConnect: (address) => network.mayConnect(address) && !own.isHere(address),
    allowsPlainHttp: false,
  }
  const mayReach = (address: string) => isPublicAddress(address) || isInnerAddress(address)
  const listed: Network = { resolve, mayConnect: mayReach, allowsPlainHttp: true }
  const listedOnOwnPort: Network = {
    ...listed,
    mayConnect: (address) => mayReach(address) && !own.isHere(address),
  }
  return (url) => {
    if (!policy.origins.includes(url.origin)) return others
    return own.isPort(portOf(url)) ? listedOnOwnPort : listed
  }
}

function portOf({ port, protocol }: URL): number {
  return port === '' ? (protocol === 'http:' ? 80 : HTTPS_PORT) : Number(port)
}

/** Throws BlockedAddressError for what the operator does not allow, before anything is looked up. */
function createCheck({ policy, own, ports = [HTTPS_PORT] }: FetchInputOptions) {
  return (url: URL, from: URL | null) => {
    const refuse = (reason: string) => {
      throw new BlockedAddressError(url.host, reason)
    }
    if (from?.protocol === 'https:' && url.protocol !== 'https:') refuse('a redirect leads from https to http')
    if (policy.origins.includes(url.origin)) return
    if (!policy.isPublic && !matchesHost(url.hostname, policy.hosts)) refuse('it is not on the list of this service')
    if (!ports.includes(portOf(url))) refuse(`the port ${portOf(url)} is not allowed`)
    if (matchesHost(url.hostname, own.hosts)) refuse('it is this service itself')
  }
}

/** What a caller is told; whatever is not about the fetch stays what it is. */
function asFailure(error: unknown, host: string, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  if (error instanceof BlockedAddressError) return new GivenFileError('fetch_forbidden', error.message)
  if (!(error instanceof ExchangeError)) return error
  if (error.fault === 'too_large') return new GivenFileError('file_too_large', `${host}: ${error.message}`)
  return new GivenFileError('fetch_failed', `${host}: ${error.message}`)
}
