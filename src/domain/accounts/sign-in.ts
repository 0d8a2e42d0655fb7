/**
 * Signing in with a credential: an account's begins a session of that account, the admin token one of the operator. Every refusal
 * reads the same and takes the same steps, and each address has only so many tries a minute.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Clock } from '../../../lib/clock.ts'
import { ServiceError } from '../errors.ts'
import type { Authenticate, Caller, CredentialProof, CredentialProofs } from './caller.ts'
import type { BegunSession, OpenedSession, SessionRole, Sessions } from './sessions.ts'

interface SignedIn {
  readonly role: SessionRole
  readonly session: BegunSession
}

interface AccountSession extends OpenedSession {
  readonly caller: Caller
}

export interface SignIn {
  /** `address`: where the try comes from. Throws unauthorized or rate_limited. */
  begin(credential: string, address: string): Promise<SignedIn>
  /** null: the session is over, or its credential is. */
  openAccount(text: string): Promise<AccountSession | null>
  openOperator(text: string): Promise<OpenedSession | null>
  /** Ends this session, wherever its text is. */
  end(role: SessionRole, text: string): Promise<void>
  /** Ends this session and all others that began with its credential. */
  endAll(role: SessionRole, text: string): Promise<void>
}

interface SignInDeps {
  readonly sessions: Sessions
  /** Says whose credential it is, without counting the request against a rate. */
  readonly identify: Authenticate
  /** null: this kind of service has no credentials, so sessions are not needed. */
  readonly proofs: CredentialProofs | null
  /** null: there is no admin token. */
  readonly adminToken: string | null
  readonly clock: Clock
}

const TRIES = 10
const WINDOW_MS = 60_000
const ADDRESSES_MAX = 10_000

export function createSignIn({ sessions, identify, proofs, adminToken, clock }: SignInDeps): SignIn {
  const mayTry = createTries(clock)
  const adminDigest = adminToken === null ? null : digest(adminToken)

  async function identifyOrNull(credential: string): Promise<Caller | null> {
    try {
      return await identify(credential)
    } catch (error) {
      // Suspended, unknown, expired: somebody who guesses learns nothing of it.
      if (error instanceof ServiceError && (error.refusal === 'unauthorized' || error.refusal === 'forbidden'))
        return null
      throw error
    }
  }

  return {
    async begin(credential, address) {
      if (!mayTry(address)) {
        throw new ServiceError('rate_limited', 'too many tries to sign in; wait a minute', {
          retryAfterSeconds: WINDOW_MS / 1000,
        })
      }
      const isAdmin = adminDigest !== null && timingSafeEqual(digest(credential), adminDigest)
      const caller = proofs === null ? null : await identifyOrNull(credential)
      if (caller !== null && proofs !== null) {
        return { role: 'account', session: await sessions.begin('account', proofs.prove(credential, caller)) }
      }
      if (isAdmin) return { role: 'operator', session: await sessions.begin('operator', proveAdmin(credential)) }
      throw new ServiceError('unauthorized', 'this key or token is not accepted')
    },
    async openAccount(text) {
      const opened = await sessions.open('account', text)
      const caller = opened === null ? null : (proofs?.resume(opened.proof) ?? null)
      return opened === null || caller === null ? null : { ...opened, caller }
    },
    async openOperator(text) {
      const opened = await sessions.open('operator', text)
      if (opened === null || adminDigest === null) return null
      // A session that began with a token that was replaced since then is no longer valid.
      const shown = Buffer.from(opened.proof.digest, 'base64')
      return shown.length === adminDigest.length && timingSafeEqual(shown, adminDigest) ? opened : null
    },
    end: (role, text) => sessions.end(role, text),
    async endAll(role, text) {
      const opened = await sessions.open(role, text)
      if (opened !== null) await sessions.endAll(role, opened.proof)
    },
  }
}

function proveAdmin(token: string): CredentialProof {
  return { digest: digest(token).toString('base64'), keyId: null, token: null }
}

interface Tries {
  readonly since: number
  count: number
}

function createTries(clock: Clock): (address: string) => boolean {
  const tries = new BoundedMap<string, Tries>(ADDRESSES_MAX)
  return (address) => {
    const now = clock.now().getTime()
    const known = tries.get(address)
    const current = known !== undefined && now - known.since < WINDOW_MS ? known : { since: now, count: 0 }
    if (current !== known) tries.set(address, current)
    current.count++
    return current.count <= TRIES
  }
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
