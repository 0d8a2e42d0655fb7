/**
 * The table of all settings: the flag, the default, the reader and the description of each. Flags, environment variables, the config
 * file, the documentation and the error messages are all derived from it.
 */

import { ENV, type SettingName } from '../env.ts'
import { readChoice, readSwitch } from '../readers/read-choice.ts'
import { ACCOUNT_SETTINGS } from './account-settings.ts'
import { ASSET_SETTINGS } from './asset-settings.ts'
import { BUS_SETTINGS } from './bus-settings.ts'
import { ENGINE_SETTINGS } from './engine-settings.ts'
import { FLEET_SETTINGS } from './fleet-settings.ts'
import { FRONTEND_SETTINGS } from './frontend-settings.ts'
import { JOB_SETTINGS } from './job-settings.ts'
import { NETWORK_SETTINGS } from './network-settings.ts'
import { ROLE_SETTINGS } from './role-settings.ts'
import { ROUTER_SETTINGS } from './router-settings.ts'
import type { Setting } from './setting.ts'
import { STORAGE_SETTINGS } from './storage-settings.ts'
import { TRACE_SETTINGS } from './trace-settings.ts'
import { WEBHOOK_SETTINGS } from './webhook-settings.ts'

export const KINDS = ['local', 'cloud', 'serverless'] as const
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

export const SETTINGS = {
  kind: {
    group: 'Service',
    argument: '<kind>',
    fallback: 'local',
    read: readChoice(KINDS),
    help: 'The kind of deployment. `local` serves one implicit account; `cloud` and `serverless` serve many, with keys, tiers and credits. See docs/accounts.md.',
  },
  role: ROLE_SETTINGS.role,
  ...NETWORK_SETTINGS,
  ...STORAGE_SETTINGS,
  ...BUS_SETTINGS,
  ...JOB_SETTINGS,
  ...ASSET_SETTINGS,
  ...ACCOUNT_SETTINGS,
  ...ROUTER_SETTINGS,
  ...WEBHOOK_SETTINGS,
  ...ENGINE_SETTINGS,
  ...FLEET_SETTINGS,
  ...FRONTEND_SETTINGS,
  logLevel: {
    group: 'Logs',
    argument: '<level>',
    fallback: 'info',
    read: readChoice(LOG_LEVELS),
    help: 'The lowest level of log lines that are written.',
  },
  logRequests: {
    group: 'Logs',
    argument: '',
    fallback: 'false',
    read: readSwitch,
    help: 'Writes one log line per request. Makes a small request about a third more expensive.',
  },
  ...TRACE_SETTINGS,
} as const satisfies Record<SettingName, Setting<unknown>>

export const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[]

/** The values of all settings, each of the type that its reader returns. */
export type SettingValues = { readonly [Name in SettingName]: ReturnType<(typeof SETTINGS)[Name]['read']> }

/** What joins the items of a flag that was repeated, or of a list in the file. */
export function separatorOf(name: SettingName): string {
  const setting: Setting<unknown> = SETTINGS[name]
  return setting.separator ?? ','
}

/** `maxQueue` is `--max-queue` on the command line; null when the setting has no flag. */
export function flagOf(name: SettingName): string | null {
  if (SETTINGS[name].argument === null) return null
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

export function envOf(name: SettingName): string {
  return ENV[name]
}
