/** What follows from the role of a process: defaults that depend on it, and settings that do not fit it. */
import { ConfigError, quote } from '../config-error.ts'
import type { FoundSettings } from '../settings/setting-sources.ts'
import type { SettingName, SettingValues } from '../settings/settings.ts'

export type Role = SettingValues['role']

// A worker claims, renews and commits, and serves no requests. Four is the minimum: one connection for each of the store's pools.
const CONNECTIONS: Readonly<Record<Role, number>> = { all: 8, api: 8, worker: 4 }

export function toConnections({ role, databasePool }: SettingValues): number {
  return databasePool === 'auto' ? CONNECTIONS[role] : databasePool
}

/** With separate roles several processes start at once, so the schema is migrated by `atelier migrate`, not by a start. */
export function toMigrate({ role, migrate }: SettingValues): 'auto' | 'check' {
  if (migrate !== 'by role') return migrate
  return role === 'all' ? 'auto' : 'check'
}

interface RoleOrigins extends Pick<FoundSettings, 'where' | 'isSet'> {
  readonly runsJobs: boolean
}

/** Settings by which a process would run jobs. */
const RUNS: readonly SettingName[] = ['comfyui', 'comfyuiLaunch', 'nodes', 'pools']

export function refuseRoleContradictions(values: SettingValues, origins: RoleOrigins): void {
  const { role, kind, pools } = values
  const other = kind === 'local' ? pools?.find((pool) => pool !== 'default') : undefined
  if (other !== undefined) {
    throw new ConfigError(
      `pools (from ${origins.where('pools')}) names ${quote(other)}, and the kind local has the pool default alone; add --kind cloud, or leave it out`,
    )
  }
  // Commands that look after the store run nothing, whatever the environment says of the services beside them.
  if (role === 'all' || !origins.runsJobs) return
  const named = `role = "${role}" (from ${origins.where('role')})`
  if (values.database === null) {
    throw new ConfigError(
      `${named} needs a database that all processes share; give --database with a Postgres address, or leave the role out`,
    )
  }
  if (role === 'api') refuseRuns(values, origins, named)
  else refuseIdleness(values, origins, named)
}

function refuseRuns(values: SettingValues, { where, isSet }: RoleOrigins, named: string): void {
  const { embedded, workers } = values
  const wrong = [
    ...RUNS.filter(isSet),
    ...(embedded === 'on' ? (['embedded'] as const) : []),
    ...(workers !== 'auto' && workers > 0 ? (['workers'] as const) : []),
  ][0]
  if (wrong === undefined) return
  throw new ConfigError(
    `${wrong} (from ${where(wrong)}) is about running jobs, and ${named} runs none; give it to a process of the role worker or all, or leave it out`,
  )
}

function refuseIdleness(values: SettingValues, { where }: RoleOrigins, named: string): void {
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
