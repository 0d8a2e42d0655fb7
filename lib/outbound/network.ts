/**
 * What outbound calls may reach. By default that is the real resolver and public addresses only; tests and operators of closed
 * networks widen it explicitly. Every address that came from outside (a poll URL, an asset, a media input) is checked against it.
 */

import { lookup } from 'node:dns/promises'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import type { buildConnector } from 'undici'
import { loadUndici } from './exchange.ts'

// Whether an IP address belongs to the public internet. Not public are private, loopback, link-local, shared (carrier), multicast
// and documentation addresses, and every IPv6 form that wraps an IPv4 address, because it could carry any of the others past a
// check of the outer address.

const NOT_PUBLIC_V4 = [
  ['0.0.0.0', 8], // this network
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // shared address space of carriers
  ['127.0.0.0', 8], // loopback
  ['169.254.0.0', 16], // link-local, with the metadata services of the clouds
  ['168.63.129.16', 32], // what one cloud tells its machines
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments
  ['192.0.2.0', 24], // documentation
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16], // private
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, and broadcast
] as const

// Exceptions inside 2000::/3, the block of global unicast addresses.
const NOT_PUBLIC_V6 = [
  ['2001::', 23], // protocol assignments: Teredo wraps IPv4
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4 wraps IPv4
  ['3fff::', 20], // documentation
] as const

const refused = new BlockList()
for (const [net, prefix] of NOT_PUBLIC_V4) refused.addSubnet(net, prefix, 'ipv4')
for (const [net, prefix] of NOT_PUBLIC_V6) refused.addSubnet(net, prefix, 'ipv6')

// Only 2000::/3 is global unicast; outside it lie loopback, mapped addresses, NAT64, unique local, link-local and multicast.
const globalV6 = new BlockList()
globalV6.addSubnet('2000::', 3, 'ipv6')

/** Also false for everything that is not an IP address. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !refused.check(address, 'ipv4')
  // An address with a zone belongs to a local link.
  if (family !== 6 || address.includes('%')) return false
  return globalV6.check(address, 'ipv6') && !refused.check(address, 'ipv6')
}

// Networks of an operator's own. Each family has its list: an IPv4 address inside an IPv6 address counts as neither.
const innerV4 = new BlockList()
for (const [net, prefix] of [
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
] as const)
  innerV4.addSubnet(net, prefix, 'ipv4')
const innerV6 = new BlockList()
innerV6.addAddress('::1', 'ipv6')
innerV6.addSubnet('fc00::', 7, 'ipv6')

// Where two clouds serve the credentials of a machine, other than link-local.
const METADATA: ReadonlySet<string> = new Set(['100.100.100.200', 'fd00:ec2::254'])

/** Whether an address belongs to this machine or to a private network, and is none where a cloud serves credentials. */
export function isInnerAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 0 || address.includes('%') || METADATA.has(address)) return false
  return family === 4 ? innerV4.check(address, 'ipv4') : innerV6.check(address, 'ipv6')
}

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

// Connections that go only where a network allows, whatever a name leads to at the moment they are made.

const CONNECT_TIMEOUT_MS = 10_000

/**
 * Connections to addresses that were checked, and to no others. The name is resolved once per connection and the socket gets
 * exactly the addresses that passed, so a name that answers differently the second time (DNS rebinding) gains nothing.
 */
export function createGuardedConnector(network: Network, timeoutMs = CONNECT_TIMEOUT_MS): buildConnector.connector {
  let connect: buildConnector.connector | null = null
  const openConnector = () =>
    loadUndici().buildConnector({
      allowH2: false,
      timeout: timeoutMs,
      lookup: createGuardedLookup(network),
      // The type asks for a port that each connection brings itself.
    } as buildConnector.BuildOptions)
  return function guardedConnect(options, callback) {
    const literal = toLiteral(options.hostname)
    // The system does not look up an address that is written out, so the lookup would never see it.
    if (isIP(literal) !== 0 && !network.mayConnect(literal)) {
      return callback(new BlockedAddressError(options.hostname, 'it is not a public address'), null)
    }
    connect ??= openConnector()
    connect(options, callback)
  }
}

function createGuardedLookup(network: Network): LookupFunction {
  return function guardedLookup(hostname, options, callback) {
    resolveAllowed(hostname, network).then(
      (addresses) => {
        if (options.all) callback(null, [...addresses])
        else callback(null, addresses[0].address, addresses[0].family)
      },
      (error) => callback(error, '', 0),
    )
  }
}

async function resolveAllowed(hostname: string, network: Network): Promise<ResolvedAddress[]> {
  const addresses = (await network.resolve(hostname)).filter(({ address }) => network.mayConnect(address))
  if (addresses.length === 0) throw new BlockedAddressError(hostname, 'its name leads to no public address')
  return addresses
}

/** The refusal of the guarded connection is the cause of the client's error, and the clearer message. */
export function unwrapBlocked(error: unknown): never {
  const cause = error instanceof Error ? error.cause : null
  throw cause instanceof BlockedAddressError ? cause : error
}
