/**
 * Refuses requests that a browser sends on behalf of another site. Programs send neither `Origin` nor `Sec-Fetch-Site` and
 * pass; a page of an allow-listed origin passes as well. Says why it refuses, or null.
 */
import { type HostParts, readHost } from './host-guard.ts'

interface BrowserHeaders {
  readonly host: HostParts
  readonly origin: string | undefined
  readonly fetchSite: string | undefined
}

export function originRefusal(headers: BrowserHeaders, isAllowedOrigin: (origin: string) => boolean): string | null {
  const { origin, fetchSite } = headers
  if (origin === undefined && fetchSite === undefined) return null
  if (origin !== undefined && isAllowedOrigin(origin)) return null
  if (fetchSite === 'cross-site') return 'requests from pages of another site are not allowed'
  if (origin === undefined || isOurs(origin, headers)) return null
  return 'this origin is not allowed; list it in the CORS origins to allow it'
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' }

/**
 * The page comes from the very host and port that it asks; where a port is left out it is the default one of the page's
 * scheme. A proxy may have dropped the port from `Host`, so there it may be any, unless the browser itself says that the page
 * is another one.
 */
function isOurs(origin: string, { host, fetchSite = 'same-origin' }: BrowserHeaders): boolean {
  const [, scheme = '', rest = ''] = /^(https?):\/\/(.+)$/i.exec(origin) ?? []
  const sender = readHost(rest)
  if (sender === null || sender.name !== host.name) return false
  if (host.port === '' && fetchSite === 'same-origin') return true
  const defaultPort = DEFAULT_PORTS[scheme.toLowerCase()]
  return (sender.port || defaultPort) === (host.port || defaultPort)
}
