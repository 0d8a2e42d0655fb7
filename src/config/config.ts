/**
 * Reads flags, environment and config file into one typed configuration and its secrets. Everything is checked here,
 * contradictions included, so that the rest of the code can trust its part. Pure except for reading files and the size of this
 * machine.
 */
import { type AccountsConfig, toAccountsConfig } from './blocks/accounts-config.ts'
import { type AssetsConfig, toAssetsConfig } from './blocks/assets-config.ts'
import { type BlobsConfig, toBlobsConfig, toBlobsKeys } from './blocks/blobs-config.ts'
import { type BuilderConfig, toBuilderConfig, toBuilderHeaders } from './blocks/builder-config.ts'
import { type BusConfig, toBusConfig } from './blocks/bus-config.ts'
import { type EngineConfig, type FleetConfig, toEngineConfig, toFleetConfig } from './blocks/fleet-config.ts'
import { type FrontendConfig, type HttpConfig, toFrontendConfig, toHttpConfig } from './blocks/http-config.ts'
import { toInputHeaders, toInputUrlsConfig } from './blocks/input-urls-config.ts'
import {
  type BuildsConfig,
  type DeploymentsConfig,
  type JobsConfig,
  toBuildsConfig,
  toDeploymentsConfig,
  toJobsConfig,
} from './blocks/jobs-config.ts'
import { type ModerationConfig, toModerationConfig, toModerationSecrets } from './blocks/moderation-config.ts'
import type { Role } from './blocks/role-config.ts'
import { type RouterConfig, toProvidersSecret, toRouterConfig } from './blocks/router-config.ts'
import { type StoreConfig, toDatabasePassword, toStoreConfig } from './blocks/store-config.ts'
import { type TracesConfig, toTraceHeaders, toTracesConfig } from './blocks/traces-config.ts'
import { quote } from './config-error.ts'
import { refuseContradictions } from './contradictions.ts'
import { ENV, findUnknownNames, OTHER_ENV } from './env.ts'
import { type InputUrls, isLoopback } from './readers/read-network.ts'
import type { Secrets } from './secrets.ts'
import type { ConfigWarning, Environment } from './settings/setting.ts'
import {
  findSettings,
  readConfigFile,
  type SettingSources,
  type ToAbsolute,
  toFlagText,
} from './settings/setting-sources.ts'
import type { SettingValues } from './settings/settings.ts'

export interface LogConfig {
  readonly level: SettingValues['logLevel']
  readonly requests: boolean
}

interface WebhooksConfig {
  readonly allowsPrivateNetwork: boolean
  readonly timeoutMs: number
  readonly firstRetryMs: number
  readonly perEndpoint: number
}

export interface Config {
  readonly kind: SettingValues['kind']
  readonly role: Role
  readonly http: HttpConfig
  readonly jobs: JobsConfig
  readonly assets: AssetsConfig
  /** From where files are fetched that callers name by an address. */
  readonly inputUrls: InputUrls
  readonly moderation: ModerationConfig
  /** null: this process makes no environments. */
  readonly builder: BuilderConfig | null
  /** null: one account, nothing to configure. */
  readonly accounts: AccountsConfig | null
  readonly deployments: DeploymentsConfig | null
  readonly builds: BuildsConfig
  readonly engine: EngineConfig
  readonly fleet: FleetConfig
  /** ComfyUI's own editor; null: it is not served. */
  readonly frontend: FrontendConfig | null
  readonly router: RouterConfig
  readonly webhooks: WebhooksConfig
  /** The data folder, absolute: whatever this service keeps in files lies below it. */
  readonly dataDirectory: string
  readonly store: StoreConfig
  readonly blobs: BlobsConfig
  readonly bus: BusConfig
  readonly log: LogConfig
  /** null: off. */
  readonly traces: TracesConfig | null
}

export interface LoadedConfig {
  readonly config: Config
  readonly secrets: Secrets
  readonly warnings: readonly ConfigWarning[]
  /** The config file that was read, if any. */
  readonly file: string | null
}

export interface ConfigSources extends SettingSources {
  /** For commands that change accounts, which may run before the kind of the service is configured. */
  readonly isForAccounts?: boolean
  /** For commands that look after the store and run nothing. */
  readonly isForUpkeep?: boolean
}

