/** Migrations on their own, for the command line: run them while the service is down, or only say what would run. */
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { type Clock, systemClock } from '../../../../../lib/clock.ts'
import { loadMigrations } from '../../migration-files.ts'
import { prepareDataDirectory, storeFiles } from './data-directory.ts'
import { lockDirectory } from './directory-lock.ts'
import { applyMigrations, MIGRATIONS_DIRECTORY, planMigrations } from './migrations.ts'
import { openWriter } from './sqlite-connections.ts'

interface MigrateOptions {
  readonly directory: string
  /** Say what would run and touch nothing. */
  readonly dryRun?: boolean
  readonly clock?: Clock
  readonly migrationsDirectory?: string
}

interface MigrationStatus {
  readonly applied: readonly string[]
  readonly pending: readonly string[]
}

/** What has run and what has not; reads only, also beside a running service. Throws StoreOpenError like an open would. */
export function readMigrationStatus({
  directory,
  migrationsDirectory = MIGRATIONS_DIRECTORY,
}: MigrateOptions): MigrationStatus {
  const known = loadMigrations(migrationsDirectory)
  const { database: path } = storeFiles(directory)
  const names = known.map(({ name }) => name)
  if (!existsSync(path)) return { applied: [], pending: names }
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const pending = planMigrations(database, known).map(({ name }) => name)
    return { applied: names.slice(0, names.length - pending.length), pending }
  } finally {
    database.close()
  }
}

/** Runs what is pending and returns the state afterwards. Refused while another process has the directory. */
export function migrate(options: MigrateOptions): MigrationStatus {
  if (options.dryRun === true) return readMigrationStatus(options)
  const { directory, clock = systemClock, migrationsDirectory = MIGRATIONS_DIRECTORY } = options
  const files = prepareDataDirectory(directory)
  const lock = lockDirectory(directory, files.lock)
  try {
    const database = openWriter(files.database, { synchronous: 'FULL', maxPages: null })
    try {
      applyMigrations(database, loadMigrations(migrationsDirectory), clock.now())
    } finally {
      database.close()
    }
  } finally {
    lock.release()
  }
  return readMigrationStatus(options)
}
