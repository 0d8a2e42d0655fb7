/**
 * What a reverse proxy says about the address that the caller used. Only proxies on the configured list are believed;
 * everybody else's `X-Forwarded-*` is ignored, because it would let any caller change the links in our answers. The first value
 * of a list counts, and a value that is not well-formed counts as absent.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP, isIPv6 } from 'node:net'
import { readHost } from './host-guard.ts'

interface Forwarded {
  readonly scheme: 'http' | 'https' | null
  readonly host: string | null
  /** '' or '/some/prefix'. */
  readonly prefix: string
}

export interface ProxyNetwork {
  readonly address: string
  readonly prefixBits: number
  readonly family: 'ipv4' | 'ipv6'
}

export type IsTrustedProxy = (address: string | undefined) => boolean

const PREFIX = /^(?:\/[A-Za-z0-9._~-]+)+$/
const PREFIX_MAX_LENGTH = 200

export function createTrustedProxies(networks: readonly ProxyNetwork[]): IsTrustedProxy {
  const list = new BlockList()
  for (const { address, prefixBits, family } of networks) list.addSubnet(address, prefixBits, family)
  return (address) => {
    if (address === undefined) return false
    const plain = unmapped(address)
    return list.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4')
  }
}

export function readForwarded(headers: IncomingHttpHeaders): Forwarded {
  const scheme = first(headers['x-forwarded-proto'])?.toLowerCase()
  const host = first(headers['x-forwarded-host'])
  const prefix = first(headers['x-forwarded-prefix'])?.replace(/\/$/, '') ?? ''
  return {
    scheme: scheme === 'http' || scheme === 'https' ? scheme : null,
    host: host !== undefined && readHost(host) !== null ? host : null,
    prefix: prefix.length <= PREFIX_MAX_LENGTH && PREFIX.test(prefix) ? prefix : '',
  }
}

/**
 * Where a request comes from: the last hop that no proxy of ours is. Whatever stands further to the left, the caller may have made up.
 * A hop that is not an address is replaced by the proxy that reported it.
 */
export function readCallerAddress(
  peer: string | undefined,
  forwardedFor: string | string[] | undefined,
  isTrusted: IsTrustedProxy,
): string {
  if (peer === undefined) return ''
  let address = unmapped(peer)
  const hops = (Array.isArray(forwardedFor) ? forwardedFor.join(',') : (forwardedFor ?? '')).split(',').reverse()
  for (const hop of hops) {
    const next = unmapped(hop.trim())
    if (!isTrusted(address) || isIP(next) === 0) break
    address = next
  }
  return address
}

// A listener on `::` sees IPv4 callers as ::ffff:a.b.c.d.
function unmapped(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

function first(value: string | string[] | undefined): string | undefined {
  const text = Array.isArray(value) ? value[0] : value
  return text?.split(',', 1)[0].trim()
}
