import { randomUUID } from 'node:crypto'
import { after, before, describe } from 'node:test'
import { openPostgresStore } from '../../../../src/adapters/store/postgres/open-postgres-store.ts'
import { type Accounts, openAccounts } from '../../../../src/domain/accounts/accounts.ts'
import { DEFAULT_TIERS } from '../../../../src/domain/accounts/limits/tiers.ts'
import type { Store } from '../../../../src/domain/store.ts'
import { testCallLeases } from '../../../contracts/calls/call-leases.ts'
import { testCallPlans } from '../../../contracts/calls/call-plans.ts'
import { newCall, testCallStore } from '../../../contracts/calls/call-store.ts'
import { testRouterNodes } from '../../../contracts/calls/router-nodes.ts'
import { testSentJournal } from '../../../contracts/calls/sent-journal.ts'
import { at } from '../../../contracts/store-under-test.ts'
import { ACCOUNT } from '../../../support/app/router-nodes.ts'
import { createFixedClock } from '../../../support/fixed-clock.ts'
import { createTestDatabase } from '../../../support/postgres/test-database.ts'

const clock = createFixedClock()
const opened = new AsyncDisposableStack()
let stores: readonly [Store, Store]
let accounts: Accounts

async function openPair(stack: AsyncDisposableStack): Promise<readonly [Store, Store]> {
  const { url } = stack.use(await createTestDatabase())
  const open = async () => stack.use(await openPostgresStore({ url, migrates: false, clock }))
  return [await open(), await open()]
}

const underTest = () => ({
  calls: stores[0].calls,
  requests: stores[0].requests,
  ledger: stores[0].ledger,
  other: stores[1],
  async addAccount(micros: number | null) {
    const id = randomUUID()
    if (micros === null) return id
    await accounts.create({ id, name: id, tier: null, overrides: {} })
    await stores[0].ledger.grant({ id, accountId: id, micros, at: clock.now(), memo: 'test' })
    return id
  },
})

testRouterNodes({
  async open(ownClock) {
    await using opening = new AsyncDisposableStack()
    const pair = await openPair(opening)
    const directory = await openAccounts({ directory: pair[0].directory, tiers: DEFAULT_TIERS, clock: ownClock })
    await directory.create({ id: ACCOUNT, name: ACCOUNT, tier: null, overrides: {} })
    const gift = { id: 'first', accountId: ACCOUNT, micros: 1_000_000, at: ownClock.now(), memo: 'test' }
    await pair[0].ledger.grant(gift)
    const all = opening.move()
    return { stores: pair, [Symbol.asyncDispose]: () => all.disposeAsync() }
  },
})

const NO_LIMITS = { maxCalls: null, maxCostlyCalls: null, ceilingMicros: null }

describe('calls on Postgres', () => {
  before(async () => {
    stores = await openPair(opened)
    accounts = await openAccounts({ directory: stores[0].directory, tiers: DEFAULT_TIERS, clock })
  })
  after(() => opened.disposeAsync())

  testCallStore(underTest)
  testCallLeases(underTest)
  testCallPlans(underTest)
  testSentJournal({
    async withJournal(body) {
      const [store, next] = stores
      await body({
        reopen: () => next.sentJournal as NonNullable<Store['sentJournal']>,
        async letIn() {
          const options = { isValid: true, lease: { owner: randomUUID(), until: at(1) } }
          const outcome = await store.calls.admit(newCall(randomUUID(), { holdMicros: null }), NO_LIMITS, options)
          if (outcome.outcome !== 'admitted') throw new Error(outcome.outcome)
          return outcome.ref
        },
        async takenOver({ id }) {
          const times = { lapsedBefore: at(2), ownLapsedBefore: at(0), lease: { owner: randomUUID(), until: at(1) } }
          const found = await next.calls.takeLapsed({ ...times, except: [], limit: 1000 })
          const call = found.find(({ ref }) => ref.id === id)
          if (call === undefined) throw new Error('the call was not taken over')
          return call
        },
      })
    },
  })
})
