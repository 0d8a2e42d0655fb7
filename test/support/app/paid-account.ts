/** An account that pays, with a key and some credit, put into a data folder before the service opens it. */

import { systemClock } from '../../../lib/clock.ts'
import { openAccounts } from '../../../src/domain/accounts/accounts.ts'
import { createApiKeys } from '../../../src/domain/accounts/keys/api-keys.ts'
import { openKeyRing } from '../../../src/domain/accounts/keys/key-ring.ts'
import { DEFAULT_TIERS, type LimitOverrides } from '../../../src/domain/accounts/limits/tiers.ts'
import type { Store } from '../../../src/domain/store.ts'
import { openTestStore } from './test-store.ts'

export interface PaidAccount {
  readonly accountId: string
  /** The API key. */
  readonly key: string
}

export interface PaidAccountOptions {
  readonly id?: string
  readonly micros: number
  readonly overrides?: LimitOverrides
}

export async function addPaidAccount(dataDir: string, options: PaidAccountOptions): Promise<PaidAccount> {
  await using store = await openTestStore(dataDir)
  return await addPaidAccountTo(store, options)
}

/** The same in a store that is open. */
export async function addPaidAccountTo(
  store: Pick<Store, 'directory' | 'ledger' | 'apiKeys'>,
  options: PaidAccountOptions,
): Promise<PaidAccount> {
  const { id = 'payer', micros, overrides = {} } = options
  const clock = systemClock
  const accounts = await openAccounts({ directory: store.directory, tiers: DEFAULT_TIERS, clock })
  await accounts.create({ id, name: id, tier: null, overrides: { requestsPerMinute: null, ...overrides } })
  if (micros > 0) await store.ledger.grant({ id: `first-${id}`, accountId: id, micros, at: clock.now(), memo: 'test' })
  const ring = await openKeyRing({ store: store.apiKeys, clock })
  const keys = createApiKeys({ store: store.apiKeys, ring, clock })
  const { text } = await keys.create({ accountId: id, name: 'test', scopes: null, expiresAt: null })
  return { accountId: id, key: text }
}
