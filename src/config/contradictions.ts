/** Combinations of settings that contradict each other. Each is refused at the start with one line that says how to fix it. */
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

export function refuseContradictions(values: SettingValues, origins: SettingOrigins): void {
  refuseWrongKind(values, origins)
  refuseOpenBind(values, origins)
  refuseRoleContradictions(values, origins)
  refuseFleetContradictions(values, origins)
  refuseFrontendContradictions(values, origins)
  refuseStoreContradictions(values, origins)
  refuseBusContradictions(values, origins)
  refuseBlobContradictions(values, origins)
  for (const name of ['inputUrls', 'moderation', 'builder'] as const) {
    if (values[name]?.kind === 'inline' && origins.isFlag(name))
      throw new ConfigError(`${name} is an object on the command line, which others can see; put it into a file`)
  }
  if (values.adminToken !== null && values.adminToken.reveal() === values.token?.reveal()) {
    throw new ConfigError(
      'adminToken and token are the same; callers that may run jobs must not be able to do everything',
    )
  }
}

/** Refuses the first of these settings that is given. */
function refuseSet(names: readonly SettingName[], { where, isSet }: SettingOrigins, why: string): void {
  const given = names.find(isSet)
  if (given !== undefined) throw new ConfigError(`${given} (from ${where(given)}) ${why}`)
}

const ONLY_SHARED: readonly SettingName[] = [
  ...(['tiers', 'prices', 'jwt'] as const),
  ...(['deploymentsDomain', 'poolHook', 'poolHookSecret'] as const),
]
const INSTEAD = {
  token: 'callers show keys of their accounts, made with: atelier keys create',
  modelsDir: 'accounts must not place files for each other',
  importDirs: 'accounts must not read files of this machine',
  allowInsecureBind: 'callers always show a key',
} as const

function refuseWrongKind({ kind }: SettingValues, origins: SettingOrigins): void {
  if (!origins.hasAccounts)
    refuseSet(ONLY_SHARED, origins, 'is for the kinds cloud and serverless; add --kind cloud, or leave it out')
  if (kind === 'local') return
  for (const [name, instead] of Object.entries(INSTEAD)) {
    const why = `does not fit kind = "${kind}" (from ${origins.where('kind')}): ${instead}; leave it out`
    refuseSet([name as keyof typeof INSTEAD], origins, why)
  }
}

function refuseOpenBind(values: SettingValues, { where }: SettingOrigins): void {
  const needsToken = values.kind === 'local' && !isLoopback(values.host)
  if (!needsToken || values.token !== null || values.allowInsecureBind) return
  throw new ConfigError(
    `host = ${quote(values.host)} (from ${where('host')}) is reachable from other machines and there is no token; ` +
      'set ATELIER_TOKEN, or use 127.0.0.1, or allow it with --allow-insecure-bind',
  )
}

function refuseRoleContradictions(values: SettingValues, origins: SettingOrigins): void {
  const { role, kind, pools } = values
  const { where, runsJobs } = origins
  const other = kind === 'local' ? pools?.find((pool) => pool !== 'default') : undefined
  if (other !== undefined) {
    throw new ConfigError(
      `pools (from ${where('pools')}) names ${quote(other)}, and the kind local has the pool default alone; add --kind cloud, or leave it out`,
    )
  }
  // Commands that look after the store run nothing, whatever the environment says of the services beside them.
  if (role === 'all' || !runsJobs) return
  const named = `role = "${role}" (from ${where('role')})`
  if (values.database === null) {
    throw new ConfigError(
      `${named} needs a database that all processes share; give --database with a Postgres address, or leave the role out`,
    )
  }
  if (role === 'api') refuseRuns(values, origins, named)
  else refuseIdleness(values, origins, named)
}

function refuseRuns({ embedded, workers }: SettingValues, origins: SettingOrigins, named: string): void {
  const running: readonly SettingName[] = [
    ...(['comfyui', 'comfyuiLaunch', 'nodes', 'pools'] as const),
    ...(embedded === 'on' ? (['embedded'] as const) : []),
    ...(workers !== 'auto' && workers > 0 ? (['workers'] as const) : []),
  ]
  const why = `is about running jobs, and ${named} runs none; give it to a process of the role worker or all, or leave it out`
  refuseSet(running, origins, why)
}

function refuseIdleness(values: SettingValues, { where }: SettingOrigins, named: string): void {
  const { comfyui, comfyuiLaunch, embedded, workers } = values
  if (comfyui.length + comfyuiLaunch.length === 0 && embedded !== 'on') {
    throw new ConfigError(
      `${named} has no engine; name servers with --comfyui or --comfyui-launch, or take the built-in engine with --embedded on`,
    )
  }
  if (workers === 0) {
    throw new ConfigError(
      `workers = 0 (from ${where('workers')}) leaves ${named} nothing to do; give a number, or leave it out`,
    )
  }
}

