/**
 * What outbound calls may reach. By default that is the real resolver and public addresses only; tests and operators of closed
 * networks widen it explicitly. Every address that came from outside (a poll URL, an asset, a media input) is checked against it.
 */
import { lookup } from 'node:dns/promises'
import { isPublicAddress } from './public-address.ts'

export interface ResolvedAddress {
  readonly address: string
  readonly family: number
}

export interface Network {
  resolve(hostname: string): Promise<readonly ResolvedAddress[]>
  mayConnect(address: string): boolean
  /** Plain http is only for tests and gateways on a private network. */
  readonly allowsPlainHttp: boolean
}

export const publicInternet: Network = {
  resolve: (hostname) => lookup(hostname, { all: true, verbatim: true }),
  mayConnect: isPublicAddress,
  allowsPlainHttp: false,
}

/** For operators who run providers and asset servers themselves; it has to be configured explicitly. */
export const privateNetwork: Network = { ...publicInternet, mayConnect: () => true, allowsPlainHttp: true }

/** An address that outbound calls must not use. The message names the host, never the rest of the URL. */
export class BlockedAddressError extends Error {
  readonly host: string
  constructor(host: string, reason: string) {
    super(`the address at ${host || 'an unnamed host'} is refused: ${reason}`)
    this.name = 'BlockedAddressError'
    this.host = host
  }
}

/** `.bfl.ai` admits the domain and everything below it; `api.bfl.ai` admits that host alone. */
export function matchesHost(hostname: string, allowed: readonly string[]): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, '')
  return allowed.some((entry) => {
    const suffix = entry.toLowerCase()
    return suffix.startsWith('.') ? host === suffix.slice(1) || host.endsWith(suffix) : host === suffix
  })
}

/** The hostname as an address when it is one: `[::1]` is written in brackets in a URL. */
export function toLiteral(hostname: string): string {
  return hostname.startsWith('[') && hostname.endsWith(']') ? hostname.slice(1, -1) : hostname
}

/** Throws BlockedAddressError for a scheme that the network does not allow, and for an address with a user name in it. */
export function mustBeOpen(url: URL, network: Network): void {
  const isPlain = url.protocol === 'http:' && network.allowsPlainHttp
  if (url.protocol !== 'https:' && !isPlain) throw new BlockedAddressError(url.host, 'only https is allowed')
  if (url.username !== '' || url.password !== '') throw new BlockedAddressError(url.host, 'it carries a user name')
}
