/** Who is an operator: a caller with the admin token, a browser that signed in with it, or, where the service has only one user, that user. */
import type { IncomingMessage } from 'node:http'
import type { SignIn } from '../../../domain/accounts/sign-in.ts'
import { createStaticTokenGuard } from './credentials.ts'
import type { Gate } from './gate.ts'
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
