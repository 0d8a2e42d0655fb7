/**
 * Every key that can still be used, in memory, found by the id in its text. So a right key and a wrong one cost the same few
 * microseconds, nobody can fill a cache with guesses, and a revoked key is refused from the moment its revocation is stored.
 * About 300 bytes per key, and only operators make keys.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import { ServiceError } from '../errors.ts'
import { digestOf, readKeyId, type StoredKey } from './api-key.ts'
import type { Caller } from './caller.ts'
import type { KeyStore } from './key-store.ts'

export interface KeyRing {
  /** Whose key this is. Throws unauthorized, in one wording whatever is wrong. */
  identify(text: string): Caller
  /** A key changed; what is stored counts from now on. */
  put(key: StoredKey): void
  /** Brings in what other processes changed. */
  refresh(): Promise<void>
  /** Writes when keys were last used. */
  flushUses(): Promise<void>
  size(): number
}

interface LiveKey {
  readonly caller: Caller
  readonly digest: Uint8Array
  readonly previousDigest: Uint8Array
  readonly previousUntil: number
  readonly expiresAt: number
  lastUsed: number
}

const PAGE = 1000
// Compared with when there is nothing to compare with, so that an unknown id takes as long as a known one.
const NO_DIGEST = new Uint8Array(32)
// One for all refusals: the stack of a refusal tells nothing, and collecting it would make a wrong key dearer than a right one.
const REFUSED = new ServiceError('unauthorized', 'a valid API key or token is required')

export async function openKeyRing(deps: { readonly store: KeyStore; readonly clock: Clock }): Promise<KeyRing> {
  const ring = createKeyRing(deps)
  await ring.refresh()
  return ring
}

function createKeyRing({ store, clock }: { readonly store: KeyStore; readonly clock: Clock }): KeyRing {
  const live = new Map<string, LiveKey>()
  const used = new Set<string>()
  let seenVersion = 0

  function put(key: StoredKey): void {
    const expiresAt = key.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY
    if (key.revokedAt !== null || expiresAt <= clock.now().getTime()) live.delete(key.id)
    else live.set(key.id, toLiveKey(key, expiresAt))
  }

  return {
    put,
    identify(text) {
      const id = readKeyId(text)
      if (id === null) throw REFUSED
      const digest = digestOf(text)
      const key = live.get(id)
      // Both comparisons always run: what is shown must not be told from what is stored by the time it takes.
      const isCurrent = timingSafeEqual(digest, key?.digest ?? NO_DIGEST)
      const isPrevious = timingSafeEqual(digest, key?.previousDigest ?? NO_DIGEST)
      if (key === undefined) throw REFUSED
      const now = clock.now().getTime()
      const isRight = isCurrent || (isPrevious && now < key.previousUntil)
      if (!isRight || now >= key.expiresAt) throw REFUSED
      key.lastUsed = now
      used.add(id)
      return key.caller
    },
    async refresh() {
      for (;;) {
        const page = await store.changedAfter(seenVersion, PAGE)
        for (const { key, version } of page) {
          put(key)
          seenVersion = version
        }
        if (page.length < PAGE) return
      }
    },
    async flushUses() {
      const uses = [...used].map((keyId) => ({ keyId, at: new Date(live.get(keyId)?.lastUsed ?? 0) }))
      used.clear()
      for (let from = 0; from < uses.length; from += PAGE) await store.touch(uses.slice(from, from + PAGE))
    },
    size: () => live.size,
  }
}

function toLiveKey(key: StoredKey, expiresAt: number): LiveKey {
  const { id, accountId, scopes } = key
  return {
    caller: { accountId, keyId: id, scopes: scopes === null ? null : new Set(scopes) },
    digest: key.digest,
    previousDigest: key.previousDigest ?? NO_DIGEST,
    previousUntil: key.previousUntil?.getTime() ?? 0,
    expiresAt,
    lastUsed: key.lastUsedAt?.getTime() ?? 0,
  }
}

export function refusedCredential(): ServiceError {
  return REFUSED
}
