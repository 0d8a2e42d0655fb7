/** `atelier migrate` and `atelier verify`: bring the schema of a store up to date, and read everything in it for damage. */
import type { Command } from 'commander'
import { type MigrationStatus, migrateStore } from '../compose/storage/migrate-store.ts'
import { type DataFault, hasData, verifyData } from '../compose/storage/verify-data.ts'
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

const WORDS: Readonly<Record<DataFault['kind'], string>> = {
  database: 'database  ',
  damaged: 'damaged   ',
  missing: 'missing   ',
}

export function addVerify(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program
    .command('verify')
    .description('read the whole data folder, also beside a running service, and say what is damaged or missing')
    .option('--set-aside', 'move damaged files to blobs/damaged: the same bytes, sent again, then mend them')
  addSettingFlags(command, ['dataDir', 'database', 'databasePasswordFile', 'blobs']).action(
    async (options: Record<string, unknown>) => {
      const { config, secrets } = loadFromCommandLine(options, terminal, { isForUpkeep: true })
      if (!hasData(config)) throw new CommandError(`there is no database in ${config.dataDirectory}`, EXIT.usage)
      const { files, bytes, faults } = await verifyData(config, { secrets, setAside: options['setAside'] === true })
      for (const { kind, what } of faults) printLine(terminal.stdout, `${WORDS[kind]}${what}`)
      const read = `${files} files, ${(bytes / 2 ** 20).toFixed(1)} MiB read`
      printLine(terminal.stdout, `${read}: ${toVerdict(faults.length)}`)
      finish(faults.length === 0 ? EXIT.ok : EXIT.failed)
    },
  )
}

function toVerdict(count: number): string {
  if (count === 0) return 'all is well'
  return count === 1 ? 'one fault' : `${count} faults`
}
