/**
 * Who asks. A surface reads a credential out of a request, `Authenticate` says whose it is. The answer comes at once where it
 * is known (the local kind, a cached key), so that the hottest paths need not wait for a promise.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { ServiceError } from '../errors.ts'
import { LOCAL_ACCOUNT_ID } from './account.ts'

export interface Caller {
  readonly accountId: string
  /** The API key that was shown; null for the local kind and for tokens signed elsewhere. */
  readonly keyId: string | null
  /** What the credential may do; null: everything its account may. */
  readonly scopes: ReadonlySet<string> | null
  /** The endpoints that it may call and see: `poster`, `thumb@production`. null: all of its account's. */
  readonly endpoints: readonly string[] | null
}

/** null: the request carries no credential. Throws `unauthorized`. */
export type Authenticate = (credential: string | null) => Caller | Promise<Caller>

/**
 * Whether what was opened for this very caller may stay open: its credential would still be good. Asked again and again for
 * every connection that is held, so it looks nothing up.
 */
export type IsWelcome = (caller: Caller) => boolean

/**
 * What a session keeps of the credential that began it: enough to find its caller again for as long as the credential is good, and
 * nothing that could be shown in its place.
 */
export interface CredentialProof {
  /** SHA-256 of its text, in base64. */
  readonly digest: string
  readonly keyId: string | null
  /** Of a token that was signed elsewhere: whom it speaks for. */
  readonly token: {
    readonly accountId: string
    readonly scopes: readonly string[] | null
    /** Milliseconds since 1970. */
    readonly expiresAt: number
  } | null
}

/** Finds callers again without their credentials. */
export interface CredentialProofs {
  /** `caller` is what the credential was found to be worth just now. */
  prove(credential: string, caller: Caller): CredentialProof
  /** null: the credential would no longer be accepted. */
  resume(proof: CredentialProof): Caller | null
}

const LOCAL_CALLER: Caller = { accountId: LOCAL_ACCOUNT_ID, keyId: null, scopes: null, endpoints: null }

/**
 * The local kind: one static token, or none. Without one every credential is ignored, because clients send the key of another
 * service along; with one, the comparison runs over digests of equal length and takes the same time whatever was sent.
 */
export function createLocalAuthenticate(token: string | null): (credential: string | null) => Caller {
  if (token === null) return () => LOCAL_CALLER
  const expected = digest(token)
  return (credential) => {
    if (credential !== null && timingSafeEqual(digest(credential), expected)) return LOCAL_CALLER
    throw new ServiceError('unauthorized', 'a valid bearer token is required: send Authorization: Bearer <token>')
  }
}

/** The same for sessions of the local kind; null: there is no token, and a session would mean nothing. */
export function createLocalProofs(token: string | null): CredentialProofs | null {
  if (token === null) return null
  const expected = digest(token)
  return {
    prove: (credential) => ({ digest: digest(credential).toString('base64'), keyId: null, token: null }),
    resume(proof) {
      const shown = Buffer.from(proof.digest, 'base64')
      return shown.length === expected.length && timingSafeEqual(shown, expected) ? LOCAL_CALLER : null
    },
  }
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/** What a credential may be limited to within its account. */
export const SCOPES = [
  ...(['jobs:read', 'jobs:write', 'assets:read', 'assets:write', 'models:read', 'models:run'] as const),
  ...(['endpoints:read', 'endpoints:write', 'endpoints:run'] as const),
  // Environments and deployments on their releases. Who may write a build runs code on the machines.
  ...(['builds:read', 'builds:write', 'deployments:read', 'deployments:write'] as const),
  // To see, make and revoke keys of the account.
  'keys:write',
] as const
export type Scope = (typeof SCOPES)[number]

/** What a key may do at most that is restricted to some endpoints: all other scopes reach beyond them. */
export const ENDPOINT_SCOPES: readonly Scope[] = ['endpoints:read', 'endpoints:run']

export function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text)
}

export function hasScope({ scopes }: Caller, scope: Scope): boolean {
  return scopes === null || scopes.has(scope)
}

/** Throws forbidden. Runs before anything is looked up, so the answer is the same for every id. */
export function mustHaveScope(caller: Caller, scope: Scope): void {
  if (hasScope(caller, scope)) return
  throw new ServiceError('forbidden', `this credential has not the scope ${scope}; use one that has`, {
    details: { scope },
  })
}
