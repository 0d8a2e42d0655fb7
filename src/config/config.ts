/**
 * Reads flags, environment and config file into one typed configuration and its secrets. Flags win over the environment, the
 * environment over the file, the file over the defaults. Everything is checked here, contradictions included, so that the rest
 * of the code can trust its part. Pure except for reading the file and the size of this machine.
 */
import { isIP } from 'node:net'
import { availableParallelism, totalmem } from 'node:os'
import path from 'node:path'
import { type BusConfig, toBusConfig } from './bus-config.ts'
import { ConfigError, quote } from './config-error.ts'
import { type ConfigFile, readConfigFile } from './config-file.ts'
import { refuseContradictions } from './contradictions.ts'
import { type Environment, findUnknownNames, OTHER_ENV, type SettingName } from './env.ts'
import { autoWorkers, type FleetConfig, toFleetConfig } from './fleet-config.ts'
import { loadBlock } from './readers/read-block.ts'
import { type BucketAddress, readBucketKeys } from './readers/read-bucket.ts'
import type { TlsMode } from './readers/read-database.ts'
import { type Cidr, isLoopback } from './readers/read-network.ts'
import type { KeySource, PoolHook } from './readers/read-remote.ts'
import { type Role, toConnections, toMigrate } from './role-config.ts'
import { type RouterConfig, toRouterConfig } from './router-config.ts'
import { readSecretFile, Secret, type Secrets } from './secrets.ts'
import {
  envOf,
  flagOf,
  type KINDS,
  type LOG_LEVELS,
  SETTING_NAMES,
  SETTINGS,
  type SettingValues,
  separatorOf,
} from './settings/settings.ts'

/** By camel-case name: texts, as commander gives them; a switch is a boolean, a repeated flag a list of texts. */
type Flags = Readonly<Record<string, unknown>>

interface HttpConfig {
  readonly host: string
  readonly port: number
  /** Whether only this machine can reach the listener. */
  readonly isLoopback: boolean
  /** Lower case, without port, with the names of `host` and `publicUrl`. The guard adds the loopback names. */
  readonly allowedHosts: readonly string[]
  readonly corsOrigins: readonly string[]
  /** Base of absolute links; null: the origin of the request. */
  readonly publicUrl: string | null
  /** '' or '/some/prefix'. */
  readonly mountPrefix: string
  /** Links of jobs begin with scheme and host. */
  readonly absoluteUrls: boolean
  readonly trustedProxies: readonly Cidr[]
  readonly maxBodyBytes: number
  /** Limits for all bodies together, and for those of one account. */
  readonly maxBodiesBytes: number
  readonly maxBodiesPerCallerBytes: number
  readonly maxStreams: number
  readonly brand: readonly string[]
  /** Whether the buffers of transfers are collected early. */
  readonly transferGc: boolean
}

export interface JobsConfig {
  /** Jobs that run at once. */
  readonly workers: number
  readonly maxQueued: number
  readonly retentionMs: number
  readonly expiredGraceMs: number
  /** null: no limit. */
  readonly maxRunMs: number | null
  readonly cancelGraceMs: number
  readonly drainTimeoutMs: number
  /** How long requests are still taken by a process that says it is not ready any more. */
  readonly drainDelayMs: number
  /** The pools whose jobs this process runs; null: all. */
  readonly pools: readonly string[] | null
  readonly previewOutputs: boolean
}

export interface AssetsConfig {
  readonly maxUploadBytes: number
  /** null: uploads never expire by themselves. */
  readonly retentionMs: number | null
  /** How long bytes stay after their last record is gone. */
  readonly blobGraceMs: number
  /** Absolute; null: uploads cannot be stored as models. */
  readonly modelsDirectory: string | null
  /** Absolute. Files below these folders can be imported as assets. */
  readonly importDirectories: readonly string[]
  /** How long a signed address works. */
  readonly urlLifetimeMs: number
}

/** Settings of the kinds with many accounts. The content of the blocks is checked by the code that uses them. */
export interface AccountsConfig {
  readonly tiers: object | null
  /** The absolute path of the tiers' own file, which is read again when it changes; null: they have none. */
  readonly tiersFile: string | null
  readonly prices: object | null
  /** null: API keys only. */
  readonly jwt: JwtConfig | null
}

