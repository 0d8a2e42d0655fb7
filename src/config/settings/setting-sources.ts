/**
 * Finds where each setting comes from and reads it. Flags win over the environment, the environment over the config file, the file
 * over the defaults. Messages name the source, so that a wrong value is found where it stands. A file that is not JSON or has an
 * unknown key stops the start: a setting that is silently ignored is worse than none.
 */
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { ConfigError, positionIn, quote } from '../config-error.ts'
import { ENV } from '../env.ts'
import { suggest } from '../readers/read-choice.ts'
import { describeRetired, foldedInto, RETIRED, successorOf } from './retired.ts'
import type { ConfigWarning, Environment } from './setting.ts'
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
  /** Whether it is given and differs from its default: to write `none` where nothing is the default is to leave it out. */
  readonly isSet: (name: SettingName) => boolean
  /** Whether it stands on the command line, which other users of the machine can see. */
  readonly isFlag: (name: SettingName) => boolean
  readonly toAbsolute: ToAbsolute
  /** One for each setting of an earlier version that is still given. */
  readonly warnings: readonly ConfigWarning[]
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
  const isMeant = (name: SettingName) => sources.isMeant?.(name) !== false
  const findOwn = (name: SettingName) => (isMeant(name) ? find(name, ENV[name], separatorOf(name)) : null)
  const found = new Map(
    SETTING_NAMES.map((name) => {
      const own = findOwn(name)
      const given = (isMeant(name) ? gather(name, retired, own) : null) ?? own
      return [name, given ?? ({ from: 'default', text: SETTINGS[name].fallback, label: 'the default' } as const)]
    }),
  )
  const sourceOf = (name: SettingName) => found.get(name)!
  const readValue = (name: SettingName) =>
    readOrRefuse(name, sourceOf(name), SETTINGS[name].read, 'isSecret' in SETTINGS[name])
  function warningsOf([name, source]: readonly [string, Source]): ConfigWarning[] {
    const successor = successorOf(name)
    if (successor !== null && !isMeant(successor)) return []
    const own = successor === null ? null : findOwn(successor)
    return [describeRetired(name, source, { label: own?.label ?? null, wins: own !== null && !winsOver(source, own) })]
  }
  return {
    values: Object.fromEntries(SETTING_NAMES.map((name) => [name, readValue(name)])) as SettingValues,
    where: (name) => sourceOf(name).label,
    isSet: (name) => sourceOf(name).text !== SETTINGS[name].fallback,
    isFlag: (name) => sourceOf(name).from === 'flag',
    toAbsolute: (name, relative) => path.resolve(baseOf(sourceOf(name), sources, file), relative),
    warnings: [...retired].flatMap(warningsOf),
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

const RANK = { flag: 3, environment: 2, file: 1, default: 0 } as const

function winsOver(one: Source, other: Source | null): boolean {
  return other === null || RANK[one.from] > RANK[other.from]
}

/**
 * The value of a setting out of the retired ones that became part of it. Of those, the ones count that stand in a source which wins
 * over the one where the setting itself is given.
 */
function gather(name: SettingName, retired: ReadonlyMap<string, Source>, own: Source | null): Source | null {
  const given = foldedInto(name).flatMap(([old, { member, check }]) => {
    const source = retired.get(old)
    if (source === undefined || !winsOver(source, own)) return []
    readOrRefuse(old, source, check ?? String)
    return source.text === 'none' ? [] : [{ source, member }]
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

function readOrRefuse(name: string, source: Source, read: (text: string) => unknown, isSecret = false): unknown {
  try {
    return read(source.text)
  } catch (error) {
    // A malformed secret may still reveal the real one, so it is not shown.
    const shown = isSecret ? '' : ` = ${quote(source.text)}`
    throw new ConfigError(`${name}${shown} (from ${source.label}) ${(error as Error).message}`)
  }
}

function baseOf(source: Source, { cwd }: SettingSources, file: ConfigFile | null): string {
  // The default folder is relative to the config file too, so that it does not depend on where the service is started.
  const besideFile = file !== null && (source.from === 'file' || source.from === 'default')
  return besideFile ? path.dirname(file.path) : cwd
}

const CONFIG_FILE_NAME = 'atelier.config.json'
// About a hundred times the size of a file with every setting.
const MAX_FILE_BYTES = 1_048_576

interface ConfigFile {
  readonly path: string
  /** By the name of a setting, those of earlier versions included. */
  readonly texts: ReadonlyMap<string, string>
}

/** The file that was asked for, else the one in the working directory if there is one. */
export function readConfigFile(asked: string | null, cwd: string): ConfigFile | null {
  const file = path.resolve(cwd, asked ?? CONFIG_FILE_NAME)
  const stat = statSync(file, { throwIfNoEntry: false })
  if (stat === undefined) {
    if (asked === null) return null
    throw new ConfigError(`config file ${quote(file)} does not exist; create it or correct the path`)
  }
  if (!stat.isFile() || stat.size > MAX_FILE_BYTES) {
    throw new ConfigError(`config file ${quote(file)} is not a file of at most 1 MiB; give a JSON file`)
  }
  return { path: file, texts: toTexts(parseObject(readFileSync(file, 'utf8'), file), file) }
}

function parseObject(text: string, file: string): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new ConfigError(`config file ${quote(file)} is not valid JSON${positionIn(error)}; fix it or remove it`)
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new ConfigError(`config file ${quote(file)} must hold one JSON object, such as {"port": 8189}`)
}

function toTexts(object: Readonly<Record<string, unknown>>, file: string): Map<string, string> {
  const texts = new Map<string, string>()
  for (const [key, value] of Object.entries(object)) {
    if (key === '$schema') continue
    if (Object.hasOwn(RETIRED, key)) {
      texts.set(key, typeof value === 'string' ? value : Array.isArray(value) ? value.join(',') : JSON.stringify(value))
      continue
    }
    const name = SETTING_NAMES.find((known) => known === key)
    if (name === undefined) {
      const hint = suggest(key, SETTING_NAMES) || '; docs/config.md lists all settings'
      throw new ConfigError(`config file ${quote(file)} has the unknown setting ${quote(key)}${hint}`)
    }
    texts.set(name, toText(name, value, file))
  }
  return texts
}

/** The text that a flag would carry. Lists may be JSON arrays of strings. */
function toText(name: SettingName, value: unknown, file: string): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const separator = separatorOf(name)
  const isItem = (item: unknown) => typeof item === 'string' && !item.includes(separator)
  if (Array.isArray(value) && value.every(isItem)) return value.join(separator)
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (isObject && 'isBlock' in SETTINGS[name]) return JSON.stringify(value)
  const shown = 'isSecret' in SETTINGS[name] ? 'a value' : quote(JSON.stringify(value))
  throw new ConfigError(
    `${name} in ${quote(file)} has ${shown} that is no text, number, switch or list of texts; see docs/config.md`,
  )
}
