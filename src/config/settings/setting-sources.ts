/**
 * Finds where each setting comes from and reads it. Flags win over the environment, the environment over the file, the file over
 * the defaults. Messages name the source, so that a wrong value is found where it stands.
 */
import path from 'node:path'
import { ConfigError, quote } from '../config-error.ts'
import type { ConfigFile } from '../config-file.ts'
import { ENV } from '../env.ts'
import { describeRetired, foldedInto, RETIRED } from './retired.ts'
import type { Environment } from './setting.ts'
import {
  SETTING_NAMES,
  SETTINGS,
  type SettingName,
  type SettingValues,
  separatorOf,
  toFlag,
  toVariable,
} from './settings.ts'

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
  /** One line for each setting of an earlier version that is still given. */
  readonly warnings: readonly string[]
}

interface Source {
  readonly from: 'flag' | 'environment' | 'file' | 'default'
  readonly text: string
  /** How messages name the source. */
  readonly label: string
}

/** Throws ConfigError with one line. */
export function findSettings(sources: SettingSources, file: ConfigFile | null): FoundSettings {
  const find = (name: string, variable: string, separator?: string) =>
    findGiven({ name, variable, separator }, sources, file)
  const retired = new Map(
    Object.keys(RETIRED).flatMap((name) => {
      const source = find(name, toVariable(name))
      return source === null ? [] : [[name, source] as const]
    }),
  )
  const found = new Map(
    SETTING_NAMES.map((name) => {
      const isMeant = sources.isMeant?.(name) !== false
      const given = isMeant ? (find(name, ENV[name], separatorOf(name)) ?? gather(name, retired)) : null
      return [name, given ?? ({ from: 'default', text: SETTINGS[name].fallback, label: 'the default' } as const)]
    }),
  )
  const sourceOf = (name: SettingName) => found.get(name)!
  return {
    values: Object.fromEntries(SETTING_NAMES.map((name) => [name, readValue(name, sourceOf(name))])) as SettingValues,
    where: (name) => sourceOf(name).label,
    isSet: (name) => sourceOf(name).from !== 'default',
    isFlag: (name) => sourceOf(name).from === 'flag',
    toAbsolute: (name, relative) => path.resolve(baseOf(sourceOf(name), sources, file), relative),
    warnings: [...retired].map(([name, { label }]) => describeRetired(name, label)),
  }
}

export function toFlagText(flag: unknown, separator = ','): string | null {
  if (flag === undefined) return null
  return Array.isArray(flag) ? flag.join(separator) : String(flag)
}

interface Wanted {
  readonly name: string
  readonly variable: string
  readonly separator: string | undefined
}

function findGiven(
  { name, variable, separator }: Wanted,
  { flags, env }: SettingSources,
  file: ConfigFile | null,
): Source | null {
  const flagText = toFlagText(flags[name], separator)
  if (flagText !== null) return { from: 'flag', text: flagText, label: toFlag(name) }
  const envText = env[variable]
  if (envText !== undefined) return { from: 'environment', text: envText, label: variable }
  const fileText = file?.texts.get(name)
  if (file !== null && fileText !== undefined) return { from: 'file', text: fileText, label: path.basename(file.path) }
  return null
}

/** The value of a setting out of the retired ones that became part of it. */
function gather(name: SettingName, retired: ReadonlyMap<string, Source>): Source | null {
  const given = foldedInto(name).flatMap(([old, { member }]) => {
    const source = retired.get(old)
    return source === undefined || source.text === 'none' ? [] : [{ source, member }]
  })
  const [first] = given
  if (first === undefined) return null
  const members = given.flatMap(({ source, member }) => (member === null ? [] : [[member, source.text]]))
  const text =
    members.length === 0
      ? given.map(({ source }) => source.text).join(',')
      : JSON.stringify(Object.fromEntries(members))
  return { ...first.source, text, label: given.map(({ source }) => source.label).join(' and ') }
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
