/** Stores in directories of their own that vanish with them. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  openSqliteStore,
  type SqliteStore,
  type SqliteStoreOptions,
} from '../../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import type { StoreOpener, WholeStoreUnderTest } from '../../../contracts/store-under-test.ts'

export function makeDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'atelier-store-'))
}

export async function withDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = await makeDirectory()
  try {
    await body(directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

export function withSqlite(
  options: Omit<SqliteStoreOptions, 'directory'>,
  body: (store: SqliteStore, directory: string) => Promise<void>,
): Promise<void> {
  return withDirectory(async (directory) => {
    await using store = await openSqliteStore({ ...options, directory })
    await body(store, directory)
  })
}

export const sqliteOpener: StoreOpener<WholeStoreUnderTest> = {
  async open() {
    const directory = await makeDirectory()
    const store = await openSqliteStore({ directory })
    return {
      store,
      async close() {
        await store[Symbol.asyncDispose]()
        await rm(directory, { recursive: true, force: true })
      },
    }
  },
}
