/** Defaults that depend on the role of a process. */
import type { SettingValues } from '../settings/settings.ts'

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
