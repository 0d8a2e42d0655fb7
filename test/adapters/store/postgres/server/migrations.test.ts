/** The schema only moves forward; old and new programs use it side by side until an operator takes away what the old ones need. */
import assert from 'node:assert/strict'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadMigrations } from '../../../../../src/adapters/store/migration-files.ts'
import { migrate } from '../../../../../src/adapters/store/postgres/database/migrate-database.ts'
import { MIGRATIONS_DIRECTORY } from '../../../../../src/adapters/store/postgres/database/migrations.ts'
import { openSession } from '../../../../../src/adapters/store/postgres/database/session.ts'
import { openPostgresStore } from '../../../../../src/adapters/store/postgres/open-postgres-store.ts'
import { StoreOpenError, type StoreOpenReason } from '../../../../../src/domain/store.ts'
import { createBareDatabase } from '../../../../support/postgres/test-database.ts'

const ALL = loadMigrations(MIGRATIONS_DIRECTORY).map(({ name }) => name)
const nameOf = (step: number, what: string) => `${String(ALL.length + step).padStart(4, '0')}-${what}`

interface Grounds {
  readonly url: string
  /** A copy of the migrations to add to. */
  readonly migrationsDirectory: string
  add(step: number, what: string, sql: string): Promise<string>
  ask(text: string): Promise<readonly (readonly unknown[])[]>
}

async function onGrounds(body: (grounds: Grounds) => Promise<void>): Promise<void> {
  await using database = await createBareDatabase()
  const migrationsDirectory = await mkdtemp(join(tmpdir(), 'atelier-migrations-'))
  try {
    await cp(MIGRATIONS_DIRECTORY, migrationsDirectory, { recursive: true })
    await body({
      url: database.url,
      migrationsDirectory,
      async add(step, what, sql) {
        const name = nameOf(step, what)
        await writeFile(join(migrationsDirectory, `${name}.sql`), sql)
        return name
      },
      async ask(text) {
        await using session = await openSession({ url: database.url })
        const { rows } = await session.client.query({ text, rowMode: 'array' })
        return rows
      },
    })
  } finally {
    await rm(migrationsDirectory, { recursive: true, force: true })
  }
}

const refusedFor = (reason: StoreOpenReason, words: RegExp) => (error: unknown) =>
  error instanceof StoreOpenError && error.reason === reason && words.test(error.message)

test('the numbers and names are those of SQLite, and every file says its phase', async () => {
  const sqlite = loadMigrations(MIGRATIONS_DIRECTORY.replace(/postgres$/, 'sqlite'))
  assert.deepEqual(
    ALL,
    sqlite.map(({ name }) => name),
  )
  for (const name of ALL) {
    const text = await readFile(join(MIGRATIONS_DIRECTORY, `${name}.sql`), 'utf8')
    assert.match(text, /^-- phase: (expand|contract)$/m, name)
  }
})

test('processes that start at once on an empty database find every migration run once', () =>
  onGrounds(async ({ url, ask }) => {
    const stores = await Promise.all([1, 2, 3].map(() => openPostgresStore({ url })))
    for (const store of stores) await store[Symbol.asyncDispose]()
    const rows = await ask('SELECT name FROM schema_migration ORDER BY number')
    assert.deepEqual(
      rows.map(([name]) => name),
      ALL,
    )
  }))

test('a start that must not migrate is refused until somebody has', () =>
  onGrounds(async ({ url }) => {
    await assert.rejects(
      openPostgresStore({ url, migrates: false }),
      refusedFor('pending_migrations', /lacks .*atelier migrate/),
    )
    assert.deepEqual((await migrate({ url, dryRun: true })).applied, [])
    assert.deepEqual((await migrate({ url, dryRun: true })).pending, ALL)
    assert.deepEqual(await migrate({ url }), { applied: ALL, pending: [], toContract: [] })
    await using _store = await openPostgresStore({ url, migrates: false })
  }))

test('a failed migration is undone, and says which it was', () =>
  onGrounds(async ({ url, migrationsDirectory, add, ask }) => {
    const name = await add(
      1,
      'broken',
      '-- phase: expand\nCREATE TABLE half (id integer);\nSELECT nothing FROM nowhere;\n',
    )
    await assert.rejects(
      migrate({ url, migrationsDirectory }),
      refusedFor('failed_migration', new RegExp(`${name} failed and was undone: .*nowhere`)),
    )
    assert.deepEqual(await ask(`SELECT to_regclass('half')::text`), [[null]])
    assert.equal((await migrate({ url, dryRun: true })).applied.length, ALL.length, 'those before it stay')
  }))

