/**
 * Keys that accounts have at providers. A key is sealed before it is stored, and only opened to be sent to its provider. Every change of
 * an account's keys raises a number in the record that its calls are admitted under: a call that was opened under another number is
 * not admitted but opened again, so that in no process a call begins with what was true before.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Sealer } from '../../../../lib/sealer.ts'

export interface SealedProviderKey {
  readonly accountId: string
  readonly provider: string
  readonly sealed: Uint8Array
  /** The end of the key, to tell it from others; empty for a short one. */
  readonly lastFour: string
  readonly createdAt: Date
  readonly changedAt: Date
}

/** As the store has them. */
interface AccountKeys {
  readonly version: number
  /** By provider. */
  readonly keys: readonly SealedProviderKey[]
}

export interface ProviderKeyStore {
  ofAccount(accountId: string): Promise<AccountKeys>
  /** An earlier key of the same provider is replaced; its `createdAt` stays. */
  put(key: SealedProviderKey, max: number): Promise<{ readonly outcome: 'added' | 'replaced' | 'too_many' }>
  /** False: there was none. */
  remove(accountId: string, provider: string): Promise<boolean>
  /** Of all accounts, in order, behind the given one. */
  page(
    after: Pick<SealedProviderKey, 'accountId' | 'provider'> | null,
    limit: number,
  ): Promise<readonly SealedProviderKey[]>
  /** The same key, sealed anew. False: it was changed meanwhile, and stays as it is. */
  reseal(key: SealedProviderKey, sealed: Uint8Array): Promise<boolean>
}

export interface OpenedKeys {
  readonly version: number
  readonly providers: ReadonlySet<string>
}

export interface ProviderKeyRing {
  /** What this process knows, asked of the store where it knows nothing yet. */
  of(accountId: string): OpenedKeys | Promise<OpenedKeys>
  /** What the store says now. */
  refresh(accountId: string): Promise<OpenedKeys>
  /** The same, without a question where no other process can have changed it. */
  now(accountId: string): OpenedKeys | Promise<OpenedKeys>
  /** The key itself, as it is now; null: there is none, or it cannot be opened. */
  open(accountId: string, provider: string): Promise<string | null>
  /** Seals every key that a former sealing key sealed under the present one; returns how many. */
  renew(): Promise<number>
}

export const NO_PROVIDER_KEYS: ProviderKeyRing = {
  of: () => NONE,
  refresh: async () => NONE,
  now: () => NONE,
  open: async () => null,
  renew: async () => 0,
}
const NONE: OpenedKeys = { version: 0, providers: new Set() }

interface RingDeps {
  readonly store: ProviderKeyStore
  /** null: nothing can be opened. */
  readonly sealer: Sealer | null
  /** No other process has the store: what is known here is true until it is changed here. */
  readonly isExclusive: boolean
}

const MAX_KNOWN = 50_000
const PAGE = 500

export function createProviderKeyRing({ store, sealer, isExclusive }: RingDeps): ProviderKeyRing {
  const known = new BoundedMap<string, OpenedKeys>(MAX_KNOWN)

  async function refresh(accountId: string): Promise<OpenedKeys> {
    const { version, keys } = await store.ofAccount(accountId)
    const opened = { version, providers: new Set(keys.map(({ provider }) => provider)) }
    known.set(accountId, opened)
    return opened
  }

  const of = (accountId: string) => known.get(accountId) ?? refresh(accountId)
  return {
    of,
    refresh,
    now: isExclusive ? of : refresh,
    async open(accountId, provider) {
      const { keys } = await store.ofAccount(accountId)
      const found = keys.find((key) => key.provider === provider)
      return found === undefined ? null : openKey(sealer, found)
    },
    async renew() {
      if (sealer === null) return 0
      let [renewed, after]: [number, SealedProviderKey | null] = [0, null]
      for (;;) {
        const page: readonly SealedProviderKey[] = await store.page(after, PAGE)
        for (const key of page) {
          const sealed = sealer.renew(key.sealed, contextOf(key))
          if (sealed !== null && (await store.reseal(key, sealed))) renewed++
        }
        after = page.at(-1) ?? null
        if (page.length < PAGE) return renewed
      }
    },
  }
}

// Bound to its owner and its provider: copied to another row it does not open.
function contextOf({ accountId, provider }: Pick<SealedProviderKey, 'accountId' | 'provider'>): string {
  return `provider-key:${accountId}:${provider}`
}

export function sealKey(
  sealer: Sealer,
  of: Pick<SealedProviderKey, 'accountId' | 'provider'>,
  key: string,
): Uint8Array {
  return sealer.seal(Buffer.from(key), contextOf(of))
}

/** null: it was sealed under a key that this service does not have. */
export function openKey(sealer: Sealer | null, key: SealedProviderKey): string | null {
  const plain = sealer?.open(key.sealed, contextOf(key)) ?? null
  return plain === null ? null : Buffer.from(plain).toString()
}