export interface JwtConfig {
  /** A file's path is absolute. */
  readonly keys: KeySource
  readonly issuer: string
  readonly audience: string
  readonly algorithms: readonly string[]
  readonly accountClaim: string
  readonly scopesClaim: string
  readonly clockSkewMs: number
}

export interface DeploymentsConfig {
  /** null: deployments are reached by prefix only. */
  readonly domain: string | null
  readonly stagingLabel: string
  readonly hook: PoolHook | null
  readonly idleAfterMs: number
}

export type EngineConfig = {
  readonly kind: 'embedded'
  readonly threads: number
  readonly memoryBytes: number
  readonly maxImagePixels: number
  /** Absolute. */
  readonly nodeFolders: readonly string[]
  readonly nodeTimeoutMs: number
}

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

export type BlobsConfig = FsBlobsConfig | S3BlobsConfig

export interface FsBlobsConfig {
  readonly kind: 'fs'
  readonly directory: string
}

export interface S3BlobsConfig extends BucketAddress {
  readonly kind: 's3'
  /** For files that a process keeps for a while, absolute. */
  readonly cacheDirectory: string
  readonly cacheBytes: number
  /** Whether clients are sent to the bucket for what they download. */
  readonly isDirect: boolean
}

export interface LogConfig {
  readonly level: (typeof LOG_LEVELS)[number]
  readonly requests: boolean
}

type DeploymentKind = (typeof KINDS)[number]

export interface Config {
  readonly kind: DeploymentKind
  readonly role: Role
  readonly http: HttpConfig
  readonly jobs: JobsConfig
  readonly assets: AssetsConfig
  /** null: one account, nothing to configure. */
  readonly accounts: AccountsConfig | null
  readonly deployments: DeploymentsConfig | null
  readonly engine: EngineConfig
  readonly fleet: FleetConfig
  readonly router: RouterConfig
  /** The data folder, absolute: whatever this service keeps in files lies below it. */
  readonly dataDirectory: string
  readonly store: StoreConfig
  readonly blobs: BlobsConfig
  readonly bus: BusConfig
  readonly log: LogConfig
}

export interface LoadedConfig {
  readonly config: Config
  readonly secrets: Secrets
  /** Settings that are allowed but look like a mistake; one line each. */
  readonly warnings: readonly string[]
  /** The config file that was read, if any. */
  readonly file: string | null
}

export interface ConfigSources {
  readonly flags: Flags
  readonly env: Environment
  readonly cwd: string
  /** For commands that change accounts, which may run before the kind of the service is configured. */
  readonly isForAccounts?: boolean
  /** For commands that look after the store and run nothing. */
  readonly isForUpkeep?: boolean
}

interface Source {
  readonly from: 'flag' | 'environment' | 'file' | 'default'
  readonly text: string
  /** How messages name the source. */
  readonly label: string
}

/** Throws ConfigError with one line. */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const asked = toFlagText(sources.flags['config']) ?? sources.env[OTHER_ENV.configFile] ?? null
  const file = readConfigFile(asked, sources.cwd)
  const found = new Map(SETTING_NAMES.map((name) => [name, findSource(name, sources, file)]))
  const values = Object.fromEntries(
    SETTING_NAMES.map((name) => [name, readValue(name, found.get(name)!)]),
  ) as SettingValues
  const where = (name: SettingName) => found.get(name)!.label
  const toAbsolute = (name: SettingName, relative: string) =>
    path.resolve(baseOf(found.get(name)!, sources, file), relative)
  const hasAccounts = values.kind !== 'local' || sources.isForAccounts === true
  refuseContradictions(values, {
    where,
    isSet: (name) => found.get(name)!.from !== 'default',
    isFlag: (name) => found.get(name)!.from === 'flag',
    hasAccounts,
    runsJobs: sources.isForAccounts !== true && sources.isForUpkeep !== true,
  })
  return {
    config: toConfig(values, toAbsolute, hasAccounts),
    secrets: {
      token: values.token,
      secretKey: values.secretKey[0] ?? null,
      formerSecretKeys: values.secretKey.slice(1),
      databasePassword: toDatabasePassword(values, toAbsolute),
      busPassword: values.bus?.password ?? null,
      blobsKeys: toBlobsKeys(values, toAbsolute),
      adminToken: values.adminToken,
      signingKeys: values.signingKeys,
      providers: toProvidersSecret(values, toAbsolute),
    },
    warnings: toWarnings(values, sources.env),
    file: file?.path ?? null,
  }
}

