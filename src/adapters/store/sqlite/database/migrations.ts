/** Migrations of a SQLite database, each in one transaction. A database with migrations that are unknown here stops the start. */
import type { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { StoreOpenError } from '../../../../domain/store.ts'
import { type AppliedMigration, type Migration, mustBeUnchanged } from '../../migration-files.ts'

export const MIGRATIONS_DIRECTORY = fileURLToPath(new URL('../../../../../migrations/sqlite', import.meta.url))

function readApplied(database: DatabaseSync): AppliedMigration[] {
  const table = database.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migration'`).get()
  if (table === undefined) return []
  const rows = database.prepare('SELECT number, name, checksum FROM schema_migration ORDER BY number').all()
  return rows.map((row) => ({
    number: Number(row['number']),
    name: String(row['name']),
    checksum: String(row['checksum']),
  }))
}

/** The migrations still to run. Throws when those that ran are not the first of the known ones. */
export function planMigrations(database: DatabaseSync, known: readonly Migration[]): Migration[] {
  const applied = readApplied(database)
  for (const { number, name, checksum } of applied) {
    const migration = known[number - 1]
    if (migration === undefined) {
      throw new StoreOpenError(
        'newer_schema',
        `The database was written by a newer version of Atelier: migration ${name} is unknown here. Run that version or a newer one.`,
      )
    }
    mustBeUnchanged(migration, { number, name, checksum })
  }
  return known.slice(applied.length)
}

/** Runs what is pending and returns the names. */
export function applyMigrations(database: DatabaseSync, known: readonly Migration[], now: Date): string[] {
  const pending = planMigrations(database, known)
  if (pending.length === 0) return []
  database.exec(`CREATE TABLE IF NOT EXISTS schema_migration (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`)
  for (const migration of pending) applyOne(database, migration, now)
  return pending.map(({ name }) => name)
}

function applyOne(database: DatabaseSync, { number, name, sql, checksum }: Migration, now: Date): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    database.exec(sql)
    database
      .prepare('INSERT INTO schema_migration (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)')
      .run(number, name, checksum, now.getTime())
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw new StoreOpenError('failed_migration', `Migration ${name} failed and was undone: ${String(error)}`, {
      cause: error,
    })
  }
}
