/**
 * Reads atelier.config.json into texts, one per setting. A file that is not JSON or has an unknown key stops the start: a setting
 * that is silently ignored is worse than none.
 */
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { ConfigError, positionIn, quote } from './config-error.ts'
import { suggest } from './readers/read-choice.ts'
import { RETIRED } from './settings/retired.ts'
import { SETTING_NAMES, SETTINGS, type SettingName, separatorOf } from './settings/settings.ts'

const CONFIG_FILE_NAME = 'atelier.config.json'
// About a hundred times the size of a file with every setting.
const MAX_FILE_BYTES = 1_048_576

export interface ConfigFile {
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
      texts.set(key, typeof value === 'string' ? value : JSON.stringify(value))
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
