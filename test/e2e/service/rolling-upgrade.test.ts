/** A newer version takes over from an older one without a pause: both serve one database while jobs come in. */
import assert from 'node:assert/strict'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { loadMigrations } from '../../../src/adapters/store/migration-files.ts'
import { migrate } from '../../../src/adapters/store/postgres/database/migrate-database.ts'
import { MIGRATIONS_DIRECTORY } from '../../../src/adapters/store/postgres/database/migrations.ts'
import { type App, startApp } from '../../../src/app.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'

const LAST = loadMigrations(MIGRATIONS_DIRECTORY).length
const EXPAND = '-- phase: expand\nALTER TABLE job ADD COLUMN weight integer NOT NULL DEFAULT 1;\n'
const CONTRACT = '-- phase: contract\nALTER TABLE job DROP COLUMN weight;\n'

async function addMigration(directory: string, step: number, sql: string): Promise<void> {
  await writeFile(join(directory, `${String(LAST + step).padStart(4, '0')}-step.sql`), sql)
}

test('old and new processes serve together, no job is lost, and the old version is refused once it cannot work', async () => {
  await using database = await createTestDatabase()
  const root = await mkdtemp(join(tmpdir(), 'atelier-rolling-'))
  try {
    const newer = join(root, 'migrations')
    await cp(MIGRATIONS_DIRECTORY, newer, { recursive: true })
    await addMigration(newer, 1, EXPAND)
    const start = (migrationsDirectory: string): Promise<App> => {
      const { config, secrets } = loadConfig({
        flags: { port: '0', dataDir: join(root, 'data'), databasePool: '4', migrate: 'check', workers: '2' },
        env: { ATELIER_DATABASE: database.url, ATELIER_SECRET_KEY: 'ab'.repeat(32) },
        cwd: root,
      })
      const overrides = { engine: createFakeEngine(), migrationsDirectory }
      return startApp(config, secrets, { log: silentLog, version: 'test', overrides })
    }
    const old = await start(MIGRATIONS_DIRECTORY)
    const submit = async (app: App, count: number) => {
      const client = new CheckedClient(app.url)
      const jobs = Array.from({ length: count }, () => client.accepted({ '1': node('FakeSave') }))
      return (await Promise.all(jobs)).map(({ id }) => id)
    }
    const accepted = await submit(old, 10)
    await assert.rejects(start(newer), /lacks 1 migrations.*atelier migrate/)
    const during = submit(old, 10)
    await migrate({ url: database.url, migrationsDirectory: newer })
    accepted.push(...(await during))
    const fresh = await start(newer)
    const both = await Promise.all([submit(old, 10), submit(fresh, 10)])
    accepted.push(...both.flat())

    await addMigration(newer, 2, CONTRACT)
    await assert.rejects(
      migrate({ url: database.url, migrationsDirectory: newer, contracts: true }),
      /takes away what 2 running processes of an older version need/,
    )
    await old.drain()
    await old[Symbol.asyncDispose]()
    const client = new CheckedClient(fresh.url)
    for (const id of accepted) await client.untilStatus(id, 'succeeded')
    await fresh.drain()
    await fresh[Symbol.asyncDispose]()
    await migrate({ url: database.url, migrationsDirectory: newer, contracts: true })
    await assert.rejects(start(MIGRATIONS_DIRECTORY), /newer version of Atelier/)
    await using last = await start(newer)
    assert.equal((await new CheckedClient(last.url).job(accepted[0] ?? '')).status, 'succeeded')
  } finally {
    await rm(root, { recursive: true, force: true })
  }
})
