/** Accounts, keys and who may call, over a real store in a folder of its own and a clock that stands still. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { openAccounts } from '../../../src/domain/accounts/accounts.ts'
import { createCallers, type VerifyToken } from '../../../src/domain/accounts/authenticate.ts'
import { createApiKeys } from '../../../src/domain/accounts/keys/api-keys.ts'
import { openKeyRing } from '../../../src/domain/accounts/keys/key-ring.ts'
import { DEFAULT_TIERS } from '../../../src/domain/accounts/limits/tiers.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'

export async function openAccountRig(options: { readonly verifyToken?: VerifyToken } = {}) {
  await using opening = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'atelier-accounts-'))
  opening.defer(() => rm(directory, { recursive: true, force: true }))
  const clock = createFixedClock()
  const store = opening.use(await openSqliteStore({ directory, clock, synchronous: 'NORMAL' }))
  const accounts = await openAccounts({ directory: store.directory, tiers: DEFAULT_TIERS, clock })
  const ring = await openKeyRing({ store: store.apiKeys, clock })
  const keys = createApiKeys({ store: store.apiKeys, ring, clock })
  const { verifyToken = null } = options
  const { authenticate, isWelcome } = createCallers({
    keys: ring,
    findAccount: (id) => accounts.find(id),
    verifyToken,
    clock,
  })
  await accounts.create({ id: 'acme', name: 'Acme', tier: null, overrides: {} })
  const running = opening.move()
  return {
    ...{ directory, store, clock, accounts, ring, keys, authenticate, isWelcome },
    newKey: (fields: { scopes?: string[]; expiresAt?: Date } = {}) =>
      keys.create({ accountId: 'acme', name: '', scopes: fields.scopes ?? null, expiresAt: fields.expiresAt ?? null }),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}
