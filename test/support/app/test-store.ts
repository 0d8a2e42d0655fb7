/**
 * The store of a service under test: SQLite in its data folder, or, with `ATELIER_TEST_STORE=postgres`, a database of its own that
 * belongs to the folder by its name. So every test of the whole service runs on both.
 */
import { createHash } from 'node:crypto'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import type { Store } from '../../../src/domain/store.ts'

export const isOnPostgres = process.env['ATELIER_TEST_STORE'] === 'postgres'

// Any key will do; Postgres demands one.
const SECRET_KEY = Buffer.alloc(32, 3).toString('base64')

/** Settings that name the store of this folder, as on the command line without the dashes. */
export async function toStoreSettings(dataDir: string): Promise<Readonly<Record<string, string>>> {
  if (!isOnPostgres) return {}
  const { ensureNamedDatabase } = await loadPostgres()
  return { database: await ensureNamedDatabase(toName(dataDir)), secretKey: SECRET_KEY }
}

/** Opens the store while no service uses it. */
export async function openTestStore(dataDir: string): Promise<Store> {
  if (!isOnPostgres) return openSqliteStore({ directory: dataDir })
  const { ensureNamedDatabase, openPostgresStore } = await loadPostgres()
  return openPostgresStore({ url: await ensureNamedDatabase(toName(dataDir)), migrates: false })
}

export async function dropTestStore(dataDir: string): Promise<void> {
  if (isOnPostgres) await (await loadPostgres()).dropNamedDatabase(toName(dataDir))
}

/** Only where it is used: most runs have no Postgres. */
async function loadPostgres() {
  const [databases, store] = await Promise.all([
    import('../postgres/test-database.ts'),
    import('../../../src/adapters/store/postgres/open-postgres-store.ts'),
  ])
  return { ...databases, ...store }
}

function toName(dataDir: string): string {
  return `d_${createHash('sha256').update(dataDir).digest('hex').slice(0, 24)}`
}
