/** One fixed bearer token, for doors that no account has a key to. */
import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { ServiceError } from '../../../domain/errors.ts'
import { readCredential } from './credentials.ts'

/** Throws unauthorized. */
export type StaticTokenGuard = (request: IncomingMessage) => void

/** null: the door stays shut. Compares digests, so the time says nothing about the token or its length. */
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
