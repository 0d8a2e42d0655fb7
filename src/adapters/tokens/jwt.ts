/**
 * JSON Web Tokens, verified with the keys of their issuer. Only the configured algorithms, issuer and audience are accepted, and
 * only tokens that expire. Keys at an address are fetched when they are first needed and when a token names an unknown key, but
 * never in quick succession, so that bad tokens cannot make us flood that server.
 */
import { createPublicKey } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose'
import type { Clock } from '../../../lib/clock.ts'
import { sendOnce } from '../../../lib/outbound/exchange.ts'
import { isAccountId } from '../../domain/accounts/account.ts'
import type { VerifiedToken, VerifyToken } from '../../domain/accounts/authenticate.ts'
import { isScope } from '../../domain/accounts/caller.ts'

export interface JwtOptions {
  readonly keys:
    | { readonly kind: 'url'; readonly url: string }
    /** A JWKS, or a public key in PEM. */
    | { readonly kind: 'file'; readonly path: string }
  readonly issuer: string
  readonly audience: string
  readonly algorithms: readonly string[]
  readonly accountClaim: string
  readonly scopesClaim: string
  readonly clockSkewMs: number
  readonly clock: Clock
}

/** Throws when the keys come from a file and the file holds none. */
export async function openJwtVerifier(options: JwtOptions): Promise<VerifyToken> {
  const { keys, clock, clockSkewMs, accountClaim } = options
  const getKey = keys.kind === 'url' ? createRemoteKeys(keys.url, clock) : await readKeys(keys.path)
  return async function verifyToken(token) {
    try {
      const { payload } = await jwtVerify(token, getKey, {
        issuer: options.issuer,
        audience: options.audience,
        algorithms: [...options.algorithms],
        clockTolerance: clockSkewMs / 1000,
        currentDate: clock.now(),
        requiredClaims: ['exp', accountClaim],
      })
      return toVerified(payload, options)
    } catch (error) {
      if (isTokenFault(error)) return null
      throw error
    }
  }
}

function toVerified(payload: JWTPayload, { accountClaim, scopesClaim, clockSkewMs }: JwtOptions): VerifiedToken | null {
  const accountId = payload[accountClaim]
  if (typeof accountId !== 'string' || !isAccountId(accountId)) return null
  const expiresAt = new Date((payload.exp ?? 0) * 1000 + clockSkewMs)
  return { accountId, scopes: readScopes(payload[scopesClaim]), expiresAt }
}

/** Unknown scopes are left out, since they belong to other services. A token with no other scopes may do nothing. */
function readScopes(claim: unknown): readonly string[] | null {
  if (claim === undefined) return null
  const scopes: unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : []
  return scopes.filter((scope) => typeof scope === 'string' && isScope(scope)) as string[]
}

/** Whether the token is at fault, and not a fetch of the keys that failed. */
function isTokenFault(error: unknown): boolean {
  if (error instanceof errors.JWKSTimeout || error instanceof KeysUnavailable) return false
  // A TypeError means that the key does not fit the token's algorithm.
  return error instanceof errors.JOSEError || error instanceof TypeError
}

class KeysUnavailable extends Error {}

const FETCH_TIMEOUT_MS = 5_000
// The shortest time between two fetches, whether for an unknown key or after a failure.
const FETCH_AGAIN_MS = 30_000
const FETCH_AFTER_FAILURE_MS = 5_000
const MAX_JWKS_BYTES = 1_048_576

function createRemoteKeys(url: string, clock: Clock): JWTVerifyGetKey {
  let failedAt = Number.NEGATIVE_INFINITY

  const fetchKeys: FetchImplementation = async (address, { headers, signal }) => {
    if (clock.now().getTime() - failedAt < FETCH_AFTER_FAILURE_MS) {
      throw new KeysUnavailable(`the keys at ${url} could not be fetched a moment ago`)
    }
    try {
      const request = { url: address, method: 'GET', headers: Object.fromEntries(headers), wantsBody: true } as const
      const limits = { signal, totalTimeMs: FETCH_TIMEOUT_MS, maxBytes: MAX_JWKS_BYTES }
      const { status, body } = await sendOnce(request, limits)
      if (status !== 200) throw new Error(`the answer is ${status}`)
      return new Response(body.toString('utf8'), { status })
    } catch (error) {
      failedAt = clock.now().getTime()
      throw new KeysUnavailable(`the keys at ${url} cannot be fetched: ${(error as Error).message}`, { cause: error })
    }
  }

  return createRemoteJWKSet(new URL(url), {
    timeoutDuration: FETCH_TIMEOUT_MS,
    cooldownDuration: FETCH_AGAIN_MS,
    [customFetch]: fetchKeys,
  })
}

async function readKeys(path: string): Promise<JWTVerifyGetKey> {
  const text = await readFile(path, 'utf8')
  if (text.trimStart().startsWith('{')) return createLocalJWKSet(JSON.parse(text) as JSONWebKeySet)
  const key = createPublicKey(text)
  return async () => key
}
