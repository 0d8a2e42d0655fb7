/** The database of the service, and its password. */
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { type PostgresAddress, showAddress, type TlsMode, writeAddress } from '../../../lib/postgres/address.ts'
import { ConfigError, quote } from '../config-error.ts'
import { completeAddress, findInPassFile, type GivenDatabase, POSTGRES_ENV } from '../readers/read-storage.ts'
import { mustBeReadable, readSecretFile, Secret } from '../secrets.ts'
import type { Environment } from '../settings/setting.ts'
import type { FoundSettings } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'
import { toConnections, toMigrate } from './role-config.ts'

export type StoreConfig = SqliteConfig | PostgresConfig

export interface SqliteConfig {
  readonly kind: 'sqlite'
  /** The folder of the database, absolute. */
  readonly directory: string
  /** `full`: what was acknowledged survives a power cut. `normal`, a crash of the process only, is for benches. */
  readonly synchronous: 'full' | 'normal'
}

export interface PostgresConfig {
  readonly kind: 'postgres'
  /** Complete, but without a password; files in it are absolute. */
  readonly url: string
  /** The address for messages. */
  readonly shown: string
  readonly tls: TlsMode
  readonly maxConnections: number
  /** Whether a start brings the schema up to date, or only checks it. */
  readonly migrate: 'auto' | 'check'
}

/** Where the settings came from, and the environment, which completes the address of a database. */
type StoreSources = Pick<FoundSettings, 'where' | 'toAbsolute'> & { readonly env: Environment }

export function toStoreConfig(values: SettingValues, sources: StoreSources): StoreConfig {
  const { database } = values
  const { toAbsolute } = sources
  if (database === null)
    return { kind: 'sqlite', directory: toAbsolute('dataDir', values.dataDir), synchronous: 'full' }
  const address = toAddress(database, sources)
  return {
    kind: 'postgres',
    url: writeAddress(address),
    shown: showAddress(address),
    tls: address.tls,
    maxConnections: toConnections(values),
    migrate: toMigrate(values),
  }
}

function toAddress(database: GivenDatabase, { where, toAbsolute, env }: StoreSources): PostgresAddress {
  let address: PostgresAddress
  try {
    address = completeAddress(database, env, where('database'))
  } catch (error) {
    throw new ConfigError((error as Error).message)
  }
  const { rootCertificate: root, clientCertificate: own } = address
  const toFile = (parameter: string, file: string) =>
    mustBeReadable(`database names the ${parameter}`, toAbsolute('database', file))
  return {
    ...address,
    rootCertificate: root === null ? null : toFile('sslrootcert', root),
    clientCertificate: own && {
      certificate: toFile('sslcert', own.certificate),
      key: toFile('sslkey', own.key),
    },
  }
}

/** As libpq looks for it, after our own file: in the address, in PGPASSWORD, then in a file of passwords. */
export function toDatabasePassword(values: SettingValues, sources: StoreSources): Secret<string> | null {
  const { database, databasePasswordFile: file } = values
  if (database === null) return null
  if (file !== null) return readSecretFile('databasePasswordFile', sources.toAbsolute('databasePasswordFile', file))
  const fromVariable = sources.env[POSTGRES_ENV.password]
  if (database.password !== null) return database.password
  if (fromVariable !== undefined && fromVariable !== '') return new Secret(fromVariable)
  const found = findInPassFile(readPassFile(database, sources), toAddress(database, sources))
  return found === null ? null : new Secret(found)
}

const MAX_PASS_FILE_BYTES = 65_536

/** One that was not asked for counts only if it is well kept, as in libpq; one that was asked for must be. */
function readPassFile({ parameters }: GivenDatabase, { env, toAbsolute }: StoreSources): string {
  const named = parameters.get('passfile') ?? (env[POSTGRES_ENV.passfile] || null)
  const home = env['HOME'] ?? ''
  if (named === null && home === '') return ''
  const file = named === null ? path.join(home, '.pgpass') : toAbsolute('database', named)
  const stat = statSync(file, { throwIfNoEntry: false })
  const isPrivate = process.platform === 'win32' || ((stat?.mode ?? 0) & 0o077) === 0
  if (stat?.isFile() === true && stat.size <= MAX_PASS_FILE_BYTES && isPrivate) return readFileSync(file, 'utf8')
  if (named === null) return ''
  const fault = isPrivate ? 'is not a file of at most 64 KiB' : 'others may read (chmod 600)'
  throw new ConfigError(`database: the file of passwords ${quote(file)} (passfile or PGPASSFILE) ${fault}; correct it`)
}
