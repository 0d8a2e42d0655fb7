/** `atelier move`: brings a data folder over to a Postgres database, or back, while no service runs on either. */
import path from 'node:path'
import type { Command } from 'commander'
import { createSealer } from '../../lib/sealer.ts'
import { MoveError, moveStore } from '../compose/storage/move-store.ts'
import type { LoadedConfig } from '../config/config.ts'
import { ENV } from '../config/env.ts'
import type { Secrets } from '../config/secrets.ts'
import { addSettingFlags, loadFromCommandLine } from './setting-flags.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal } from './terminal.ts'

type Options = Readonly<Record<string, unknown>>

export function addMove(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program
    .command('move')
    .description('bring a data folder over to a Postgres database, or back, while no service runs on either')
    .requiredOption('--from <place>', 'where everything is: a data folder, or postgres://…')
    .requiredOption('--to <place>', 'where it shall be: an empty database, or a new data folder')
  addSettingFlags(command, ['dataDir', 'databasePasswordFile']).action(async (options: Options) => {
    await move(options, terminal)
    finish(EXIT.ok)
  })
}

async function move(options: Options, terminal: Terminal): Promise<void> {
  const [from, to] = [String(options['from']), String(options['to'])]
  if (isDatabase(from) === isDatabase(to)) {
    throw new CommandError('one of --from and --to is a data folder, and the other is postgres://…', EXIT.usage)
  }
  const url = isDatabase(from) ? from : to
  const folder = path.resolve(terminal.cwd, isDatabase(from) ? to : from)
  if (isDatabase(from) && options['dataDir'] === undefined) {
    throw new CommandError('give --data-dir: the folder with the bytes of the service on the database', EXIT.usage)
  }
  // On the way to a database the bytes stay in the folder where they are, unless another one is named.
  const loaded = load(options, { url, folder }, terminal)
  const { config, secrets } = loaded
  if (config.store.kind !== 'postgres' || secrets.secretKey === null) throw new Error('the settings name a database')
  const { secretKey, formerSecretKeys } = secrets
  const sealer = createSealer(
    secretKey.reveal(),
    formerSecretKeys.map((key) => key.reveal()),
  )
  const plan = {
    direction: isDatabase(to) ? 'to_database' : 'to_folder',
    folder,
    database: config.store,
    databaseFolder: config.dataDirectory,
    secrets: { databasePassword: findPassword(loaded, terminal) },
    sealer,
  } as const
  try {
    const { kinds, files, bytes, missing } = await moveStore(plan, { now: new Date() })
    for (const { name, rows, digest } of kinds.filter((kind) => kind.rows > 0)) {
      printLine(
        terminal.stdout,
        `  ${name.padEnd(16)} ${String(rows).padStart(9)} rows, the same on both sides (${digest.slice(0, 12)})`,
      )
    }
    printLine(
      terminal.stdout,
      `  ${'bytes'.padEnd(16)} ${String(files).padStart(9)} files, ${(bytes / 2 ** 20).toFixed(1)} MiB, each read and compared`,
    )
    printLine(
      terminal.stdout,
      `moved to ${isDatabase(to) ? config.store.shown : folder}; bytes are in ${plan.direction === 'to_database' ? plan.databaseFolder : folder}`,
    )
    if (missing > 0)
      printLine(
        terminal.stderr,
        `atelier: warning: the source lacks the bytes of ${missing} records, and so does the target`,
      )
  } catch (error) {
    if (error instanceof MoveError || (error instanceof Error && error.name === 'StoreOpenError')) {
      throw new CommandError(`cannot move: ${error.message}`, EXIT.failed)
    }
    throw error
  }
}

function isDatabase(place: string): boolean {
  return /^postgres(ql)?:\/\//.test(place)
}

function load(options: Options, { url, folder }: { url: string; folder: string }, terminal: Terminal): LoadedConfig {
  const { config, databasePasswordFile, dataDir = folder } = options
  return loadFromCommandLine({ config, databasePasswordFile, dataDir, database: url }, terminal)
}

/** The password is given as for a service: in a file, or in the variable that holds the whole address. */
function findPassword({ config, secrets }: LoadedConfig, terminal: Terminal): Secrets['databasePassword'] {
  if (secrets.databasePassword !== null || terminal.env[ENV.database] === undefined) return secrets.databasePassword
  const named = loadFromCommandLine({}, terminal)
  const isSame =
    named.config.store.kind === 'postgres' &&
    config.store.kind === 'postgres' &&
    named.config.store.url === config.store.url
  return isSame ? named.secrets.databasePassword : null
}
