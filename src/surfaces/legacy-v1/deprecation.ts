/** This surface is deprecated: every answer says so, and where its successor is (RFC 9745, RFC 8288). */

// The first day of the year in which the Jobs API v2 became the contract.
const DEPRECATED_SINCE = '@1767225600'

/** By the beginning of a path below `/api`; the first match counts. */
const SUCCESSORS: readonly (readonly [start: string, successor: string])[] = [
  ['/upload/', '/api/v2/assets'],
  ['/view', '/api/v2/assets'],
  ['/prompt', '/api/v2/jobs'],
  ['/queue', '/api/v2/jobs'],
  ['/interrupt', '/api/v2/jobs'],
  ['/history', '/api/v2/jobs'],
  ['/job', '/api/v2/jobs'],
  ['/ws', '/api/v2/jobs'],
]
const OTHER_SUCCESSOR = '/api/v2/openapi.json'

export function deprecationHeaders(path: string, mountPrefix: string): Readonly<Record<string, string>> {
  const own = path.startsWith(mountPrefix) ? path.slice(mountPrefix.length) : path
  const bare = own.startsWith('/api/') ? own.slice('/api'.length) : own
  const [, successor] = SUCCESSORS.find(([start]) => bare.startsWith(start)) ?? ['', OTHER_SUCCESSOR]
  return { Deprecation: DEPRECATED_SINCE, Link: `<${mountPrefix}${successor}>; rel="successor-version"` }
}
