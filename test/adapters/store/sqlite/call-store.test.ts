import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { openSqliteStore, type SqliteStore } from '../../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { type Accounts, openAccounts } from '../../../../src/domain/accounts/accounts.ts'
import { DEFAULT_TIERS } from '../../../../src/domain/accounts/limits/tiers.ts'
import { testCallLeases } from '../../../contracts/calls/call-leases.ts'
import { testCallPlans } from '../../../contracts/calls/call-plans.ts'
import { testCallStore } from '../../../contracts/calls/call-store.ts'
import { createFixedClock } from '../../../support/fixed-clock.ts'

const clock = createFixedClock()
let directory: string
let store: SqliteStore
let accounts: Accounts

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'atelier-store-'))
  store = await openSqliteStore({ directory, clock, synchronous: 'NORMAL' })
  accounts = await openAccounts({ directory: store.directory, tiers: DEFAULT_TIERS, clock })
})
after(async () => {
  await store[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

const underTest = () => ({
  calls: store.calls,
  requests: store.requests,
  ledger: store.ledger,
  // The lock of the folder keeps a second process out: both nodes use one store.
  other: store,
  async addAccount(micros: number | null) {
    const id = randomUUID()
    if (micros === null) return id
    await accounts.create({ id, name: id, tier: null, overrides: {} })
    await store.ledger.grant({ id, accountId: id, micros, at: clock.now(), memo: 'test' })
    return id
  },
})

testCallStore(underTest)
testCallLeases(underTest)
testCallPlans(underTest)