function toFlagText(flag: unknown, separator = ','): string | null {
  if (flag === undefined) return null
  return Array.isArray(flag) ? flag.join(separator) : String(flag)
}

function findSource(name: SettingName, { flags, env }: ConfigSources, file: ConfigFile | null): Source {
  const flagText = toFlagText(flags[name], separatorOf(name))
  if (flagText !== null) return { from: 'flag', text: flagText, label: flagOf(name) ?? name }
  const envText = env[envOf(name)]
  if (envText !== undefined) return { from: 'environment', text: envText, label: envOf(name) }
  const fileText = file?.texts.get(name)
  if (file !== null && fileText !== undefined) return { from: 'file', text: fileText, label: path.basename(file.path) }
  return { from: 'default', text: SETTINGS[name].fallback, label: 'the default' }
}

function readValue(name: SettingName, source: Source): unknown {
  try {
    return SETTINGS[name].read(source.text)
  } catch (error) {
    // A malformed secret may still reveal the real one, so it is not shown.
    const shown = 'isSecret' in SETTINGS[name] ? '' : ` = ${quote(source.text)}`
    throw new ConfigError(`${name}${shown} (from ${source.label}) ${(error as Error).message}`)
  }
}

function baseOf(source: Source, { cwd }: ConfigSources, file: ConfigFile | null): string {
  // The default folder is relative to the config file too, so that it does not depend on where the service is started.
  const besideFile = file !== null && (source.from === 'file' || source.from === 'default')
  return besideFile ? path.dirname(file.path) : cwd
}

function toWarnings(values: SettingValues, env: Environment): string[] {
  const warnings = findUnknownNames(env).map(
    (name) => `the environment variable ${name} is not a setting and has no effect`,
  )
  if (values.kind === 'local' && !isLoopback(values.host) && values.token === null) {
    warnings.push(`listening on ${quote(values.host)} without a token: whoever reaches the port can use the service`)
  }
  if (values.synchronous === 'normal')
    warnings.push('synchronous = normal: acknowledged jobs may be lost in a power cut')
  if (values.kind !== 'local' && values.adminToken === null && values.role !== 'worker') {
    warnings.push(
      'there is no adminToken, and so no admin API: accounts and keys can only be changed while the service is down',
    )
  }
  return warnings
}

function toConfig(values: SettingValues, toAbsolute: ToAbsolute, hasAccounts: boolean): Config {
  const directory = toAbsolute('dataDir', values.dataDir)
  const store = toStoreConfig(values, toAbsolute)
  return {
    kind: values.kind,
    role: values.role,
    http: toHttpConfig(values),
    jobs: {
      workers: values.workers === 'auto' ? autoWorkers(values) : values.workers,
      maxQueued: values.maxQueue,
      retentionMs: values.retention,
      expiredGraceMs: values.expiredGrace,
      maxRunMs: values.maxRunTime,
      cancelGraceMs: values.cancelGrace,
      drainTimeoutMs: values.drainTimeout,
      drainDelayMs: values.drainDelay,
      pools: values.pools,
      previewOutputs: values.previewOutputs,
    },
    assets: {
      maxUploadBytes: values.maxUpload,
      retentionMs: values.assetRetention,
      blobGraceMs: values.blobGrace,
      modelsDirectory: values.modelsDir === null ? null : toAbsolute('modelsDir', values.modelsDir),
      importDirectories: values.importDirs.map((folder) => toAbsolute('importDirs', folder)),
      urlLifetimeMs: values.urlLifetime,
    },
    accounts: hasAccounts ? toAccountsConfig(values, toAbsolute) : null,
    deployments: values.kind === 'local' ? null : toDeploymentsConfig(values),
    engine: {
      kind: 'embedded',
      threads: values.engineThreads === 'auto' ? Math.max(1, availableParallelism() - 1) : values.engineThreads,
      memoryBytes:
        values.engineMemory === 'auto' ? Math.min(Math.floor(totalmem() / 2), 8 * 2 ** 30) : values.engineMemory,
      maxImagePixels: values.maxImagePixels,
      nodeFolders: values.nodes.map((folder) => toAbsolute('nodes', folder)),
      nodeTimeoutMs: values.nodeTimeout,
    },
    fleet: toFleetConfig(values),
    router: toRouterConfig(values, toAbsolute),
    dataDirectory: directory,
    store,
    blobs: toBlobsConfig(values, directory),
    bus: toBusConfig(values, toAbsolute),
    log: { level: values.logLevel, requests: values.logRequests },
  }
}