function refuseFleetContradictions(values: SettingValues, origins: SettingOrigins): void {
  const { comfyui: urls, comfyuiLaunch: commands, role, embedded, builder, releaseEngines } = values
  const startsReleases = builder !== null && releaseEngines > 0
  const twice = urls.find((url, index) => urls.indexOf(url) !== index)
  if (twice !== undefined) {
    throw new ConfigError(
      `comfyui names ${quote(twice)} twice (from ${origins.where('comfyui')}); name each server once`,
    )
  }
  if (role !== 'api' && embedded === 'off' && urls.length + commands.length === 0 && !startsReleases) {
    throw new ConfigError(
      `embedded = "off" (from ${origins.where('embedded')}) leaves no engine; name a server with --comfyui or --comfyui-launch, or let it serve releases with --builder`,
    )
  }
  if (commands.length > 0) return
  const why = 'is about servers that we start, and there are none; give --comfyui-launch, or leave it out'
  refuseSet(['recycleAfter', 'comfyuiCount', 'weightPickles'], origins, why)
}

function refuseFrontendContradictions(values: SettingValues, origins: SettingOrigins): void {
  const { comfyuiFrontend, comfyuiFrontendPort, comfyuiFrontendUrl, port, publicUrl, role } = values
  if (comfyuiFrontend === null) {
    const why = "is about ComfyUI's editor, and no copy of it is named; give --comfyui-frontend, or leave it out"
    refuseSet(['comfyuiFrontendPort', 'comfyuiFrontendUrl', 'comfyuiTemplates'], origins, why)
    return
  }
  if (role === 'worker') {
    const why = 'is for people, and a process of the role worker answers nobody; give it to one of the role api or all'
    refuseSet(['comfyuiFrontend'], origins, why)
  }
  if (comfyuiFrontendPort === port && port !== 0) {
    throw new ConfigError(
      `comfyuiFrontendPort and port are both ${port}; the editor needs a port of its own, so that its scripts do not share an origin with the console`,
    )
  }
  if (comfyuiFrontendUrl !== null && comfyuiFrontendUrl === publicUrl) {
    throw new ConfigError(
      `comfyuiFrontendUrl and publicUrl are both ${publicUrl}; the editor needs an origin of its own, so that its scripts cannot act as the console`,
    )
  }
}

function refuseStoreContradictions(values: SettingValues, origins: SettingOrigins): void {
  const { database, databasePasswordFile, secretKey } = values
  const { where, isFlag, runsJobs } = origins
  if (database === null) {
    const why = 'is about a Postgres database, and none is named; give --database, or leave it out'
    refuseSet(['databasePasswordFile', 'databasePool', 'migrate'], origins, why)
    return
  }
  if (database.password !== null && isFlag('database')) {
    throw new ConfigError(
      'database (from --database) holds a password, which other users of this machine can see; give the whole address in ATELIER_DATABASE, or the password by --database-password-file',
    )
  }
  if (database.password !== null && databasePasswordFile !== null) {
    throw new ConfigError(
      `database (from ${where('database')}) holds a password, and databasePasswordFile (from ${where('databasePasswordFile')}) names another; keep one of them`,
    )
  }
  refuseSet(['modelsDir'], origins, 'places files on one machine, and a database may serve many; leave it out')
  if (runsJobs && secretKey.length === 0) {
    throw new ConfigError(
      'database needs a secretKey, because the credentials of a job must reach whichever process runs it; set ATELIER_SECRET_KEY to the same value for all of them (make one with: openssl rand -base64 32)',
    )
  }
}

function refuseBusContradictions(values: SettingValues, origins: SettingOrigins): void {
  const { bus, database } = values
  if (database === null) {
    const why =
      'is about processes that share a database, and SQLite serves one process; give --database, or leave it out'
    refuseSet(['bus', 'internalPort', 'advertise'], origins, why)
  }
  if (bus === null) return
  if (bus.password !== null && origins.isFlag('bus')) {
    throw new ConfigError(
      'bus (from --bus) holds credentials, which other users of this machine can see; give the whole address in ATELIER_BUS, or name a file of them with ?credentials=<file>',
    )
  }
  const why = 'is about processes that dial each other, and with a bus of NATS they do not; leave it out'
  refuseSet(['internalPort', 'advertise'], origins, why)
}

function refuseBlobContradictions(values: SettingValues, origins: SettingOrigins): void {
  const { blobs, database, blobsKeys } = values
  const { where } = origins
  if (blobs === null) {
    const why = 'is about a bucket, and none is named; give --blobs, or leave it out'
    refuseSet(['blobsKeys', 'blobCache', 'content'], origins, why)
    return
  }
  if (database === null) {
    const why = 'names a bucket, which needs a Postgres database; give --database, or keep the bytes in files'
    refuseSet(['blobs'], origins, why)
  }
  if (blobsKeys !== null && blobs.keys !== null) {
    throw new ConfigError(
      `blobsKeys (from ${where('blobsKeys')}) and the file of blobs (from ${where('blobs')}) both hold keys; keep one of them`,
    )
  }
}
