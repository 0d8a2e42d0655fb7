/** Maintenance of the store for the command line: what `atelier migrate` and `atelier doctor` need of it. */
import { existsSync } from 'node:fs'
import { storeFiles } from '../../adapters/store/sqlite/database/data-directory.ts'
import { lockDirectory } from '../../adapters/store/sqlite/database/directory-lock.ts'
import { migrate, readMigrationStatus } from '../../adapters/store/sqlite/database/migrate-database.ts'
import type { PostgresConfig, SqliteConfig, StoreConfig } from '../../config/blocks/store-config.ts'
import type { Secrets } from '../../config/secrets.ts'
import { StoreOpenError } from '../../domain/store.ts'
import { toConnection } from './open-store.ts'

export interface MigrationStatus {
  readonly applied: readonly string[]
  readonly pending: readonly string[]
  /** Migrations that take away what older versions need; they wait until an operator asks for them. */
  readonly toContract?: readonly string[]
}

interface MigrateOptions {
  readonly secrets: Pick<Secrets, 'databasePassword'>
  /** Say what would be done and do nothing. */
  readonly dryRun: boolean
  /** Also run what takes away. */
  readonly contracts: boolean
}

/** Runs the pending migrations, or only says which they are. Throws StoreOpenError with a message for the operator. */
export async function migrateStore(config: StoreConfig, options: MigrateOptions): Promise<MigrationStatus> {
  if (config.kind === 'postgres') return migratePostgres(config, options)
  // One process uses a data folder, so nothing older can be disturbed.
  return migrate({ directory: config.directory, dryRun: options.dryRun })
}

async function migratePostgres(
  config: PostgresConfig,
  { secrets, dryRun, contracts }: MigrateOptions,
): Promise<MigrationStatus> {
  const adapter = await import('../../adapters/store/postgres/database/migrate-database.ts')
  return adapter.migrate({ ...toConnection(config, secrets.databasePassword), dryRun, contracts })
}

type StoreCondition =
  | { readonly state: 'absent' }
  | { readonly state: 'usable'; readonly inUse: boolean; readonly migrations: MigrationStatus }
  | { readonly state: 'unusable'; readonly message: string }

/** Inspects a data folder. Safe while a service runs: tries the lock for an instant and touches nothing else. */
export function inspectStore(config: SqliteConfig): StoreCondition {
  const files = storeFiles(config.directory)
  if (!existsSync(files.database)) return { state: 'absent' }
  try {
    return { state: 'usable', inUse: isInUse(config.directory, files.lock), migrations: readMigrationStatus(config) }
  } catch (error) {
    return { state: 'unusable', message: error instanceof Error ? error.message : String(error) }
  }
}

function isInUse(directory: string, lockFile: string): boolean {
  if (!existsSync(lockFile)) return false
  try {
    lockDirectory(directory, lockFile).release()
    return false
  } catch (error) {
    if (error instanceof StoreOpenError && error.reason === 'locked') return true
    throw error
  }
}
