/** Where a request carries its credential. Each surface has its own rule; what a credential is worth is decided elsewhere. */
import type { IncomingMessage } from 'node:http'

/**
 * `bearer`: only `Authorization: Bearer`. `api_key`: `X-API-Key` wins, else the bearer value. `socket`: the query parameter
 * `token` wins, because a browser cannot set headers on a WebSocket; then as `api_key`.
 */
export type CredentialRule = 'bearer' | 'api_key' | 'socket'

const BEARER = /^bearer +([^\s]+) *$/i

/** null when the request carries none, or none that can be read. */
export function readCredential(request: IncomingMessage, rule: CredentialRule): string | null {
  if (rule === 'socket') {
    const token = readToken(request.url ?? '')
    if (token !== null) return token
  }
  if (rule !== 'bearer') {
    const key = request.headers['x-api-key']
    if (typeof key === 'string' && key !== '') return key
  }
  const { authorization } = request.headers
  return authorization === undefined ? null : (BEARER.exec(authorization)?.[1] ?? null)
}

function readToken(url: string): string | null {
  const query = url.indexOf('?')
  return query === -1 ? null : new URLSearchParams(url.slice(query + 1)).get('token') || null
}
