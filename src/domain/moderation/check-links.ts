/**
 * Addresses under which a hook reads the bytes that it is asked about. They name bytes and no asset, because outputs have no record
 * before they are allowed; whoever holds one may read these bytes until it expires, and it stands in nothing but the question.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import { CONTENT_PATH, type SigningKey } from '../assets/signed-url.ts'
import { ServiceError } from '../errors.ts'

export interface CheckedBytes {
  readonly hash: string
  readonly sizeBytes: number
  readonly contentType: string
}

export interface CheckLinks {
  /** Host-relative, beginning with `/`, without the mount prefix. */
  sign(bytes: CheckedBytes, lifetimeMs: number): string
  /** `query`: the raw text behind the question mark. Throws link_invalid, with one wording for every reason. */
  verify(query: string): CheckedBytes & { readonly expiresAt: Date }
}

export const CHECKED_PATH = `${CONTENT_PATH}/checked`

// Separates these signatures from any other use of the same secret.
const PURPOSE = 'atelier checked bytes v1\n'
const QUERY = /^([A-Za-z0-9_-]{1,1200})\.([A-Za-z0-9_-]{43})$/

/** The first key signs, every one verifies. */
export function createCheckLinks(keys: readonly SigningKey[], clock: Clock): CheckLinks {
  const secrets = keys.map(({ secret }) => createSecretKey(secret))
  return {
    sign({ hash, sizeBytes, contentType }, lifetimeMs) {
      const expiresAt = clock.now().getTime() + lifetimeMs
      const payload = Buffer.from(JSON.stringify([hash, sizeBytes, contentType, expiresAt])).toString('base64url')
      return `${CHECKED_PATH}?${payload}.${digest(secrets[0], payload).toString('base64url')}`
    },
    verify(query) {
      const [, payload, signature] = QUERY.exec(query) ?? []
      if (payload === undefined || signature === undefined) throw invalidLink()
      const shown = Buffer.from(signature, 'base64url')
      if (!secrets.some((secret) => timingSafeEqual(shown, digest(secret, payload)))) throw invalidLink()
      const [hash, sizeBytes, contentType, expires] = JSON.parse(Buffer.from(payload, 'base64url').toString()) as [
        ...[string, number, string, number],
      ]
      const expiresAt = new Date(expires)
      if (!(clock.now() < expiresAt)) throw invalidLink()
      return { hash, sizeBytes, contentType, expiresAt }
    },
  }
}

function digest(secret: KeyObject, payload: string): Buffer {
  return createHmac('sha256', secret).update(PURPOSE).update(payload).digest()
}

function invalidLink(): ServiceError {
  return new ServiceError('link_invalid', 'this address is not valid, or not any more')
}
