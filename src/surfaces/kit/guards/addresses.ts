/**
 * The two ways in which an address names a deployment: by host, `{deployment}.run.<domain>` (with the staging label on either
 * side of `run`), and by prefix, `/deployment/{deployment}`. A prefix is taken off before any route is looked for, so every
 * surface answers below it as it does elsewhere; links carry it. Whether such a deployment exists is not decided here.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'
import { ServiceError } from '../../../domain/errors.ts'

/** The deployment that a host name names; null when it names none. */
export type DeploymentHosts = (name: string) => string | null

export type RouteDeployment = (request: IncomingMessage) => void

export interface DeploymentAddress {
  readonly id: string
  /** `/deployment/{id}`. */
  readonly prefix: string
}

type Naming = { readonly deploymentId: string | null }

/**
 * The pool that an address is limited to; null for an address that names no deployment. Throws not_found for a deployment that
 * this account may not use, exactly as for one that does not exist.
 */
export type PoolOf = (address: Naming, accountId: string) => string | null

const ADDRESS = Symbol('deployment address')
type Addressed = IncomingMessage & { [ADDRESS]?: DeploymentAddress }

const DEPLOYMENT_PREFIX = '/deployment/'
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

export function deploymentAddressOf(request: IncomingMessage): DeploymentAddress | null {
  return (request as Addressed)[ADDRESS] ?? null
}

/** Before every path that is meant for this deployment; '' for none. */
export function toDeploymentPrefix(id: string | null): string {
  return id === null ? '' : DEPLOYMENT_PREFIX + id
}

/** For paths that belong to an account as a whole: at the address of a deployment they do not exist. */
export function mustNameNoDeployment({ deploymentId }: Naming): null {
  if (deploymentId === null) return null
  throw new ServiceError('not_found', 'there is nothing under this address')
}

export function createDeploymentHosts(domain: string): DeploymentHosts {
  // The longer ones first: the label of staging is never part of an id.
  const suffixes = [`.stg.run.${domain}`, `.run.stg.${domain}`, `.run.${domain}`]
  return (name) => {
    const suffix = suffixes.find((end) => name.endsWith(end))
    const id = suffix === undefined ? '' : name.slice(0, -suffix.length)
    return LABEL.test(id) ? id : null
  }
}

export function createRouteDeployment(mountPrefix: string): RouteDeployment {
  const start = mountPrefix + DEPLOYMENT_PREFIX
  return (request) => {
    const { url } = request
    if (url === undefined || !url.startsWith(start)) return
    const end = url.indexOf('/', start.length)
    const id = end === -1 ? '' : url.slice(start.length, end)
    if (!LABEL.test(id)) return
    ;(request as Addressed)[ADDRESS] = { id, prefix: DEPLOYMENT_PREFIX + id }
    request.url = mountPrefix + url.slice(end)
  }
}

/**
 * Which `Host` values we answer to. A page that rebinds its own name to our address sends its own name as Host and as Origin,
 * so an Origin check passes; only a list of names stops it.
 *
 * Allowed are loopback names and addresses with any port, and the configured names (`*` among them allows every name).
 * Bound to a wider address, literal IP addresses are allowed too, since an address cannot be rebound. Bound wider with a
 * token and without configured names every well-formed name is allowed: a rebinding page does not know the token, and no
 * browser sends it by itself.
 */
export interface HostParts {
  /** Lower case, IPv6 in brackets. */
  readonly name: string
  /** '' when not written. */
  readonly port: string
}

interface HostGuardOptions {
  readonly bindHost: string
  readonly hasToken: boolean
  readonly allowedHosts: readonly string[]
}

type HostGuard = (name: string) => boolean

const HOST = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::(\d{1,5}))?$/i

export function readHost(text: string): HostParts | null {
  const match = HOST.exec(text)
  return match === null ? null : { name: match[1].toLowerCase(), port: match[2] ?? '' }
}

export function isLoopbackName(name: string): boolean {
  if (name === 'localhost' || name === '[::1]' || name === '::1') return true
  return name.startsWith('127.') && isIPv4(name)
}

export function createHostGuard(options: HostGuardOptions): HostGuard {
  const allowed = new Set(options.allowedHosts.map(toName))
  const boundWide = !isLoopbackName(options.bindHost.toLowerCase())
  const anyName = allowed.has('*') || (boundWide && options.hasToken && allowed.size === 0)
  return (name) => anyName || isLoopbackName(name) || allowed.has(name) || (boundWide && isAddress(name))
}

// A configured name may carry a port out of habit; the port never decides.
function toName(configured: string): string {
  return readHost(configured)?.name ?? (isIP(configured) === 6 ? `[${configured.toLowerCase()}]` : configured)
}

function isAddress(name: string): boolean {
  return isIP(name.startsWith('[') ? name.slice(1, -1) : name) !== 0
}

/**
 * What a reverse proxy says about the address that the caller used. Only proxies on the configured list are believed;
 * everybody else's `X-Forwarded-*` is ignored, because it would let any caller change the links in our answers. The first value
 * of a list counts, and a value that is not well-formed counts as absent.
 */
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
