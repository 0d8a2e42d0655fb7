/**
 * Refuses requests that a browser sends on behalf of another site. Programs send neither `Origin` nor `Sec-Fetch-Site` and
 * pass; a page of an allow-listed origin passes as well. Says why it refuses, or null.
 */
import { type HostParts, readHost } from './host-guard.ts'

export interface BrowserHeaders {
  readonly host: HostParts
  readonly origin: string | undefined
  readonly fetchSite: string | undefined
}

export function originRefusal(headers: BrowserHeaders, isAllowedOrigin: (origin: string) => boolean): string | null {
  const { origin, fetchSite } = headers
  if (origin === undefined && fetchSite === undefined) return null
  if (origin !== undefined && isAllowedOrigin(origin)) return null
  if (fetchSite === 'cross-site') return 'requests from pages of another site are not allowed'
  if (origin === undefined || isSameHost(origin, headers.host)) return null
  return 'this origin is not allowed; list it in the CORS origins to allow it'
}

// The port is ignored when one side leaves it out: a proxy often drops it from one of the two headers.
function isSameHost(origin: string, host: HostParts): boolean {
  const match = /^https?:\/\/(.+)$/i.exec(origin)
  const sender = match === null ? null : readHost(match[1])
  if (sender === null || sender.name !== host.name) return false
  return sender.port === '' || host.port === '' || sender.port === host.port
}
