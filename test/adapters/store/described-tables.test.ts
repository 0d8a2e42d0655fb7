/** The description of each table says what the migrations have made of it, in both databases. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createClient } from '../../../lib/postgres/driver.ts'
import { loadMigrations } from '../../../src/adapters/store/migration-files.ts'
import { applyMigrations, MIGRATIONS_DIRECTORY } from '../../../src/adapters/store/sqlite/database/migrations.ts'
import { ALL_TABLES } from '../../../src/adapters/store/tables/all-tables.ts'
import { columnOf, type Dialect } from '../../../src/adapters/store/tables/table.ts'
import { START } from '../../contracts/store-under-test.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'

/** `table.column`, its type, and whether it may be null. */
function describedColumns(dialect: Dialect): string[] {
  return ALL_TABLES.filter(({ only = dialect }) => only === dialect)
    .flatMap(({ name, fields }) =>
      Object.entries(fields)
        .filter(([, { only = dialect }]) => only === dialect)
        .map(([field, column]) => toLine([name, columnOf(field, column)], column.types[dialect], column.isNullable)),
    )
    .sort()
}

function toLine([table, column]: readonly [string, string], type: string, isNullable: boolean): string {
  return `${table}.${column} ${type}${isNullable ? ', or null' : ''}`
}

test('every column of SQLite is described as it is, and nothing else', () => {
  const database = new DatabaseSync(':memory:')
  applyMigrations(database, loadMigrations(MIGRATIONS_DIRECTORY), START)
  const made = database
    .prepare(
      `SELECT m.name AS "table", c.name AS "column", c.type, c."notnull" = 0 AND c.pk = 0 AS is_nullable
       FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`,
    )
    .all()
  database.close()
  const lines = made.map(({ table, column, type, is_nullable }) =>
    toLine([String(table), String(column)], String(type), is_nullable === 1),
  )
  assert.deepEqual(describedColumns('sqlite'), lines.sort())
})

test('every column of Postgres is described as it is, and nothing else', async () => {
  await using database = await createTestDatabase()
  const client = createClient({ url: database.url })
  await client.connect()
  try {
    const { rows } = await client.query<{ table: string; column: string; type: string; isNullable: boolean }>(`
      SELECT relname AS table, attname AS column, format_type(atttypid, atttypmod) AS type, NOT attnotnull AS "isNullable"
      FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
      WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
        AND attnum > 0 AND NOT attisdropped`)
    const lines = rows.map(({ table, column, type, isNullable }) => toLine([table, column], type, isNullable))
    assert.deepEqual(describedColumns('postgres'), lines.sort())
  } finally {
    await client.end()
  }
})
