/** The database of the service, and its password. */
import type { TlsMode } from '../readers/read-database.ts'
import { readSecretFile, type Secret } from '../secrets.ts'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'
import { toConnections, toMigrate } from './role-config.ts'

export type StoreConfig = SqliteConfig | PostgresConfig

export interface SqliteConfig {
  readonly kind: 'sqlite'
  /** The folder of the database, absolute. */
  readonly directory: string
  readonly synchronous: 'full' | 'normal'
}

export interface PostgresConfig {
  readonly kind: 'postgres'
  /** Without a password. */
  readonly url: string
  /** The address for messages. */
  readonly shown: string
  readonly tls: TlsMode
  /** A file with the authorities that may sign the server's certificate, absolute; null: those that the runtime knows. */
  readonly rootCertificateFile: string | null
  readonly maxConnections: number
  /** Whether a start brings the schema up to date, or only checks it. */
  readonly migrate: 'auto' | 'check'
}

export function toStoreConfig(values: SettingValues, toAbsolute: ToAbsolute): StoreConfig {
  const { database, synchronous } = values
  if (database === null) return { kind: 'sqlite', directory: toAbsolute('dataDir', values.dataDir), synchronous }
  const { url, shown, tls, rootCertificate } = database
  return {
    kind: 'postgres',
    url,
    shown,
    tls,
    rootCertificateFile: rootCertificate === null ? null : toAbsolute('database', rootCertificate),
    maxConnections: toConnections(values),
    migrate: toMigrate(values),
  }
}

export function toDatabasePassword(
  { database, databasePasswordFile: file }: SettingValues,
  toAbsolute: ToAbsolute,
): Secret<string> | null {
  return file === null
    ? (database?.password ?? null)
    : readSecretFile('databasePasswordFile', toAbsolute('databasePasswordFile', file))
}
