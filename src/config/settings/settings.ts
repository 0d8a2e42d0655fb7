/**
 * The table of all settings: the flag, the default, the reader and the description of each. Flags, environment variables, the config
 * file, the documentation and the error messages are all derived from it.
 */
import { ACCOUNT_SETTINGS, BUILD_SETTINGS, DEPLOYMENT_SETTINGS, WEBHOOK_SETTINGS } from './account-settings.ts'
import { ENGINE_SETTINGS, FLEET_SETTINGS, FRONTEND_SETTINGS } from './engine-settings.ts'
import { ASSET_SETTINGS, JOB_SETTINGS, SERVICE_SETTINGS } from './job-settings.ts'
import { NETWORK_SETTINGS } from './network-settings.ts'
import { LOG_SETTINGS, ROUTER_SETTINGS, TRACE_SETTINGS } from './router-settings.ts'
import type { Setting } from './setting.ts'
import { STORAGE_SETTINGS } from './storage-settings.ts'

/** In the order of the documentation. */
export const GROUPS = {
  Service: SERVICE_SETTINGS,
  Network: NETWORK_SETTINGS,
  Storage: STORAGE_SETTINGS,
  Jobs: JOB_SETTINGS,
  Assets: ASSET_SETTINGS,
  Accounts: ACCOUNT_SETTINGS,
  Deployments: DEPLOYMENT_SETTINGS,
  Builds: BUILD_SETTINGS,
  Engine: ENGINE_SETTINGS,
  Fleet: FLEET_SETTINGS,
  Frontend: FRONTEND_SETTINGS,
  Router: ROUTER_SETTINGS,
  Webhooks: WEBHOOK_SETTINGS,
  Logs: LOG_SETTINGS,
  Traces: TRACE_SETTINGS,
} as const
export type SettingGroup = keyof typeof GROUPS

export const SETTINGS = {
  ...SERVICE_SETTINGS,
  ...NETWORK_SETTINGS,
  ...STORAGE_SETTINGS,
  ...JOB_SETTINGS,
  ...ASSET_SETTINGS,
  ...ACCOUNT_SETTINGS,
  ...DEPLOYMENT_SETTINGS,
  ...BUILD_SETTINGS,
  ...ENGINE_SETTINGS,
  ...FLEET_SETTINGS,
  ...FRONTEND_SETTINGS,
  ...ROUTER_SETTINGS,
  ...WEBHOOK_SETTINGS,
  ...LOG_SETTINGS,
  ...TRACE_SETTINGS,
} as const

export type SettingName = keyof typeof SETTINGS
export const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[]

/** The values of all settings, each of the type that its reader returns. */
export type SettingValues = { readonly [Name in SettingName]: ReturnType<(typeof SETTINGS)[Name]['read']> }

export function isInGroup(name: SettingName, groups: readonly SettingGroup[]): boolean {
  return groups.some((group) => Object.hasOwn(GROUPS[group], name))
}

/** What joins the items of a flag that was repeated, or of a list in the file. */
export function separatorOf(name: SettingName): string {
  const setting: Setting<unknown> = SETTINGS[name]
  return setting.separator ?? ','
}

/** `maxQueue` is `--max-queue` on the command line; null when the setting has no flag. */
export function flagOf(name: SettingName): string | null {
  return SETTINGS[name].argument === null ? null : toFlag(name)
}

export function toFlag(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** `maxQueue` is `ATELIER_MAX_QUEUE` in the environment. */
export function toVariable(name: string): string {
  return `ATELIER_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
}
