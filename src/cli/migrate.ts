/** `atelier migrate`: migrates the data folder to this version's schema, or with `--dry-run` lists the pending migrations. */
import type { Command } from 'commander'
import { type MigrationStatus, migrateStore } from '../compose/storage/migrate-store.ts'
import type { StoreConfig } from '../config/config.ts'
import { addSettingFlags, loadFromCommandLine } from './setting-flags.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal } from './terminal.ts'

export function addMigrate(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program
    .command('migrate')
    .description('bring the data folder to the schema of this version (`serve` does so too)')
    .option('--dry-run', 'only say what would be done')
  addSettingFlags(command, ['dataDir']).action((options: Record<string, unknown>) => {
    const { config } = loadFromCommandLine(options, terminal)
    const dryRun = options['dryRun'] === true
    const before = attempt(config.store, true)
    const after = dryRun ? before : attempt(config.store, false)
    printLine(terminal.stdout, toReport(config.store.directory, before, after))
    finish(EXIT.ok)
  })
}

function attempt(store: StoreConfig, dryRun: boolean): MigrationStatus {
  try {
    return migrateStore(store, { dryRun })
  } catch (error) {
    if (error instanceof Error) throw new CommandError(`cannot migrate: ${error.message}`, EXIT.failed)
    throw error
  }
}

function toReport(directory: string, before: MigrationStatus, after: MigrationStatus): string {
  const done = after.applied.filter((name) => !before.applied.includes(name))
  const lines = [...done.map((name) => `  applied  ${name}`), ...after.pending.map((name) => `  pending  ${name}`)]
  const state = lines.length === 0 ? `is up to date (${after.applied.length} applied)` : 'changes:'
  return [`data folder ${directory} ${state}`, ...lines].join('\n')
}