type ToAbsolute = (name: SettingName, path: string) => string

function toStoreConfig(values: SettingValues, toAbsolute: ToAbsolute): StoreConfig {
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

function toDatabasePassword(
  { database, databasePasswordFile: file }: SettingValues,
  toAbsolute: ToAbsolute,
): Secret<string> | null {
  return file === null
    ? (database?.password ?? null)
    : readSecretFile('databasePasswordFile', toAbsolute('databasePasswordFile', file))
}

function toBlobsConfig({ blobs, blobCache, content }: SettingValues, dataDirectory: string): BlobsConfig {
  if (blobs === null) return { kind: 'fs', directory: path.join(dataDirectory, 'blobs') }
  return {
    kind: 's3',
    ...blobs,
    cacheDirectory: path.join(dataDirectory, 'blob-cache'),
    cacheBytes: blobCache,
    isDirect: content === 'direct',
  }
}

function toBlobsKeys({ blobsKeys, blobsKeysFile: file }: SettingValues, toAbsolute: ToAbsolute): Secret<string> | null {
  if (file === null) return blobsKeys
  const name = 'blobsKeysFile'
  const keys = readSecretFile(name, toAbsolute(name, file))
  try {
    return readBucketKeys(keys.reveal())
  } catch (error) {
    throw new ConfigError(`${name} names a file whose first line ${(error as Error).message}`)
  }
}

function toAccountsConfig(values: SettingValues, toAbsolute: ToAbsolute): AccountsConfig {
  return {
    tiers: loadBlock(values.tiers, { name: 'tiers', toAbsolute }),
    tiersFile: values.tiers?.kind === 'file' ? toAbsolute('tiers', values.tiers.path) : null,
    prices: loadBlock(values.prices, { name: 'prices', toAbsolute }),
    jwt: toJwtConfig(values, toAbsolute),
  }
}

function toJwtConfig(values: SettingValues, toAbsolute: ToAbsolute): JwtConfig | null {
  const { jwtKeys: keys, jwtIssuer: issuer, jwtAudience: audience } = values
  if (keys === null || issuer === null || audience === null) return null
  return {
    keys: keys.kind === 'file' ? { kind: 'file', path: toAbsolute('jwtKeys', keys.path) } : keys,
    issuer,
    audience,
    algorithms: values.jwtAlgorithms,
    accountClaim: values.jwtAccountClaim,
    scopesClaim: values.jwtScopesClaim,
    clockSkewMs: values.jwtClockSkew,
  }
}

function toDeploymentsConfig(values: SettingValues): DeploymentsConfig {
  return {
    domain: values.deploymentsDomain,
    stagingLabel: values.stagingLabel,
    hook: values.poolHook,
    idleAfterMs: values.poolIdle,
  }
}

function toProvidersSecret({ providers }: SettingValues, toAbsolute: ToAbsolute): Secret<string> | null {
  const value = loadBlock(providers, { name: 'providers', toAbsolute })
  return value === null ? null : new Secret(JSON.stringify(value))
}

function toHttpConfig(values: SettingValues): HttpConfig {
  return {
    // An empty host means every interface; Node would take it for "unspecified" and pick by itself.
    host: values.host === '' ? '0.0.0.0' : values.host,
    port: values.port,
    isLoopback: isLoopback(values.host),
    allowedHosts: toAllowedHosts(values),
    corsOrigins: values.corsOrigins,
    publicUrl: values.publicUrl,
    mountPrefix: values.mountPrefix,
    absoluteUrls: values.absoluteUrls,
    trustedProxies: values.trustedProxies,
    maxBodyBytes: values.maxBody,
    maxBodiesBytes: values.maxBodies,
    maxBodiesPerCallerBytes: values.maxBodiesPerCaller,
    maxStreams: values.maxStreams,
    brand: values.brand,
    transferGc: values.transferGc,
  }
}

function toAllowedHosts({ allowedHosts, host, publicUrl }: SettingValues): readonly string[] {
  const isName = host !== '' && isIP(host) === 0 && !isLoopback(host)
  const own = [...(isName ? [host.toLowerCase()] : []), ...(publicUrl === null ? [] : [new URL(publicUrl).hostname])]
  return [...new Set([...allowedHosts, ...own])]
}
