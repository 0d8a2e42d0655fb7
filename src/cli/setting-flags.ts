/** Adds one flag per setting to a command, from the table of settings. */
import { type Command, Option } from 'commander'
import { type ConfigSources, type LoadedConfig, loadConfig } from '../config/config.ts'
import { ENV } from '../config/env.ts'
import { RETIRED } from '../config/settings/retired.ts'
import { flagOf, SETTING_NAMES, SETTINGS, type SettingName, toFlag } from '../config/settings/settings.ts'
import { printLine, type Terminal } from './terminal.ts'

/** Values stay texts here: the configuration parses and checks the values of every source in the same way. */
export function addSettingFlags(command: Command, names: readonly SettingName[] = SETTING_NAMES): Command {
  command.addOption(
    new Option('--config <file>', 'the config file (env ATELIER_CONFIG; default atelier.config.json, if it is there)'),
  )
  for (const name of names) {
    const flag = flagOf(name)
    const { argument, fallback, help } = SETTINGS[name]
    if (flag === null) continue
    const spelled = argument === '' ? flag : `${flag} ${argument}`
    const shownDefault = fallback === '' ? '' : `; default ${fallback}`
    const option = new Option(spelled, `${help.replaceAll('`', '')} (env ${ENV[name]}${shownDefault})`)
    if (isList(name)) option.argParser((item: string, before: string[] | undefined) => [...(before ?? []), item])
    command.addOption(option)
  }
  if (names.length > FEW) addRetiredFlags(command)
  return command
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
