/** Adds one flag per setting to a command, from the table of settings. */
import { type Command, Help, Option } from 'commander'
import { type ConfigSources, type LoadedConfig, loadConfig } from '../config/config.ts'
import { ENV } from '../config/env.ts'
import { RETIRED } from '../config/settings/retired.ts'
import {
  flagOf,
  GROUPS,
  isInGroup,
  SETTING_NAMES,
  SETTINGS,
  type SettingGroup,
  type SettingName,
  toFlag,
} from '../config/settings/settings.ts'
import { printLine, type Terminal } from './terminal.ts'

/** Values stay texts here: the configuration parses and checks the values of every source in the same way. */
export function addSettingFlags(command: Command, names: readonly SettingName[] = SETTING_NAMES): Command {
  const isMany = names.length > FEW
  const ordered = isMany ? [...names].sort((a, b) => rankOf(a) - rankOf(b)) : names
  command.addOption(
    new Option('--config <file>', 'the config file (env ATELIER_CONFIG; default atelier.config.json, if it is there)'),
  )
  for (const name of ordered) {
    const flag = flagOf(name)
    const { argument, fallback, help } = SETTINGS[name]
    if (flag === null) continue
    const spelled = argument === '' ? flag : `${flag} ${argument}`
    const shownDefault = fallback === '' ? '' : `; default ${fallback}`
    const option = new Option(spelled, `${help.replaceAll('`', '')} (env ${ENV[name]}${shownDefault})`)
    if (isList(name)) option.argParser((item: string, before: string[] | undefined) => [...(before ?? []), item])
    if (isMany) option.helpGroup(headingOf(name))
    command.addOption(option)
  }
  if (!isMany) return command
  addRetiredFlags(command)
  return addLongHelp(command)
}

/** What most services set, if anything: the help begins with them. */
const COMMON: readonly SettingName[] = [
  'comfyui',
  'comfyuiLaunch',
  'host',
  'port',
  'token',
  'dataDir',
  'kind',
  'adminToken',
  'database',
  'blobs',
  'workers',
  'retention',
  'nodes',
]

function rankOf(name: SettingName): number {
  return COMMON.includes(name) ? COMMON.indexOf(name) : COMMON.length
}

function headingOf(name: SettingName): string {
  if (COMMON.includes(name)) return 'Common settings:'
  const group = (Object.keys(GROUPS) as SettingGroup[]).find((each) => isInGroup(name, [each]))
  return `${group}:`
}

/** `--help` leaves out what few services set, and `--help-all` shows it by subject. */
function addLongHelp(command: Command): Command {
  const names = new Set<string>(SETTING_NAMES.filter((name) => !COMMON.includes(name)))
  const count = command.options.filter((option) => names.has(option.attributeName())).length
  command.option('--help-all', `display help with ${count} more settings, by subject (docs/config.md has them, too)`)
  let isLong = false
  command.on('option:help-all', () => {
    isLong = true
    command.help()
  })
  return command.configureHelp({
    visibleOptions(this: Help, asked: Command) {
      const all = Help.prototype.visibleOptions.call(this, asked)
      return isLong ? all : all.filter((option) => !names.has(option.attributeName()))
    },
  })
}

/** A command with more settings than this starts a process, which accepts those of earlier versions, too. */
const FEW = 10

/** Their values are optional, because some were switches. */
function addRetiredFlags(command: Command): void {
  for (const name of Object.keys(RETIRED)) command.addOption(new Option(`${toFlag(name)} [value]`).hideHelp())
}

const LISTS: readonly SettingName[] = [
  'allowedHosts',
  'corsOrigins',
  'trustedProxies',
  'brand',
  'nodes',
  'importDirs',
  'comfyui',
  'comfyuiLaunch',
  'pools',
  'catalogs',
]

function isList(name: SettingName): boolean {
  return LISTS.includes(name)
}

export function loadFromCommandLine(
  options: Readonly<Record<string, unknown>>,
  terminal: Terminal,
  purpose: Pick<ConfigSources, 'isForAccounts' | 'isForUpkeep'> = {},
): LoadedConfig {
  return loadConfig({ flags: options, env: terminal.env, cwd: terminal.cwd, ...purpose })
}

export function printWarnings({ warnings }: Pick<LoadedConfig, 'warnings'>, { stderr }: Terminal): void {
  for (const { says, remedy } of warnings) printLine(stderr, `atelier: warning: ${says}; ${remedy}`)
}
