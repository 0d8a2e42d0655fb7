/**
 * `atelier migrate`: brings the data folder or the database to this version's schema, or with `--dry-run` lists what is pending.
 * With `--contract` it also takes away what only older versions need, once none of them runs.
 */
import type { Command } from 'commander'
import { type MigrationStatus, migrateStore } from '../compose/storage/migrate-store.ts'
import type { Config, LoadedConfig } from '../config/config.ts'
import { addSettingFlags, loadFromCommandLine } from './setting-flags.ts'
import { CommandError, EXIT, exitOfStore, type Finish, printLine, type Terminal } from './terminal.ts'

interface Wish {
  readonly dryRun: boolean
  readonly contracts: boolean
}

export function addMigrate(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program
    .command('migrate')
    .description('bring the data folder or the database to the schema of this version (`serve` does so too)')
    .option('--dry-run', 'only say what would be done')
    .option('--contract', 'also take away what only older versions need; refused while one of them runs')
  addSettingFlags(command, ['dataDir', 'database', 'databasePasswordFile']).action(
    async (options: Record<string, unknown>) => {
      const loaded = loadFromCommandLine(options, terminal, { isForUpkeep: true })
      const contracts = options['contract'] === true
      const before = await attempt(loaded, { dryRun: true, contracts })
      const after = options['dryRun'] === true ? before : await attempt(loaded, { dryRun: false, contracts })
      printLine(terminal.stdout, toReport(nameOf(loaded.config), before, after))
      finish(EXIT.ok)
    },
  )
}

function nameOf({ store }: Config): string {
  return store.kind === 'postgres' ? `database ${store.shown}` : `data folder ${store.directory}`
}

async function attempt({ config, secrets }: LoadedConfig, wish: Wish): Promise<MigrationStatus> {
  try {
    return await migrateStore(config.store, { secrets, ...wish })
  } catch (error) {
    if (error instanceof Error) throw new CommandError(`cannot migrate: ${error.message}`, exitOfStore(error))
    throw error
  }
}

function toReport(name: string, before: MigrationStatus, after: MigrationStatus): string {
  const done = after.applied.filter((migration) => !before.applied.includes(migration))
  const lines = [
    ...done.map((migration) => `  applied  ${migration}`),
    ...after.pending.map((migration) => `  pending  ${migration}`),
    ...(after.toContract ?? []).map(
      (migration) => `  waiting  ${migration} (run with --contract, when no older version runs)`,
    ),
  ]
  const state = lines.length === 0 ? `is up to date (${after.applied.length} applied)` : 'changes:'
  return [`${name} ${state}`, ...lines].join('\n')
}
