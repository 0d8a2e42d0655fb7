/**
 * Bytes of an address from a position on. Only https to public hosts, unless the operator lists an origin; every redirect is judged
 * like a first address, and the headers that the operator gives for a host are sent to that host alone.
 */
import type { Readable } from 'node:stream'
import { systemTicker } from '../../../../lib/clock.ts'
import { ExchangeError } from '../../../../lib/outbound/exchange.ts'
import { BlockedAddressError, type Network } from '../../../../lib/outbound/network.ts'
import { openSafeFetcher } from '../../../../lib/outbound/safe-fetch.ts'
import { MAX_TIMER_MS } from '../../../../lib/waiting/sleep.ts'
import { mayReachInner } from '../sources/git-source.ts'

interface RangeWish {
  readonly from: number
  /** What the server called the content when its beginning came; null: not known. */
  readonly tag: string | null
  readonly signal: AbortSignal
}

interface RangeAnswer extends AsyncDisposable {
  /** Of the first byte that comes: 0 if the server gives all, or if its content has changed. */
  readonly start: number
  readonly totalBytes: number | null
  readonly tag: string | null
  readonly body: AsyncIterable<Uint8Array>
}

/** Throws an Error with a text for the author of the build: it names the host, never the rest of the address. */
export type FetchRange = (address: string, wish: RangeWish) => Promise<RangeAnswer>

/** What the reader of a failure is told to do. */
export interface Advice {
  readonly again: string
  readonly header: string
}

export const BUILD_ADVICE: Advice = {
  again: 'cut the release again',
  header: 'have the operator give the builder a header for this host',
}

export interface OutboundRules {
  readonly network: Network
  /** Those of the operator, which may be plain http and lie in a private network. */
  readonly origins: readonly string[]
}

interface FetcherOptions extends OutboundRules {
  /** By the name of a host. */
  readonly headers: ReadonlyMap<string, Readonly<Record<string, string>>>
  readonly version: string
  /** Left out: that for the author of a build. */
  readonly advice?: Advice
}

const HEAD_MS = 60_000
const SILENT_MS = 60_000
const LEAST_BYTES = 1024

export function openRangeFetcher({
  network,
  origins,
  headers,
  version,
  advice = BUILD_ADVICE,
}: FetcherOptions): AsyncDisposable & { readonly fetchRange: FetchRange } {
  const fetcher = openBuildFetcher({ network, origins })

  async function fetchRange(address: string, { from, tag, signal }: RangeWish): Promise<RangeAnswer> {
    const host = URL.parse(address)?.host ?? ''
    const range: Readonly<Record<string, string>> =
      from > 0 && tag !== null ? { range: `bytes=${from}-`, 'if-range': tag } : {}
    const silence = new AbortController()
    const answer = await fetcher
      .fetch(address, {
        ...{ signal: AbortSignal.any([signal, silence.signal]), headTimeMs: HEAD_MS, bodyTimeMs: MAX_TIMER_MS },
        ...{ maxBytes: Number.MAX_SAFE_INTEGER, mayStream: () => true, allowedHosts: null },
        headersFor: (url) => ({ 'user-agent': `atelier/${version}`, ...range, ...headers.get(url.hostname) }),
        check: mustStayEncrypted,
      })
      .catch((error: unknown) => {
        signal.throwIfAborted()
        if (error instanceof BlockedAddressError)
          throw new Error(`${error.message}; give a public https address, or have the operator list its origin`)
        if (error instanceof ExchangeError)
          throw new Error(`${host}: ${error.message}; ${advice.again} when its server answers`)
        throw error
      })
    const body = (answer.body as Readable).on('error', () => {})
    if (answer.status === 416 && from > 0) {
      body.destroy()
      // All of it had come before, or the content is another one now.
      if (answer.headers['content-range'] === `bytes */${from}`)
        return { start: from, totalBytes: from, tag, body: NOTHING, async [Symbol.asyncDispose]() {} }
      return fetchRange(address, { from: 0, tag: null, signal })
    }
    if (answer.status === 206 && !(answer.headers['content-range'] ?? '').startsWith(`bytes ${from}-`)) {
      body.destroy()
      throw new Error(`${host} gave another part than was asked for; upload the file instead`)
    }
    const problem = refuseStatus(answer.status, host, advice)
    if (problem !== null) {
      body.destroy()
      throw new Error(problem)
    }
    const start = answer.status === 206 ? from : 0
    const length = Number(answer.headers['content-length'] ?? Number.NaN)
    const etag = answer.headers['etag']
    return {
      start,
      totalBytes: Number.isSafeInteger(length) ? start + length : null,
      // A weak tag does not promise the same bytes.
      tag: typeof etag === 'string' && !etag.startsWith('W/') ? etag : (answer.headers['last-modified'] ?? null),
      body: watch(body, silence),
      async [Symbol.asyncDispose]() {
        body.destroy()
      },
    }
  }

  return { fetchRange, [Symbol.asyncDispose]: () => fetcher[Symbol.asyncDispose]() }
}

export function openBuildFetcher({ network, origins }: OutboundRules) {
  const others: Network = { ...network, resolve: (host) => network.resolve(host).catch(() => []) }
  const listed: Network = { ...others, mayConnect: mayReachInner, allowsPlainHttp: true }
  return openSafeFetcher({ networkOf: (url) => (origins.includes(url.origin) ? listed : others) })
}

/** Of every redirect. Throws BlockedAddressError. */
export function mustStayEncrypted(to: URL, before: URL | null): void {
  if (before?.protocol === 'https:' && to.protocol !== 'https:')
    throw new BlockedAddressError(to.host, 'a redirect leads from https to http')
}

const NOTHING: AsyncIterable<Uint8Array> = { async *[Symbol.asyncIterator]() {} }

function refuseStatus(status: number, host: string, { again, header }: Advice): string | null {
  if (status === 200 || status === 206) return null
  if (status === 404 || status === 410)
    return `${host} has it no longer (${status}); give another address, or upload it`
  if (status === 401 || status === 403) return `${host} does not give it to us (${status}); ${header}, or upload it`
  return `${host} answered ${status}; ${again} when it is well`
}

async function* watch(body: Readable, silence: AbortController): AsyncGenerator<Uint8Array> {
  let bytes = 0
  const end = systemTicker.every(SILENT_MS, () => {
    if (bytes < LEAST_BYTES) silence.abort(new Error('the server is silent'))
    bytes = 0
  })
  try {
    for await (const chunk of body) {
      bytes += (chunk as Buffer).length
      yield chunk as Buffer
    }
  } finally {
    end()
  }
}
