/** Maintenance of the store for the command line: what `atelier migrate` and `atelier doctor` need of a data folder. */
import { existsSync } from 'node:fs'
import { storeFiles } from '../../adapters/store/sqlite/database/data-directory.ts'
import { lockDirectory } from '../../adapters/store/sqlite/database/directory-lock.ts'
import {
  type MigrationStatus,
  migrate,
  readMigrationStatus,
} from '../../adapters/store/sqlite/database/migrate-database.ts'
import type { StoreConfig } from '../../config/config.ts'
import { StoreOpenError } from '../../domain/store.ts'

export type { MigrationStatus }

/** Runs the pending migrations, or only says which they are. Throws StoreOpenError with a message for the operator. */
export function migrateStore(config: StoreConfig, options: { readonly dryRun: boolean }): MigrationStatus {
  return migrate({ directory: config.directory, dryRun: options.dryRun })
}

type StoreCondition =
  | { readonly state: 'absent' }
  | { readonly state: 'usable'; readonly inUse: boolean; readonly migrations: MigrationStatus }
  | { readonly state: 'unusable'; readonly message: string }

/** Inspects a data folder. Safe while a service runs: tries the lock for an instant and touches nothing else. */
export function inspectStore(config: StoreConfig): StoreCondition {
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
