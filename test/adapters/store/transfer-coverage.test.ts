/** Every table and column of both stores is carried by a move, or its description says why it is not. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { constants, DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createClient } from '../../../lib/postgres/driver.ts'
import { toSelect as toPostgresSelect } from '../../../src/adapters/store/postgres/transfer/record-tables.ts'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { toSelect as toSqliteSelect } from '../../../src/adapters/store/sqlite/transfer/record-tables.ts'
import { ALL_TABLES } from '../../../src/adapters/store/tables/all-tables.ts'
import { columnOf, type Dialect } from '../../../src/adapters/store/tables/table.ts'
import { RECORD_KINDS } from '../../../src/adapters/store/transfer/record-kinds.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'

/** A table, or `table.column`, and why it stays behind. */
type LeftOut = Readonly<Record<string, string>>

/** What the descriptions of the tables give a reason for. */
function leftOutOf(dialect: Dialect): LeftOut {
  const tables = ALL_TABLES.filter(({ only = dialect }) => only === dialect)
  const named = tables.flatMap(({ name, fields, staysFor }): [string, string | undefined][] => {
    if (staysFor !== undefined) return [[name, staysFor]]
    const columns = Object.entries(fields).filter(([, { only = dialect }]) => only === dialect)
    return columns.map(([field, column]) => [`${name}.${columnOf(field, column)}`, column.staysFor])
  })
  return Object.fromEntries(named.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

function findForgotten(all: ReadonlySet<string>, carried: ReadonlySet<string>, leftOut: LeftOut): string[] {
  const isNamed = (name: string) => name in leftOut || (name.split('.')[0] as string) in leftOut
  return [...all].filter((name) => !carried.has(name) && !isNamed(name)).sort()
}

/** What is named but carried, or not there at all. */
function findNeedless(all: ReadonlySet<string>, carried: ReadonlySet<string>, leftOut: LeftOut): string[] {
  return Object.keys(leftOut).filter((name) => {
    const columns = [...all].filter((column) => column === name || column.startsWith(`${name}.`))
    return columns.length === 0 || columns.some((column) => carried.has(column))
  })
}

test('a move from Postgres leaves nothing behind but what is named', async () => {
  await using database = await createTestDatabase()
  const client = createClient({ url: database.url })
  await client.connect()
  try {
    const ask = async (text: string) =>
      new Set((await client.query<{ name: string }>(text)).rows.map(({ name }) => name))
    const all = await ask(`
      SELECT table_name || '.' || column_name AS name FROM information_schema.columns JOIN information_schema.tables
        USING (table_schema, table_name) WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'`)
    for (const [index, kind] of RECORD_KINDS.entries()) {
      await client.query(`CREATE VIEW kind_${index} AS ${toPostgresSelect(kind, false).replaceAll('$1', '1')}`)
    }
    const carried = await ask(`
      SELECT DISTINCT table_name || '.' || column_name AS name FROM information_schema.view_column_usage
      WHERE view_name LIKE 'kind\\_%'`)
    assert.deepEqual(findForgotten(all, carried, leftOutOf('postgres')), [])
    assert.deepEqual(findNeedless(all, carried, leftOutOf('postgres')), [])
  } finally {
    await client.end()
  }
})

test('a move from SQLite leaves nothing behind but what is named', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-coverage-'))
  try {
    const store = await openSqliteStore({ directory })
    await store[Symbol.asyncDispose]()
    const database = new DatabaseSync(join(directory, 'atelier.db'))
    const all = new Set(
      database
        .prepare(
          `SELECT m.name || '.' || c.name AS name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c
           WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`,
        )
        .all()
        .map(({ name }) => name as string),
    )
    const carried = new Set<string>()
    database.setAuthorizer((action, table, column) => {
      if (action === constants.SQLITE_READ) carried.add(`${table}.${column}`)
      return constants.SQLITE_OK
    })
    for (const kind of RECORD_KINDS) database.prepare(toSqliteSelect(kind, false))
    database.setAuthorizer(null)
    database.close()
    assert.deepEqual(findForgotten(all, carried, leftOutOf('sqlite')), [])
    assert.deepEqual(findNeedless(all, carried, leftOutOf('sqlite')), [])
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})