/** Throws ConfigError with one line. */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const asked = toFlagText(sources.flags['config']) ?? sources.env[OTHER_ENV.configFile] ?? null
  const file = readConfigFile(asked, sources.cwd)
  const { values, toAbsolute, where, isSet, isFlag, warnings } = findSettings(sources, file)
  const hasAccounts = values.kind !== 'local' || sources.isForAccounts === true
  const runsJobs = sources.isForAccounts !== true && sources.isForUpkeep !== true
  refuseContradictions(values, { where, isSet, isFlag, hasAccounts, runsJobs })
  const store = { where, toAbsolute, env: sources.env }
  return {
    config: {
      ...toConfig(values, toAbsolute),
      accounts: hasAccounts ? toAccountsConfig(values, { toAbsolute, where }) : null,
      store: toStoreConfig(values, store),
      traces: toTracesConfig(values, sources.env),
    },
    secrets: {
      ...toSecrets(values, toAbsolute),
      databasePassword: toDatabasePassword(values, store),
      traceHeaders: toTraceHeaders(sources.env),
    },
    warnings: [...warnings, ...toWarnings(values, sources.env)],
    file: file?.path ?? null,
  }
}

function toSecrets(values: SettingValues, toAbsolute: ToAbsolute): Omit<Secrets, 'databasePassword' | 'traceHeaders'> {
  return {
    token: values.token,
    secretKey: values.secretKey[0] ?? null,
    formerSecretKeys: values.secretKey.slice(1),
    busPassword: values.bus?.password ?? null,
    blobsKeys: toBlobsKeys(values, toAbsolute),
    adminToken: values.adminToken,
    signingKeys: values.signingKeys,
    poolHook: values.poolHookSecret,
    providers: toProvidersSecret(values, toAbsolute),
    inputHeaders: toInputHeaders(values, toAbsolute),
    moderation: toModerationSecrets(values, toAbsolute),
    builderHeaders: toBuilderHeaders(values, toAbsolute),
  }
}

// A receiver should take a message and work on it later. Pauses between attempts are multiples of the first, until three days have
// passed. Four at a time keep the messages of a job close together without a flood for a small receiver.
const WEBHOOK_BOUNDS = { timeoutMs: 10_000, firstRetryMs: 5_000, perEndpoint: 4 } as const

function toConfig(values: SettingValues, toAbsolute: ToAbsolute): Omit<Config, 'accounts' | 'store' | 'traces'> {
  const directory = toAbsolute('dataDir', values.dataDir)
  return {
    kind: values.kind,
    role: values.role,
    http: toHttpConfig(values),
    jobs: toJobsConfig(values),
    assets: toAssetsConfig(values, toAbsolute),
    inputUrls: toInputUrlsConfig(values, toAbsolute),
    moderation: toModerationConfig(values, toAbsolute),
    builder: toBuilderConfig(values, toAbsolute),
    deployments: values.kind === 'local' ? null : toDeploymentsConfig(values),
    builds: toBuildsConfig(values),
    engine: toEngineConfig(values, toAbsolute),
    fleet: toFleetConfig(values),
    frontend: toFrontendConfig(values, toAbsolute),
    router: toRouterConfig(values, toAbsolute),
    webhooks: { allowsPrivateNetwork: values.webhookPrivateNetwork, ...WEBHOOK_BOUNDS },
    dataDirectory: directory,
    blobs: toBlobsConfig(values, directory, toAbsolute),
    bus: toBusConfig(values, toAbsolute),
    log: { level: values.logLevel, requests: values.logLevel === 'debug' },
  }
}

function toWarnings(values: SettingValues, env: Environment): ConfigWarning[] {
  const warnings = findUnknownNames(env).map((name) => ({
    says: `the environment variable ${name} is not a setting and has no effect`,
    remedy: 'correct its name, or leave it out; docs/config.md lists all settings',
  }))
  if (values.kind === 'local' && !isLoopback(values.host) && values.token === null) {
    warnings.push({
      says: `listening on ${quote(values.host)} without a token: anyone who can reach the port can use the service`,
      remedy: `set ${ENV.token}, or listen on 127.0.0.1`,
    })
  }
  if (values.kind !== 'local' && values.adminToken === null && values.role !== 'worker') {
    warnings.push({
      says: 'there is no adminToken, and so no admin API: accounts and keys can only be changed while the service is down',
      remedy: `set ${ENV.adminToken} (make one with: openssl rand -hex 32)`,
    })
  }
  return warnings
}
