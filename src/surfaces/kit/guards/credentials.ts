/** Where a request carries its credential. Each surface has its own rule; what a credential is worth is decided elsewhere. */
import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { ServiceError } from '../../../domain/errors.ts'
import { lenientQueryOf } from '../request-url.ts'

/**
 * `bearer`: only `Authorization: Bearer`. `api_key`: `X-API-Key` wins, else the bearer value. `socket`: the query parameter
 * `token` wins, because a browser cannot set headers on a WebSocket; then as `api_key`.
 */
export type CredentialRule = 'bearer' | 'api_key' | 'socket'

const BEARER = /^bearer +([^\s]+) *$/i

/** null when the request carries none, or none that can be read. */
export function readCredential(request: IncomingMessage, rule: CredentialRule): string | null {
  if (rule === 'socket') {
    const token = lenientQueryOf(request.url ?? '').get('token')
    if (token !== null && token !== '') return token
  }
  if (rule !== 'bearer') {
    const key = request.headers['x-api-key']
    if (typeof key === 'string' && key !== '') return key
  }
  const { authorization } = request.headers
  return authorization === undefined ? null : (BEARER.exec(authorization)?.[1] ?? null)
}

/** Throws unauthorized. */
type StaticTokenGuard = (request: IncomingMessage) => void

/**
 * One fixed bearer token, for routes that no account has a key to; null: nobody gets in. Compares digests, so the time says
 * nothing about the token or its length.
 */
export function createStaticTokenGuard(token: string | null): StaticTokenGuard {
  const expected = token === null ? null : digest(token)
  return (request) => {
    const shown = readCredential(request, 'bearer')
    if (expected !== null && shown !== null && timingSafeEqual(digest(shown), expected)) return
    throw new ServiceError('unauthorized', 'the admin token is required: send Authorization: Bearer <admin token>')
  }
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
