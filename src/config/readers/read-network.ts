/**
 * Readers for network settings: the address to listen on, origins, host names, proxies. They are strict, because a setting that
 * exposes the service more than it seems to must be refused at the start.
 */
import { BlockList, isIP, isIPv4 } from 'node:net'

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Whether only this machine can reach a server that listens on `host`. The empty host listens everywhere. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true
  if (isIP(host) === 0) return false
  return loopback.check(host, isIPv4(host) ? 'ipv4' : 'ipv6')
}

/** An address or name to listen on, without brackets. Empty means every interface, as in most servers. */
export function readListenHost(text: string): string {
  const host = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text
  if (host === '' || isIP(host) !== 0 || HOST_NAME.test(host)) return host
  throw new Error('is not an address or host name; give for example 127.0.0.1 (put the port into "port")')
}

/** A host name that clients may put into `Host`, lower case, without a port; an IPv6 address without brackets. */
export function readHostName(text: string): string {
  const host = readListenHostOrFail(text)
  if (host !== null) return host.toLowerCase()
  throw new Error(
    `has the item ${JSON.stringify(text)}, which is not a plain host name; give for example atelier.example.com`,
  )
}

function readListenHostOrFail(text: string): string | null {
  try {
    const host = readListenHost(text)
    return host === '' ? null : host
  } catch {
    return null
  }
}

function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}

function isBareHttpOrigin(url: URL): boolean {
  const isHttp = url.protocol === 'http:' || url.protocol === 'https:'
  return (
    isHttp && url.pathname === '/' && url.search === '' && url.hash === '' && url.username === '' && url.password === ''
  )
}

/** An exact browser origin. `*` and anything beyond scheme, host and port is refused: the contract wants an exact list. */
export function readCorsOrigin(text: string): string {
  const url = parseUrl(text)
  // `?` and `#` leave no trace in a parsed URL when nothing follows them.
  if (url !== null && isBareHttpOrigin(url) && !text.endsWith('/') && !/[?#*]/.test(text)) return url.origin
  throw new Error(
    `has the item ${JSON.stringify(text)}, which is not an exact origin; give scheme, host and port only, for example https://app.example.com`,
  )
}

/** The base of absolute links: scheme, host and port. A path belongs to the mount prefix. */
export function readPublicUrl(text: string): string {
  const url = parseUrl(text)
  if (url !== null && isBareHttpOrigin(url) && !/[?#]/.test(text)) return url.origin
  throw new Error(
    'is not a bare http(s) address; give for example https://atelier.example.com and put a path into "mountPrefix"',
  )
}

const PREFIX = /^(\/[A-Za-z0-9._~-]+){1,8}$/

/** '' or '/some/prefix'. */
export function readMountPrefix(text: string): string {
  if (text === '' || text === '/') return ''
  const hasDots = text.split('/').some((segment) => segment === '.' || segment === '..')
  if (PREFIX.test(text) && !hasDots) return text
  throw new Error('is not a path prefix; begin with a slash and end without one, for example /deployment/demo')
}

/** An address or a range of addresses. */
export interface Cidr {
  readonly address: string
  readonly prefixBits: number
  readonly family: 'ipv4' | 'ipv6'
}

export function readCidr(text: string): Cidr {
  const [address, bits, ...rest] = text.split('/')
  const version = isIP(address)
  const widest = version === 4 ? 32 : 128
  const prefixBits = bits === undefined ? widest : /^\d{1,3}$/.test(bits) ? Number(bits) : -1
  if (version !== 0 && rest.length === 0 && prefixBits >= 0 && prefixBits <= widest) {
    return { address, prefixBits, family: version === 4 ? 'ipv4' : 'ipv6' }
  }
  throw new Error(
    `has the item ${JSON.stringify(text)}, which is not an address range; give for example 10.0.0.0/8 or ::1`,
  )
}
