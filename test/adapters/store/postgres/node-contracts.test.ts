import { openPostgresStore } from '../../../../src/adapters/store/postgres/open-postgres-store.ts'
import { testEngineRegistry } from '../../../contracts/engine-registry.ts'
import { testNodeStore } from '../../../contracts/node-store.ts'
import { testGlance } from '../../../contracts/store-glance.ts'
import { createTestDatabase } from '../../../support/postgres/test-database.ts'
import { postgresOpener } from './temporary-store.ts'

async function openTwo() {
  const database = await createTestDatabase()
  const [one, other] = await Promise.all([
    openPostgresStore({ url: database.url, migrates: false }),
    openPostgresStore({ url: database.url, migrates: false }),
  ])
  return {
    one,
    other,
    async close() {
      await Promise.all([one[Symbol.asyncDispose](), other[Symbol.asyncDispose]()])
      await database[Symbol.asyncDispose]()
    },
  }
}

testNodeStore({
  async openPair() {
    const { one, other, close } = await openTwo()
    return { views: [one.nodes, other.nodes], close }
  },
})

testEngineRegistry({
  async openPair() {
    const { one, other, close } = await openTwo()
    return { views: [one.engines, other.engines], close }
  },
})

testGlance(postgresOpener)
