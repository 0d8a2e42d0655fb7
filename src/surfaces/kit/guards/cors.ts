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

const ALLOWED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
const ALLOWED_HEADERS = [
  ...['Authorization', 'X-API-Key', 'Content-Type', 'Idempotency-Key', 'If-None-Match', 'Range', 'Comfy-User'],
  ...['Tus-Resumable', 'Upload-Length', 'Upload-Metadata', 'Upload-Offset', 'Upload-Checksum'],
  ...['Mcp-Protocol-Version', 'Mcp-Method', 'Mcp-Name', 'traceparent', 'tracestate'],
].join(', ')
// What clients act on beside the body: when to come back, which part this is, what changed, what it cost and what is left.
const EXPOSED_HEADERS = [
  'Retry-After',
  'Allow',
  'Content-Range',
  'Accept-Ranges',
  'ETag',
  'Idempotent-Replayed',
  ...['Location', 'Tus-Resumable', 'Tus-Version', 'Tus-Extension', 'Tus-Max-Size', 'Tus-Checksum-Algorithm'],
  ...['Upload-Offset', 'Upload-Length', 'Upload-Metadata', 'Upload-Expires', 'Upload-Asset'],
  ...['Limit', 'Current', 'Remaining'].flatMap((part) => [`X-Committed-Spend-${part}`, `X-Concurrency-${part}`]),
]
const EXPOSED_OF_BRAND = ['Request-Id', 'Error-Type', 'Upstream-Status', 'Upstream-Detail', 'Credits-Used']
const PREFLIGHT_SECONDS = '600'

export function readCorsOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && url.origin === text
  if (!isPlain) {
    throw new Error(`CORS origin "${text}" must be exactly scheme://host[:port], such as http://localhost:5173`)
  }
  return text
}

/** `brands`: parts of header names, such as `Service` in `X-Service-Request-Id`. */
export function createCors(origins: readonly string[], brands: readonly string[]): Cors {
  const allowed = new Set(origins.map(readCorsOrigin))
  const branded = brands.flatMap((brand) => EXPOSED_OF_BRAND.map((name) => `X-${brand}-${name}`))
  const exposed = [...EXPOSED_HEADERS, ...branded].join(', ')
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

/**
 * Headers of every answer. Our JSON is data and nothing else: never sniffed, framed, cached by others, or read by a page of
 * another origin unless CORS names it. Routes that answer something else (content, the reference page) override single ones.
 */
export const SECURITY_HEADERS: readonly string[] = [
  'Cache-Control',
  'no-store',
  'X-Content-Type-Options',
  'nosniff',
  'X-Frame-Options',
  'DENY',
  'Referrer-Policy',
  'no-referrer',
  'Content-Security-Policy',
  "default-src 'none'; frame-ancestors 'none'",
]

const RESOURCE_POLICY = 'Cross-Origin-Resource-Policy'
export const SAME_ORIGIN_ONLY: readonly string[] = [RESOURCE_POLICY, 'same-origin']
export const ANY_ORIGIN: readonly string[] = [RESOURCE_POLICY, 'cross-origin']
