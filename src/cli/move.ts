/** `atelier move`: brings a data folder over to a Postgres database or its bytes to a bucket, or back, while no service runs. */
import path from 'node:path'
import type { Command } from 'commander'
import { createSealer } from '../../lib/sealer.ts'
import { MoveError, moveStore, moveStoredBytes } from '../compose/storage/move-store.ts'
import type { LoadedConfig } from '../config/config.ts'
import { ENV } from '../config/env.ts'
import type { Secrets } from '../config/secrets.ts'
import { addSettingFlags, loadFromCommandLine } from './setting-flags.ts'
import { CommandError, EXIT, exitOfStore, type Finish, printLine, type Terminal } from './terminal.ts'

type Options = Readonly<Record<string, unknown>>

export function addMove(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program
    .command('move')
    .description('bring a data folder over to a Postgres database, or back, or only its bytes to a bucket, or back')
    .requiredOption('--from <place>', 'where everything is: a data folder, postgres://…, or, for bytes alone, s3://…')
    .requiredOption('--to <place>', 'where it shall be: an empty database, a new data folder, or an empty bucket')
  const flags = ['dataDir', 'database', 'databasePasswordFile', 'blobs'] as const
  addSettingFlags(command, [...flags]).action(async (options: Options) => {
    await run(options, terminal)
    finish(EXIT.ok)
  })
}

async function run(options: Options, terminal: Terminal): Promise<void> {
  try {
    const isAboutBytes = [options['from'], options['to']].some((place) => isBucket(String(place)))
    await (isAboutBytes ? moveBytesAlone(options, terminal) : move(options, terminal))
  } catch (error) {
    if (error instanceof MoveError || (error instanceof Error && error.name === 'StoreOpenError')) {
      throw new CommandError(`cannot move: ${error.message}`, exitOfStore(error))
    }
    throw error
  }
}

/** Of a service that stays on its database: from its data folder to a bucket, or back. */
async function moveBytesAlone(options: Options, terminal: Terminal): Promise<void> {
  const [from, to] = [String(options['from']), String(options['to'])]
  if (isBucket(from) === isBucket(to) || isDatabase(from) || isDatabase(to)) {
    throw new CommandError(
      'to move bytes alone, one of --from and --to is a data folder, and the other is s3://…',
      EXIT.usage,
    )
  }
  const folder = path.resolve(terminal.cwd, isBucket(from) ? to : from)
  const { database, databasePasswordFile, config: file } = options
  const given = { config: file, database, databasePasswordFile }
  const inBucket = loadFromCommandLine({ ...given, blobs: isBucket(from) ? from : to, dataDir: folder }, terminal, {
    isForUpkeep: true,
  })
  const { store, blobs: bucket } = inBucket.config
  if (store.kind !== 'postgres') throw new Error('a bucket needs a database')
  const files = { kind: 'fs', directory: path.join(folder, 'blobs') } as const
  const plan = isBucket(from) ? { from: bucket, to: files } : { from: files, to: bucket }
  const moved = await moveStoredBytes({ ...plan, database: store, secrets: inBucket.secrets }, new Date())
  printBytes(moved, terminal)
  const place = isBucket(from) ? folder : to
  printLine(
    terminal.stdout,
    `bytes are in ${place}; start every process with them, and remove the others when all is well`,
  )
}

async function move(options: Options, terminal: Terminal): Promise<void> {
  const [from, to] = [String(options['from']), String(options['to'])]
  if (isDatabase(from) === isDatabase(to)) {
    throw new CommandError('one of --from and --to is a data folder, and the other is postgres://…', EXIT.usage)
  }
  const url = isDatabase(from) ? from : to
  const folder = path.resolve(terminal.cwd, isDatabase(from) ? to : from)
  // On the way to a database the bytes stay in the folder where they are, unless another one or a bucket is named.
  const loaded = load(options, { url, folder }, terminal)
  const { config, secrets } = loaded
  if (config.store.kind !== 'postgres' || secrets.secretKey === null) throw new Error('the settings name a database')
  if (isDatabase(from) && config.blobs.kind === 'fs' && options['dataDir'] === undefined) {
    throw new CommandError('give --data-dir: the folder with the bytes of the service on the database', EXIT.usage)
  }
  const { secretKey, formerSecretKeys, blobsKeys } = secrets
  const sealer = createSealer(
    secretKey.reveal(),
    formerSecretKeys.map((key) => key.reveal()),
  )
  const plan = {
    direction: isDatabase(to) ? 'to_database' : 'to_folder',
    folder,
    database: config.store,
    databaseBlobs: config.blobs,
    secrets: { databasePassword: findPassword(loaded, options, terminal), blobsKeys },
    sealer,
  } as const
  const moved = await moveStore(plan, { now: new Date() })
  for (const { name, rows, digest } of moved.kinds.filter((kind) => kind.rows > 0)) {
    printLine(
      terminal.stdout,
      `  ${name.padEnd(16)} ${String(rows).padStart(9)} rows, the same on both sides (${digest.slice(0, 12)})`,
    )
  }
  printBytes(moved, terminal)
  const inDatabase = config.blobs.kind === 's3' ? config.blobs.shown : config.dataDirectory
  printLine(
    terminal.stdout,
    `moved to ${isDatabase(to) ? config.store.shown : folder}; bytes are in ${plan.direction === 'to_database' ? inDatabase : folder}`,
  )
}

function printBytes({ files, bytes, missing }: Awaited<ReturnType<typeof moveStoredBytes>>, terminal: Terminal): void {
  const size = `${(bytes / 2 ** 20).toFixed(1)} MiB`
  printLine(
    terminal.stdout,
    `  ${'bytes'.padEnd(16)} ${String(files).padStart(9)} files, ${size}, each read and compared`,
  )
  if (missing === 0) return
  printLine(
    terminal.stderr,
    `atelier: warning: the source lacks the bytes of ${missing} records, and so does the target`,
  )
}

function isBucket(place: string): boolean {
  return place.startsWith('s3://')
}

function isDatabase(place: string): boolean {
  return /^postgres(ql)?:\/\//.test(place)
}

function load(options: Options, { url, folder }: { url: string; folder: string }, terminal: Terminal): LoadedConfig {
  const { config, databasePasswordFile, blobs, dataDir = folder } = options
  return loadFromCommandLine({ config, databasePasswordFile, blobs, dataDir, database: url }, terminal)
}

/**
 * The password is given as for a service: in a file, in the variable that holds the whole address, if that is of the same database, or
 * as for libpq.
 */
function findPassword(
  { config, secrets }: LoadedConfig,
  options: Options,
  terminal: Terminal,
): Secrets['databasePassword'] {
  const isInFile = options['databasePasswordFile'] !== undefined
  if (isInFile || terminal.env[ENV.database] === undefined) return secrets.databasePassword
  const named = loadFromCommandLine({}, terminal)
  const placeOf = ({ store }: LoadedConfig['config']) => (store.kind === 'postgres' ? store.url.split('?')[0] : null)
  return placeOf(named.config) === placeOf(config) ? named.secrets.databasePassword : secrets.databasePassword
}
