import { openPostgresStore } from '../../../../src/adapters/store/postgres/open-postgres-store.ts'
import { testMetaStore } from '../../../contracts/meta-store.ts'
import { createTestDatabase } from '../../../support/postgres/test-database.ts'

testMetaStore(async () => {
  const database = await createTestDatabase()
  const open = () => openPostgresStore({ url: database.url, migrates: false })
  const [one, other] = await Promise.all([open(), open()])
  return {
    stores: [one, other],
    async close() {
      await Promise.all([one[Symbol.asyncDispose](), other[Symbol.asyncDispose]()])
      await database[Symbol.asyncDispose]()
    },
  }
})
