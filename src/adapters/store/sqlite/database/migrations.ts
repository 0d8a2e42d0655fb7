/**
 * Forward-only migrations. Each file runs once, in one transaction, and is remembered with the hash of its text: a file that
 * changed after it was applied, or a database with migrations that are unknown here, stops the start.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { StoreOpenError } from '../../../../domain/store.ts'

interface Migration {
  readonly number: number
  /** The file's name without its ending, such as `0001-first-tables`. */
  readonly name: string
  readonly sql: string
  readonly checksum: string
}

interface AppliedMigration {
  readonly number: number
  readonly name: string
  readonly checksum: string
}

export const MIGRATIONS_DIRECTORY = fileURLToPath(new URL('../../../../../migrations/sqlite', import.meta.url))

const FILE_NAME = /^(\d{4})-[a-z0-9-]+\.sql$/

export function loadMigrations(directory: string): Migration[] {
  const names = readdirSync(directory).filter((name) => FILE_NAME.test(name))
  return names.sort().map((fileName, index) => {
    const number = Number(fileName.slice(0, 4))
    if (number !== index + 1) throw new Error(`Migration ${fileName} does not follow number ${index}.`)
    const sql = readFileSync(`${directory}/${fileName}`, 'utf8')
    return { number, name: fileName.slice(0, -4), sql, checksum: createHash('sha256').update(sql).digest('hex') }
  })
}

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
    if (migration.checksum !== checksum) {
      throw new StoreOpenError(
        'changed_migration',
        `Migration ${migration.name} differs from the one that was applied to this database (${name}). Restore the file as it was released; put changes into a new migration.`,
      )
    }
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
