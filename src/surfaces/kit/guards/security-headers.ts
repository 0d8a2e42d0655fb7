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
