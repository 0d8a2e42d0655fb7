import { rm } from 'node:fs/promises'
import { openSqliteStore } from '../../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { testEngineRegistry } from '../../../contracts/engine-registry.ts'
import { testNodeStore } from '../../../contracts/node-store.ts'
import { testGlance } from '../../../contracts/store-glance.ts'
import { makeDirectory, sqliteOpener } from './temporary-store.ts'

// One process at a time has a data folder open, so both views are those of one store.
async function openOne() {
  const directory = await makeDirectory()
  const store = await openSqliteStore({ directory })
  return {
    store,
    async close() {
      await store[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

testNodeStore({
  async openPair() {
    const { store, close } = await openOne()
    return { views: [store.nodes, store.nodes], close }
  },
})

testEngineRegistry({
  async openPair() {
    const { store, close } = await openOne()
    return { views: [store.engines, store.engines], close }
  },
})

testGlance(sqliteOpener)
