/** What is published: the file with the workflow, and what its author says of inputs and outputs in a YAML file beside it. */
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parse } from 'yaml'
import { isJsonObject, type JsonObject, type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { CommandError, EXIT, toPrintable } from '../terminal.ts'

/** A workflow as an object; any other file, which has to carry one, as a `data:` address. */
export function readPublishFile(file: string, cwd: string): JsonObject | string {
  const bytes = readBytes(file, cwd)
  const text = bytes
    .subarray(0, 64)
    .toString('utf8')
    .replace(/^\ufeff/, '')
  if (!text.trimStart().startsWith('{')) return `data:application/octet-stream;base64,${bytes.toString('base64')}`
  return readJsonFile(file, cwd)
}

export function readJsonFile(file: string, cwd: string): JsonObject {
  try {
    const content = parseLosslessJson(
      readBytes(file, cwd)
        .toString('utf8')
        .replace(/^\ufeff/, ''),
    )
    if (isJsonObject(content)) return content
    throw new Error('it must be a JSON object')
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw refuse(`${file} is not valid JSON: ${(error as Error).message}`)
  }
}

function readBytes(file: string, cwd: string): Buffer {
  try {
    return readFileSync(path.resolve(cwd, file))
  } catch (error) {
    throw refuse(`cannot read ${file}: ${(error as Error).message}`)
  }
}

/** The declaration of a file: the one beside it, or none. `flow.json` has `flow.json.yaml` or `flow.endpoint.yaml`. */
export function findDeclaration(file: string, cwd: string): string | null {
  const { dir, name } = path.parse(file)
  const names = [file, path.join(dir, `${name}.endpoint`)].flatMap((base) => [`${base}.yaml`, `${base}.yml`])
  const found = names.filter((each) => existsSync(path.resolve(cwd, each)))
  if (found.length > 1) throw refuse(`${found.join(' and ')} both say something of ${file}: name one with --declare`)
  return found[0] ?? null
}

export function readDeclaration(file: string, cwd: string): JsonObject {
  const text = readBytes(file, cwd).toString('utf8')
  let content: unknown
  try {
    // Every integer exactly; those that JavaScript can write become numbers again.
    content = parse(text, { intAsBigInt: true })
  } catch (error) {
    throw refuse(`${file} is not valid YAML: ${String((error as Error).message).split('\n')[0]}`)
  }
  const declaration = toJson(content ?? {}, file)
  if (!isJsonObject(declaration)) throw refuse(`${file} must be an object with title, inputs, outputs …`)
  return declaration
}

function toJson(value: unknown, file: string): JsonValue {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value
  if (Array.isArray(value)) return value.map((each) => toJson(each, file))
  if (typeof value === 'object' && value !== null) {
    if (Object.getPrototypeOf(value) !== Object.prototype) throw refuse(`${file} holds a value that JSON does not have`)
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, toJson(each, file)]))
  }
  const isPlain = value === null || typeof value === 'string' || typeof value === 'boolean'
  if (isPlain || (typeof value === 'number' && Number.isFinite(value))) return value
  throw refuse(`${file} holds a value that JSON does not have: ${String(value)}`)
}

function refuse(message: string): CommandError {
  return new CommandError(toPrintable(message), EXIT.usage)
}