test('a file that changed after it was applied stops everything', () =>
  onGrounds(async ({ url, migrationsDirectory }) => {
    await migrate({ url, migrationsDirectory })
    const file = join(migrationsDirectory, `${ALL[0]}.sql`)
    await writeFile(file, `${await readFile(file, 'utf8')}\n-- a later thought\n`)
    await assert.rejects(
      openPostgresStore({ url, migrationsDirectory }),
      refusedFor('changed_migration', /differs from the one that was applied/),
    )
  }))

test('an index is built beside live traffic, outside of any transaction', () =>
  onGrounds(async ({ url, migrationsDirectory, add, ask }) => {
    await add(
      1,
      'index',
      '-- phase: expand\n-- no transaction\nCREATE INDEX CONCURRENTLY IF NOT EXISTS asset_name ON asset (account_id, id);\n',
    )
    await migrate({ url, migrationsDirectory })
    assert.deepEqual(await ask(`SELECT indisvalid FROM pg_index WHERE indexrelid = 'asset_name'::regclass`), [[true]])
  }))

test('old and new programs share the schema until the old ones are gone and an operator contracts it', () =>
  onGrounds(async ({ url, migrationsDirectory, add, ask }) => {
    await using old = await openPostgresStore({ url })
    await add(
      1,
      'wider',
      '-- phase: expand\nALTER TABLE meta ADD COLUMN note text;\nCREATE TABLE IF NOT EXISTS node (id text PRIMARY KEY, about text, alive_until bigint);\n',
    )
    const contracting = await add(2, 'narrower', '-- phase: contract\nALTER TABLE meta DROP COLUMN note;\n')
    const last = await add(3, 'widest', '-- phase: expand\nALTER TABLE meta ADD COLUMN hint text;\n')
    {
      await using _fresh = await openPostgresStore({ url, migrationsDirectory })
      assert.equal(await old.ensureMeta('shared', () => 'by both'), 'by both')
    }
    await using _olderAgain = await openPostgresStore({ url, migrates: false })
    const state = await migrate({ url, migrationsDirectory })
    assert.deepEqual([state.pending, state.toContract], [[], [contracting]])
    assert.ok(state.applied.includes(last), 'what adds does not wait for what takes away')

    const columns = `id, started_at, seen_at, alive_until, about`
    const hasAll = (await ask(`SELECT count(*) FROM information_schema.columns WHERE table_name = 'node'`))[0][0]
    const insert = (id: string, about: string) =>
      hasAll === 3
        ? ask(`INSERT INTO node (id, alive_until, about) VALUES ('${id}', 9999999999999, '${about}')`)
        : ask(`INSERT INTO node (${columns}) VALUES ('${id}', 0, 0, 9999999999999, '${about}')`)
    await insert('old-node', '{"version":"0.2.0"}')
    await assert.rejects(
      migrate({ url, migrationsDirectory, contracts: true }),
      refusedFor('failed_migration', /takes away what 1 running processes of an older version need \(old-node\)/),
    )
    await ask(`DELETE FROM node`)
    await insert('new-node', `{"schema":${ALL.length + 3}}`)
    assert.deepEqual((await migrate({ url, migrationsDirectory, contracts: true })).toContract, [])
    await assert.rejects(openPostgresStore({ url }), refusedFor('contracted_schema', /newer version of Atelier/))
    await using _newest = await openPostgresStore({ url, migrationsDirectory })
  }))

test('a database that cannot be used is named, with what to do and without its password', async () => {
  await using database = await createBareDatabase()
  const missing = database.url.replace(/t_[0-9a-f]+/, 'not_there')
  await assert.rejects(openPostgresStore({ url: missing }), (error) => {
    assert.ok(refusedFor('misconfigured', /no such database; make it with: createdb/)(error), String(error))
    assert.ok(!(error as Error).message.includes(new URL(missing).password), 'no password')
    return true
  })
  await assert.rejects(
    openPostgresStore({ url: 'postgres://atelier@127.0.0.1:1/nothing' }),
    refusedFor('unusable', /127\.0\.0\.1:1\/nothing cannot be used.*check its address/),
  )
})
