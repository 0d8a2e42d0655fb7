import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { openAccounts } from '../../../../src/domain/accounts/accounts.ts'
import { DEFAULT_TIERS } from '../../../../src/domain/accounts/limits/tiers.ts'
import { testRouterNodes } from '../../../contracts/calls/router-nodes.ts'
import { ACCOUNT } from '../../../support/app/router-nodes.ts'

testRouterNodes({
  async open(clock) {
    await using opening = new AsyncDisposableStack()
    const directory = await mkdtemp(join(tmpdir(), 'atelier-store-'))
    opening.defer(() => rm(directory, { recursive: true, force: true }))
    const store = opening.use(await openSqliteStore({ directory, clock, synchronous: 'NORMAL' }))
    const accounts = await openAccounts({ directory: store.directory, tiers: DEFAULT_TIERS, clock })
    await accounts.create({ id: ACCOUNT, name: ACCOUNT, tier: null, overrides: {} })
    await store.ledger.grant({ id: 'first', accountId: ACCOUNT, micros: 1_000_000, at: clock.now(), memo: 'test' })
    const opened = opening.move()
    // The lock of the folder keeps a second process out: both nodes use one store.
    return { stores: [store, store] as const, [Symbol.asyncDispose]: () => opened.disposeAsync() }
  },
})
