/** Stores in databases of their own that vanish with them. */
import { createClient } from '../../../../lib/postgres/driver.ts'
import { openPostgresStore } from '../../../../src/adapters/store/postgres/open-postgres-store.ts'
import type { Store } from '../../../../src/domain/store.ts'
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

interface TwoNodes {
  /** The stores of two processes on one database. */
  readonly stores: readonly [Store, Store]
  readonly url: string
  /** Asks the database itself, beside the stores. */
  query(text: string, values?: unknown[]): Promise<unknown[][]>
}

export async function withTwoNodes(body: (nodes: TwoNodes) => Promise<void>): Promise<void> {
  await using database = await createTestDatabase()
  const client = createClient({ url: database.url })
  await client.connect()
  try {
    await using one = await openPostgresStore({ url: database.url, migrates: false })
    await using other = await openPostgresStore({ url: database.url, migrates: false })
    await body({
      stores: [one, other],
      url: database.url,
      query: async (text, values) => (await client.query({ text, values: values ?? [], rowMode: 'array' })).rows,
    })
  } finally {
    await client.end()
  }
}
