/**
 * Which `Host` values we answer to. A page that rebinds its own name to our address sends its own name as Host and as Origin,
 * so an Origin check passes; only a list of names stops it.
 *
 * Allowed are loopback names and addresses with any port, and the configured names (`*` among them allows every name).
 * Bound to a wider address, literal IP addresses are allowed too, since an address cannot be rebound. Bound wider with a
 * token and without configured names every well-formed name is allowed: a rebinding page does not know the token, and no
 * browser sends it by itself.
 */
import { isIP, isIPv4 } from 'node:net'

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
