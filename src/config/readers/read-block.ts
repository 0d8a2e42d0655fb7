/** Reads a setting that is a whole object: inline in the config file, or in a JSON file of its own. */
import { readFileSync, statSync } from 'node:fs'
import { ConfigError, positionIn, quote } from '../config-error.ts'
import type { SettingName } from '../env.ts'
import { readPath } from './read-choice.ts'

type Block = { readonly kind: 'inline'; readonly value: object } | { readonly kind: 'file'; readonly path: string }

// Room for ten thousand node names in each of a hundred tiers.
const MAX_FILE_BYTES = 64 * 2 ** 20

export function readBlock(text: string): Block {
  if (!text.trimStart().startsWith('{')) return { kind: 'file', path: readPath(text) }
  try {
    return { kind: 'inline', value: JSON.parse(text) as object }
  } catch {
    throw new Error('is not valid JSON; give an object or the name of a JSON file')
  }
}

/** The object itself; its content is checked by the code that uses it. */
export function loadBlock(
  block: Block | null,
  {
    name,
    toAbsolute,
  }: { readonly name: SettingName; readonly toAbsolute: (name: SettingName, path: string) => string },
): object | null {
  if (block === null) return null
  if (block.kind === 'inline') return block.value
  const path = toAbsolute(name, block.path)
  const value = parse(readText(path, name), path, name)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new ConfigError(`${name}: the file ${quote(path)} must hold one JSON object`)
}

function readText(path: string, name: SettingName): string {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat?.isFile() === true && stat.size <= MAX_FILE_BYTES) return readFileSync(path, 'utf8')
  throw new ConfigError(`${name}: there is no JSON file ${quote(path)}; create it or correct the path`)
}

function parse(text: string, path: string, name: SettingName): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ConfigError(`${name}: the file ${quote(path)} is not valid JSON${positionIn(error)}`)
  }
}
