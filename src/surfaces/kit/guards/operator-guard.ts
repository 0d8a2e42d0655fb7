/** Who is an operator: a caller with the admin token, a browser that signed in with it, or, where the service has only one user, that user. */
import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { SignIn } from '../../../domain/accounts/sign-in.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { type Gate, readCredential } from './gate.ts'
import { readSession } from './session-cookie.ts'

/** Throws, or rejects with, unauthorized. */
export type OperatorGuard = (request: IncomingMessage) => void | Promise<void>

interface OperatorGuardOptions {
  readonly gate: Gate
  readonly signIn: Pick<SignIn, 'openOperator'>
  /** Whoever may use the service is its operator. */
  readonly isEveryoneOperator: boolean
  /** null: nobody has one. */
  readonly adminToken: string | null
}

export function createOperatorGuard({
  gate,
  signIn,
  isEveryoneOperator,
  adminToken,
}: OperatorGuardOptions): OperatorGuard {
  const guardToken = createStaticTokenGuard(adminToken)
  return async (request) => {
    if (isEveryoneOperator) {
      await gate.authenticate(request, 'bearer')
      return
    }
    const session = request.headers.authorization === undefined ? readOwn(request) : null
    if (session !== null && (await signIn.openOperator(session)) !== null) return
    guardToken(request)
  }

  function readOwn(request: IncomingMessage): string | null {
    return request.headers.cookie === undefined ? null : readSession(request, gate.addressOf(request), 'operator')
  }
}

/**
 * One fixed bearer token, for routes that no account has a key to; null: nobody gets in. Compares digests, so the time says
 * nothing about the token or its length.
 */
export function createStaticTokenGuard(token: string | null): (request: IncomingMessage) => void {
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
