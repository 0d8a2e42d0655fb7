/**
 * Every key that can still be used, in memory, found by the id in its text. A right key and a wrong one therefore cost the same
 * few microseconds, nobody can fill a cache with guesses, and a revoked key is refused from the moment its revocation is
 * stored, in another process from its next refresh on. About 300 bytes per key, and only operators make keys.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../../lib/clock.ts'
import { FollowedList } from '../../../../lib/waiting/followed-list.ts'
import { ServiceError } from '../../errors.ts'
import type { Caller } from '../caller.ts'
import { digestOf, readKeyId, type StoredKey } from './api-key.ts'
import type { KeyStore, VersionedKey } from './key-store.ts'

export interface KeyRing {
  /** Whose key this is. Throws unauthorized, in one wording whatever is wrong. */
  identify(text: string): Caller
  /** The caller that `identify` returns for the text with this digest; null: that text would be refused now. */
  resume(keyId: string, digest: Uint8Array): Caller | null
  /** Whether the key for which `identify` returned this very caller object would still be accepted. */
  isGood(caller: Caller): boolean
  /** Whose key has this id; null: there is none that would be accepted. */
  find(keyId: string): Caller | null
  /** Makes or changes a key in the store: from then on what it answers counts. null: nothing was changed. */
  change(write: () => Promise<StoredKey | null>): Promise<StoredKey | null>
  /** Of the newest change that is known here. */
  readonly version: number
  /** Reads what was changed in the store since the last refresh. Opening does so once. */
  refresh(): Promise<void>
  /** Writes when keys were last used. */
  flushUses(): Promise<void>
  size(): number
}

interface LiveKey {
  readonly caller: Caller
  readonly digest: Uint8Array
  /** Whoever shows the text from before the last rotation: another caller, because that text expires before the key does. */
  readonly previousCaller: Caller
  readonly previousDigest: Uint8Array
  readonly previousUntil: number
  readonly expiresAt: number
  lastUsed: number
}

const PAGE = 1000
// Stands in for a missing digest, so that an unknown id takes as long as a known one.
const NO_DIGEST = new Uint8Array(32)
// One object for all refusals: its stack is of no use, and recording one each time would make a wrong key cost more than a right one.
const REFUSED = new ServiceError('unauthorized', 'a valid API key or token is required')

interface KeyRingDeps {
  readonly store: KeyStore
  readonly clock: Clock
  /** Called when a key is known anew or in a newer state. */
  readonly onChanged?: () => void
  /** Called after this process has changed a key. */
  readonly announce?: () => Promise<void>
}

export async function openKeyRing(deps: KeyRingDeps): Promise<KeyRing> {
  const ring = createKeyRing(deps)
  await ring.refresh()
  return ring
}

function createKeyRing({ store, clock, onChanged, announce }: KeyRingDeps): KeyRing {
  const live = new Map<string, LiveKey>()
  const used = new Set<string>()
  const list = new FollowedList<VersionedKey>({
    read: (version, limit) => store.changedAfter(version, limit),
    take: ({ key }) => put(key),
    pageSize: PAGE,
  })

  function put(key: StoredKey): void {
    const expiresAt = key.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY
    if (key.revokedAt !== null || expiresAt <= clock.now().getTime()) live.delete(key.id)
    else live.set(key.id, toLiveKey(key, expiresAt, live.get(key.id)))
    onChanged?.()
  }

  return {
    get version() {
      return list.version
    },
    async change(write) {
      const key = await list.write(write, (changed) => {
        if (changed !== null) put(changed)
      })
      if (key !== null) await announce?.()
      return key
    },
    identify(text) {
      const id = readKeyId(text)
      if (id === null) throw REFUSED
      const digest = digestOf(text)
      const key = live.get(id)
      // Both comparisons always run: the time that a refusal takes must reveal nothing about the stored digests.
      const isCurrent = timingSafeEqual(digest, key?.digest ?? NO_DIGEST)
      const isPrevious = timingSafeEqual(digest, key?.previousDigest ?? NO_DIGEST)
      if (key === undefined) throw REFUSED
      const now = clock.now().getTime()
      const isRight = isCurrent || (isPrevious && now < key.previousUntil)
      if (!isRight || now >= key.expiresAt) throw REFUSED
      key.lastUsed = now
      used.add(id)
      return isCurrent ? key.caller : key.previousCaller
    },
    resume(keyId, digest) {
      const key = live.get(keyId)
      const now = clock.now().getTime()
      if (key === undefined || now >= key.expiresAt) return null
      if (isEqual(digest, key.digest)) return key.caller
      return isEqual(digest, key.previousDigest) && now < key.previousUntil ? key.previousCaller : null
    },
    isGood(caller) {
      const key = live.get(caller.keyId ?? '')
      if (key === undefined) return false
      const now = clock.now().getTime()
      if (now >= key.expiresAt) return false
      return caller === key.caller || (caller === key.previousCaller && now < key.previousUntil)
    },
    find(keyId) {
      const key = live.get(keyId)
      return key === undefined || clock.now().getTime() >= key.expiresAt ? null : key.caller
    },
    refresh: () => list.refresh(),
    async flushUses() {
      const uses = [...used].map((keyId) => ({ keyId, at: new Date(live.get(keyId)?.lastUsed ?? 0) }))
      used.clear()
      for (let from = 0; from < uses.length; from += PAGE) await store.touch(uses.slice(from, from + PAGE))
    },
    size: () => live.size,
  }
}

/** `before`: the key as it was known until now. Whoever shows a text that is still accepted stays the same caller. */
function toLiveKey(key: StoredKey, expiresAt: number, before: LiveKey | undefined): LiveKey {
  const { id, accountId, scopes, endpoints, digest } = key
  const previousDigest = key.previousDigest ?? NO_DIGEST
  const callerWith = (text: Uint8Array): Caller => {
    if (before !== undefined && isEqual(text, before.digest)) return before.caller
    if (before !== undefined && isEqual(text, before.previousDigest)) return before.previousCaller
    return { accountId, keyId: id, scopes: scopes === null ? null : new Set(scopes), endpoints }
  }
  const caller = callerWith(digest)
  return {
    caller,
    digest,
    previousCaller: key.previousDigest === null ? caller : callerWith(previousDigest),
    previousDigest,
    previousUntil: key.previousUntil?.getTime() ?? 0,
    expiresAt,
    lastUsed: key.lastUsedAt?.getTime() ?? 0,
  }
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

export function refusedCredential(): ServiceError {
  return REFUSED
}
