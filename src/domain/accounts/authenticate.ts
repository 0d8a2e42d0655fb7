/**
 * Who calls, where there are many accounts: an API key, or a token that somebody we trust has signed. Keys are answered at
 * once. A token costs a signature check the first time and is then remembered until it expires; what is remembered, and what
 * is being checked at a time, is bounded. All refusals of a credential have one wording.
 */
import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Clock } from '../../../lib/clock.ts'
import { ServiceError } from '../errors.ts'
import type { AccountRecord } from './account.ts'
import type { Authenticate, Caller, CredentialProof, CredentialProofs, IsWelcome } from './caller.ts'
import { digestOf, KEY_PREFIX } from './keys/api-key.ts'
import { type KeyRing, refusedCredential } from './keys/key-ring.ts'

/** Tokens that somebody else signs: who they speak for, and until when. */
export interface VerifiedToken {
  readonly accountId: string
  /** null: everything that the account may. */
  readonly scopes: readonly string[] | null
  readonly expiresAt: Date
}

/** null: not a token of ours. Rejects only when the keys to check it cannot be had. */
export type VerifyToken = (token: string) => Promise<VerifiedToken | null>

interface AuthenticateDeps {
  readonly keys: Pick<KeyRing, 'identify' | 'resume' | 'isGood'>
  readonly findAccount: (accountId: string) => AccountRecord | null
  /** null: API keys only. */
  readonly verifyToken: VerifyToken | null
  readonly clock: Clock
  readonly maxRememberedTokens?: number
  readonly maxChecksAtOnce?: number
}

interface Callers {
  readonly authenticate: Authenticate
  readonly isWelcome: IsWelcome
  readonly proofs: CredentialProofs
}

interface RememberedToken {
  readonly caller: Caller
  readonly expiresAt: number
}

// Three parts in base64url. The lengths leave room for any token that a header can carry.
const TOKEN = /^[\w-]{1,2000}\.[\w-]{1,6000}\.[\w-]{1,2000}$/

export function createCallers(deps: AuthenticateDeps): Callers {
  const { keys, findAccount, verifyToken, clock } = deps
  /** Until when the tokens of callers count. */
  const tokenEnds = new WeakMap<Caller, number>()
  const remembered = new BoundedMap<string, RememberedToken>(deps.maxRememberedTokens ?? 10_000)
  const identifyToken = verifyToken === null ? null : createTokenCheck(verifyToken, { ...deps, tokenEnds, remembered })

  function admit(caller: Caller): Caller {
    const account = findAccount(caller.accountId)
    if (account === null) throw new ServiceError('forbidden', 'this credential belongs to no account here')
    if (account.status === 'suspended') throw new ServiceError('forbidden', 'this account is suspended')
    return caller
  }

  return {
    authenticate(credential) {
      if (credential === null) throw refusedCredential()
      if (credential.startsWith(KEY_PREFIX)) return admit(keys.identify(credential))
      if (identifyToken === null || !TOKEN.test(credential)) throw refusedCredential()
      const caller = identifyToken(credential)
      return caller instanceof Promise ? caller.then(admit) : admit(caller)
    },
    isWelcome(caller) {
      if (findAccount(caller.accountId)?.status !== 'active') return false
      if (caller.keyId !== null) return keys.isGood(caller)
      return clock.now().getTime() < (tokenEnds.get(caller) ?? 0)
    },
    proofs: {
      prove(credential, caller) {
        const { accountId, keyId, scopes } = caller
        const expiresAt = tokenEnds.get(caller) ?? 0
        return {
          digest: digestOf(credential).toString('base64'),
          keyId,
          token: keyId === null ? { accountId, scopes: scopes === null ? null : [...scopes], expiresAt } : null,
        }
      },
      resume({ digest, keyId, token }) {
        const caller = keyId === null ? resumeToken(digest, token) : keys.resume(keyId, Buffer.from(digest, 'base64'))
        return caller !== null && findAccount(caller.accountId)?.status === 'active' ? caller : null
      },
    },
  }

  /** A token was checked when its session began; it is not there to be checked again. */
  function resumeToken(digest: string, token: CredentialProof['token']): Caller | null {
    if (token === null || verifyToken === null || clock.now().getTime() >= token.expiresAt) return null
    const known = remembered.get(digest)
    if (known !== undefined) return known.caller
    const { accountId, scopes, expiresAt } = token
    const caller: Caller = { accountId, keyId: null, scopes: scopes === null ? null : new Set(scopes), endpoints: null }
    tokenEnds.set(caller, expiresAt)
    remembered.set(digest, { caller, expiresAt })
    return caller
  }
}

interface TokenCheckDeps extends AuthenticateDeps {
  readonly tokenEnds: WeakMap<Caller, number>
  /** By digest. */
  readonly remembered: BoundedMap<string, RememberedToken>
}

function createTokenCheck(verify: VerifyToken, deps: TokenCheckDeps): (token: string) => Caller | Promise<Caller> {
  const { clock, tokenEnds, remembered, maxChecksAtOnce = 256 } = deps
  const underway = new Map<string, Promise<Caller>>()

  async function check(token: string, digest: string): Promise<Caller> {
    try {
      const verified = await verify(token)
      if (verified === null) throw refusedCredential()
      const { accountId, scopes, expiresAt } = verified
      const caller: Caller = {
        accountId,
        keyId: null,
        scopes: scopes === null ? null : new Set(scopes),
        endpoints: null,
      }
      tokenEnds.set(caller, expiresAt.getTime())
      remembered.set(digest, { caller, expiresAt: expiresAt.getTime() })
      return caller
    } finally {
      underway.delete(digest)
    }
  }

  return (token) => {
    const digest = digestOf(token).toString('base64')
    const known = remembered.get(digest)
    if (known !== undefined && clock.now().getTime() < known.expiresAt) return known.caller
    if (known !== undefined) remembered.delete(digest)
    const running = underway.get(digest)
    if (running !== undefined) return running
    if (underway.size >= maxChecksAtOnce) {
      throw new ServiceError('rate_limited', 'too many tokens are being checked; try again in a moment', {
        retryAfterSeconds: 1,
      })
    }
    const checking = check(token, digest)
    underway.set(digest, checking)
    return checking
  }
}
