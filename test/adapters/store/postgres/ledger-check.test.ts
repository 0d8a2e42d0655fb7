import { createClient } from '../../../../lib/postgres/driver.ts'
import { openPostgresStore } from '../../../../src/adapters/store/postgres/open-postgres-store.ts'
import { testLedgerCheck } from '../../../contracts/credits/ledger-check.ts'
import { createTestDatabase } from '../../../support/postgres/test-database.ts'

testLedgerCheck({
  async open() {
    await using opening = new AsyncDisposableStack()
    const { url } = opening.use(await createTestDatabase())
    const store = opening.use(await openPostgresStore({ url, migrates: false }))
    const client = createClient({ url })
    await client.connect()
    opening.defer(() => client.end())
    const open = opening.move()
    return { store, exec: async (sql) => void (await client.query(sql)), close: () => open.disposeAsync() }
  },
  unlock: 'DROP TRIGGER ledger_entry_stays ON ledger_entry',
})
