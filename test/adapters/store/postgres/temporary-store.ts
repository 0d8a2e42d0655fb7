/** Stores in databases of their own that vanish with them. */
import { openPostgresStore } from '../../../../src/adapters/store/postgres/open-postgres-store.ts'
import type { StoreOpener, WholeStoreUnderTest } from '../../../contracts/store-under-test.ts'
import { createTestDatabase } from '../../../support/postgres/test-database.ts'

export const postgresOpener: StoreOpener<WholeStoreUnderTest> = {
  async open() {
    const database = await createTestDatabase()
    const store = await openPostgresStore({ url: database.url, migrates: false })
    return {
      store,
      async close() {
        await store[Symbol.asyncDispose]()
        await database[Symbol.asyncDispose]()
      },
    }
  },
}
