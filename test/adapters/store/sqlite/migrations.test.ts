/** The schema only moves forward, by files that never change. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { loadMigrations } from '../../../../src/adapters/store/migration-files.ts'
import { migrate, readMigrationStatus } from '../../../../src/adapters/store/sqlite/database/migrate-database.ts'
import { MIGRATIONS_DIRECTORY } from '../../../../src/adapters/store/sqlite/database/migrations.ts'
import { openSqliteStore } from '../../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { StoreOpenError, type StoreOpenReason } from '../../../../src/domain/store.ts'
import { withDirectory } from './temporary-store.ts'

const ALL = loadMigrations(MIGRATIONS_DIRECTORY).map(({ name }) => name)
const NEXT = `${String(ALL.length + 1).padStart(4, '0')}-next`

/** A data directory and a copy of the migrations to tamper with. */
function withMigrations(body: (directory: string, migrationsDirectory: string) => Promise<void>): Promise<void> {
  return withDirectory(async (root) => {
    const migrationsDirectory = join(root, 'migrations')
    await mkdir(migrationsDirectory)
    await cp(MIGRATIONS_DIRECTORY, migrationsDirectory, { recursive: true })
    await body(join(root, 'data'), migrationsDirectory)
  })
}

function refusal(reason: StoreOpenReason, message: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof StoreOpenError)
    assert.equal(error.reason, reason)
    assert.match(error.message, message)
    return true
  }
}

test('a dry run says what would run and touches nothing; a run runs it once', () =>
  withMigrations(async (directory) => {
    assert.deepEqual(migrate({ directory, dryRun: true }), { applied: [], pending: ALL })
    assert.equal(existsSync(directory), false)
    assert.deepEqual(migrate({ directory }), { applied: ALL, pending: [] })
    assert.deepEqual(migrate({ directory }), { applied: ALL, pending: [] })
  }))

test('a new migration is pending until the store is opened, and can be listed beside a running service', () =>
  withMigrations(async (directory, migrationsDirectory) => {
    migrate({ directory, migrationsDirectory })
    await writeFile(join(migrationsDirectory, `${NEXT}.sql`), 'CREATE TABLE later (id INTEGER) STRICT;')
    assert.deepEqual(readMigrationStatus({ directory, migrationsDirectory }), { applied: ALL, pending: [NEXT] })
    await using _store = await openSqliteStore({ directory, migrationsDirectory })
    assert.deepEqual(readMigrationStatus({ directory, migrationsDirectory }), { applied: [...ALL, NEXT], pending: [] })
    assert.throws(() => migrate({ directory, migrationsDirectory }), refusal('locked', /is in use by process/))
  }))

test('what was remembered of engines in an older database is known to the registry', () =>
  withMigrations(async (directory, migrationsDirectory) => {
    const later = ALL.slice(ALL.indexOf('0009-nodes-and-engines'))
    for (const name of later) await rm(join(migrationsDirectory, `${name}.sql`))
    migrate({ directory, migrationsDirectory })
    const database = new DatabaseSync(join(directory, 'atelier.db'))
    database.exec(`INSERT INTO meta (key, value) VALUES ('engine:gpu:8188', '{"A":1}'), ('other', 'stays')`)
    database.close()
    await using store = await openSqliteStore({ directory })
    const [engine] = await store.engines.list()
    assert.deepEqual([engine?.status.id, engine?.status.state, engine?.isShared], ['gpu:8188', 'lost', true])
    assert.deepEqual([...(await store.engines.findCatalogs([engine?.catalogHash ?? ''])).values()], ['{"A":1}'])
    assert.deepEqual([await store.readMeta('engine:gpu:8188'), await store.readMeta('other')], [null, 'stays'])
  }))

test('a migration that changed after it was applied stops the start', () =>
  withMigrations(async (directory, migrationsDirectory) => {
    migrate({ directory, migrationsDirectory })
    const file = join(migrationsDirectory, `${ALL[0]}.sql`)
    await writeFile(file, `${await readFile(file, 'utf8')}\n-- changed`)
    const changed = refusal('changed_migration', new RegExp(`Migration ${ALL[0]} differs`))
    await assert.rejects(openSqliteStore({ directory, migrationsDirectory }), changed)
    assert.throws(() => readMigrationStatus({ directory, migrationsDirectory }), changed)
  }))

test('a database of a newer version is not opened', () =>
  withMigrations(async (directory, migrationsDirectory) => {
    const next = join(migrationsDirectory, `${NEXT}.sql`)
    await writeFile(next, 'CREATE TABLE later (id INTEGER) STRICT;')
    migrate({ directory, migrationsDirectory })
    await rm(next)
    const newer = refusal('newer_schema', new RegExp(`newer version of Atelier: migration ${NEXT}`))
    await assert.rejects(openSqliteStore({ directory, migrationsDirectory }), newer)
    // The refused open let go of the directory.
    assert.throws(() => migrate({ directory, migrationsDirectory }), newer)
  }))

test('a migration that fails half-way leaves nothing of itself behind', () =>
  withMigrations(async (directory, migrationsDirectory) => {
    migrate({ directory, migrationsDirectory })
    const next = join(migrationsDirectory, `${NEXT}.sql`)
    await writeFile(next, 'CREATE TABLE later (id INTEGER) STRICT; CREATE TABLE account (id INTEGER);')
    const failed = refusal('failed_migration', new RegExp(`Migration ${NEXT} failed and was undone`))
    await assert.rejects(openSqliteStore({ directory, migrationsDirectory }), failed)
    const database = new DatabaseSync(join(directory, 'atelier.db'))
    assert.equal(database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'later'`).get(), undefined)
    database.close()
  }))
