/**
 * CORS for an exact list of origins. Anything else gets no CORS header at all. A wildcard, a path or a query in the list is
 * refused when the service starts, since it would quietly open the service to every page or never match.
 */
export interface Cors {
  readonly isConfigured: boolean
  isAllowed(origin: string): boolean
  /** Headers of any answer to an allowed origin, as name, value, name, value. */
  answerHeaders(origin: string): readonly string[]
  /** Headers of the 204 that answers a preflight of an allowed origin. */
  preflightHeaders(origin: string): readonly string[]
}

const ALLOWED_METHODS = 'GET, HEAD, POST, PATCH, DELETE, OPTIONS'
const ALLOWED_HEADERS = 'Authorization, Content-Type, Idempotency-Key, Range'
const PREFLIGHT_SECONDS = '600'

export function readCorsOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && url.origin === text
  if (!isPlain) {
    throw new Error(`CORS origin "${text}" must be exactly scheme://host[:port], such as http://localhost:5173`)
  }
  return text
}

export function createCors(origins: readonly string[], requestIdHeaders: readonly string[]): Cors {
  const allowed = new Set(origins.map(readCorsOrigin))
  const exposed = ['Retry-After', 'Content-Range', 'Accept-Ranges', ...requestIdHeaders].join(', ')
  const answerHeaders = (origin: string): readonly string[] => [
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Allow-Credentials',
    'true',
    'Access-Control-Expose-Headers',
    exposed,
  ]
  return {
    isConfigured: allowed.size > 0,
    isAllowed: (origin) => allowed.has(origin),
    answerHeaders,
    preflightHeaders: (origin) => [
      ...answerHeaders(origin),
      'Access-Control-Allow-Methods',
      ALLOWED_METHODS,
      'Access-Control-Allow-Headers',
      ALLOWED_HEADERS,
      'Access-Control-Max-Age',
      PREFLIGHT_SECONDS,
    ],
  }
}
