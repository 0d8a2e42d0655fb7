/** Combinations of settings that contradict each other. Each is refused at the start with one line that says how to fix it. */
import { refuseBusContradictions } from './blocks/bus-config.ts'
import { refuseFrontendContradictions } from './blocks/frontend-config.ts'
import { refuseRoleContradictions } from './blocks/role-config.ts'
import { ConfigError, quote } from './config-error.ts'
import { isLoopback } from './readers/read-network.ts'
import type { FoundSettings } from './settings/setting-sources.ts'
import type { SettingName, SettingValues } from './settings/settings.ts'

interface SettingOrigins extends Pick<FoundSettings, 'where' | 'isSet' | 'isFlag'> {
  /** Whether settings about accounts apply: in the kinds that have accounts, and for commands that change them. */
  readonly hasAccounts: boolean
  /** False for commands that only look after what is stored. */
  readonly runsJobs: boolean
}

const ONLY_LOCAL: readonly SettingName[] = ['token', 'allowInsecureBind', 'modelsDir', 'importDirs']
const ONLY_SHARED: readonly SettingName[] = [
  'tiers',
  'prices',
  'jwt',
  'deploymentsDomain',
  'poolHook',
  'poolHookSecret',
  'poolIdle',
]

const INSTEAD: Readonly<Partial<Record<SettingName, string>>> = {
  token: 'callers show keys of their accounts, made with: atelier keys create',
  modelsDir: 'accounts must not place files for each other',
  importDirs: 'accounts must not read files of this machine',
  allowInsecureBind: 'callers always show a key',
}

export function refuseContradictions(values: SettingValues, origins: SettingOrigins): void {
  refuseWrongKind(values, origins)
  refuseOpenBind(values, origins)
  refuseRoleContradictions(values, origins)
  refuseFleetContradictions(values, origins)
  refuseFrontendContradictions(values, origins)
  refuseStoreContradictions(values, origins)
  refuseBusContradictions(values, origins)
  refuseBlobContradictions(values, origins)
  if (values.adminToken !== null && values.adminToken.reveal() === values.token?.reveal()) {
    throw new ConfigError(
      'adminToken and token are the same; callers that may run jobs must not be able to do everything',
    )
  }
}

function refuseWrongKind({ kind }: SettingValues, { where, isSet, hasAccounts }: SettingOrigins): void {
  const unfit = [...(hasAccounts ? [] : ONLY_SHARED), ...(kind === 'local' ? [] : ONLY_LOCAL)]
  const wrong = unfit.find(isSet)
  if (wrong === undefined) return
  const remedy =
    kind === 'local'
      ? 'is for the kinds cloud and serverless; add --kind cloud, or leave it out'
      : `does not fit kind = "${kind}" (from ${where('kind')}): ${INSTEAD[wrong]}; leave it out`
  throw new ConfigError(`${wrong} (from ${where(wrong)}) ${remedy}`)
}

function refuseOpenBind(values: SettingValues, { where }: SettingOrigins): void {
  const needsToken = values.kind === 'local' && !isLoopback(values.host)
  if (!needsToken || values.token !== null || values.allowInsecureBind) return
  throw new ConfigError(
    `host = ${quote(values.host)} (from ${where('host')}) is reachable from other machines and there is no token; ` +
      'set ATELIER_TOKEN, or use 127.0.0.1, or allow it with --allow-insecure-bind',
  )
}

const ONLY_FOR_LAUNCHED = ['recycleAfter', 'comfyuiCount', 'weightPickles'] as const

function refuseFleetContradictions(values: SettingValues, { where, isSet }: SettingOrigins): void {
  const { comfyui: urls, comfyuiLaunch: commands } = values
  const twice = urls.find((url, index) => urls.indexOf(url) !== index)
  if (twice !== undefined) {
    throw new ConfigError(`comfyui names ${quote(twice)} twice (from ${where('comfyui')}); name each server once`)
  }
  if (values.role !== 'api' && values.embedded === 'off' && urls.length + commands.length === 0) {
    throw new ConfigError(
      `embedded = "off" (from ${where('embedded')}) leaves no engine; name a server with --comfyui or --comfyui-launch`,
    )
  }
  const pointless = ONLY_FOR_LAUNCHED.find((name) => commands.length === 0 && isSet(name))
  if (pointless !== undefined) {
    throw new ConfigError(
      `${pointless} (from ${where(pointless)}) is about servers that we start, and there are none; give --comfyui-launch, or leave it out`,
    )
  }
}

const ONLY_WITH_DATABASE = ['databasePasswordFile', 'databasePool', 'migrate'] as const

function refuseStoreContradictions(values: SettingValues, { where, isSet, isFlag, runsJobs }: SettingOrigins): void {
  const { database } = values
  if (database === null) {
    const pointless = ONLY_WITH_DATABASE.find(isSet)
    if (pointless === undefined) return
    throw new ConfigError(
      `${pointless} (from ${where(pointless)}) is about a Postgres database, and none is named; give --database, or leave it out`,
    )
  }
  if (database.password !== null && isFlag('database')) {
    throw new ConfigError(
      'database (from --database) holds a password, which other users of this machine can see; give the whole address in ATELIER_DATABASE, or the password by --database-password-file',
    )
  }
  if (database.password !== null && values.databasePasswordFile !== null) {
    throw new ConfigError(
      `database (from ${where('database')}) holds a password, and databasePasswordFile (from ${where('databasePasswordFile')}) names another; keep one of them`,
    )
  }
  if (isSet('modelsDir')) {
    throw new ConfigError(
      `modelsDir (from ${where('modelsDir')}) places files on one machine, and a database may serve many; leave it out`,
    )
  }
  if (runsJobs && values.secretKey.length === 0) {
    throw new ConfigError(
      'database needs a secretKey, because the credentials of a job must reach whichever process runs it; set ATELIER_SECRET_KEY to the same value for all of them (make one with: openssl rand -base64 32)',
    )
  }
}

const ONLY_WITH_BUCKET = ['blobsKeys', 'blobsKeysFile', 'blobCache', 'content'] as const

function refuseBlobContradictions(values: SettingValues, { where, isSet }: SettingOrigins): void {
  const { blobs, database, blobsKeys, blobsKeysFile } = values
  if (blobs === null) {
    const pointless = ONLY_WITH_BUCKET.find(isSet)
    if (pointless === undefined) return
    throw new ConfigError(
      `${pointless} (from ${where(pointless)}) is about a bucket, and none is named; give --blobs, or leave it out`,
    )
  }
  if (database === null) {
    throw new ConfigError(
      `blobs (from ${where('blobs')}) names a bucket, which needs a Postgres database; give --database, or keep the bytes in files`,
    )
  }
  if (blobsKeys !== null && blobsKeysFile !== null) {
    throw new ConfigError(
      `blobsKeys (from ${where('blobsKeys')}) and blobsKeysFile (from ${where('blobsKeysFile')}) both hold keys; keep one of them`,
    )
  }
}
