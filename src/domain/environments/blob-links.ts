/** Addresses that carry their own right: whoever holds one may send the bytes of one upload, or read one, until it expires. */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import type { SigningKey } from '../assets/signed-url.ts'
import { ServiceError } from '../errors.ts'

type BlobAct = 'put' | 'get'

export interface BlobLinks {
  /** Host-relative, beginning with `/`, without the mount prefix. */
  sign(blobId: string, act: BlobAct, expiresAt: Date): string
  /** `query`: the raw text behind the question mark. Throws link_invalid, with one wording for every reason. */
  verify(blobId: string, act: BlobAct, query: string): void
}

export const BLOB_LINK_PATH = '/builder/blobs'

// Separates these signatures from any other use of the same secret.
const PURPOSE = 'atelier blobs of builds v1\n'
const QUERY = /^expires=(\d{1,15})&signature=([A-Za-z0-9_-]{43})$/

/** The first key signs, every one verifies. */
export function createBlobLinks(keys: readonly SigningKey[], clock: Clock): BlobLinks {
  const secrets = keys.map(({ secret }) => createSecretKey(secret))
  return {
    sign(blobId, act, expiresAt) {
      const expires = String(expiresAt.getTime())
      const signature = digest(secrets[0], [blobId, act, expires]).toString('base64url')
      return `${BLOB_LINK_PATH}/${blobId}?expires=${expires}&signature=${signature}`
    },
    verify(blobId, act, query) {
      const [, expires, signature] = QUERY.exec(query) ?? []
      const shown = Buffer.from(signature ?? '', 'base64url')
      const isSigned =
        expires !== undefined &&
        secrets.some((secret) => {
          const expected = digest(secret, [blobId, act, expires])
          return shown.length === expected.length && timingSafeEqual(shown, expected)
        })
      if (isSigned && clock.now().getTime() < Number(expires)) return
      throw new ServiceError('link_invalid', 'this address is not valid, or not any more: ask for a new one')
    },
  }
}

function digest(secret: KeyObject, parts: readonly string[]): Buffer {
  return createHmac('sha256', secret).update(PURPOSE).update(JSON.stringify(parts)).digest()
}
