/**
 * Finds where each setting comes from and reads it. Flags win over the environment, the environment over the file, the file over
 * the defaults. Messages name the source, so that a wrong value is found where it stands.
 */
import path from 'node:path'
import { ConfigError, quote } from '../config-error.ts'
import type { ConfigFile } from '../config-file.ts'
import type { Environment, SettingName } from '../env.ts'
import { envOf, flagOf, SETTING_NAMES, SETTINGS, type SettingValues, separatorOf } from './settings.ts'

/** By camel-case name: texts, as commander gives them; a switch is a boolean, a repeated flag a list of texts. */
type Flags = Readonly<Record<string, unknown>>

export interface SettingSources {
  readonly flags: Flags
  readonly env: Environment
  readonly cwd: string
  /** The settings that mean something for what is started; all others count as if they were not set. Left out: all do. */
  readonly isMeant?: (name: SettingName) => boolean
}

/** Makes the path in a setting absolute: relative to the config file when it stands there, else to the working directory. */
export type ToAbsolute = (name: SettingName, path: string) => string

export interface FoundSettings {
  readonly values: SettingValues
  /** How messages name the source of a setting. */
  readonly where: (name: SettingName) => string
  readonly isSet: (name: SettingName) => boolean
  /** Whether it stands on the command line, which other users of the machine can see. */
  readonly isFlag: (name: SettingName) => boolean
  readonly toAbsolute: ToAbsolute
}

interface Source {
  readonly from: 'flag' | 'environment' | 'file' | 'default'
  readonly text: string
  /** How messages name the source. */
  readonly label: string
}

/** Throws ConfigError with one line. */
export function findSettings(sources: SettingSources, file: ConfigFile | null): FoundSettings {
  const found = new Map(SETTING_NAMES.map((name) => [name, findSource(name, sources, file)]))
  const sourceOf = (name: SettingName) => found.get(name)!
  return {
    values: Object.fromEntries(SETTING_NAMES.map((name) => [name, readValue(name, sourceOf(name))])) as SettingValues,
    where: (name) => sourceOf(name).label,
    isSet: (name) => sourceOf(name).from !== 'default',
    isFlag: (name) => sourceOf(name).from === 'flag',
    toAbsolute: (name, relative) => path.resolve(baseOf(sourceOf(name), sources, file), relative),
  }
}

export function toFlagText(flag: unknown, separator = ','): string | null {
  if (flag === undefined) return null
  return Array.isArray(flag) ? flag.join(separator) : String(flag)
}

function findSource(name: SettingName, { flags, env, isMeant }: SettingSources, file: ConfigFile | null): Source {
  const unset: Source = { from: 'default', text: SETTINGS[name].fallback, label: 'the default' }
  if (isMeant?.(name) === false) return unset
  const flagText = toFlagText(flags[name], separatorOf(name))
  if (flagText !== null) return { from: 'flag', text: flagText, label: flagOf(name) ?? name }
  const envText = env[envOf(name)]
  if (envText !== undefined) return { from: 'environment', text: envText, label: envOf(name) }
  const fileText = file?.texts.get(name)
  if (file !== null && fileText !== undefined) return { from: 'file', text: fileText, label: path.basename(file.path) }
  return unset
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

function baseOf(source: Source, { cwd }: SettingSources, file: ConfigFile | null): string {
  // The default folder is relative to the config file too, so that it does not depend on where the service is started.
  const besideFile = file !== null && (source.from === 'file' || source.from === 'default')
  return besideFile ? path.dirname(file.path) : cwd
}
