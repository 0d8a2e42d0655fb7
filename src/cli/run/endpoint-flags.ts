/**
 * Flags that are made from the schema of an endpoint: `--negative-prompt …` (or `--negative_prompt …`) sets the input `negative_prompt`.
 * Values become what the schema says as far as that is possible; the service checks them, so that every mistake is told at once.
 */
import { statSync } from 'node:fs'
import path from 'node:path'
import { isJsonObject, type JsonObject, type JsonValue, keepNumber } from '../../../lib/json/lossless-json.ts'
import { CommandError, EXIT, toPrintable } from '../terminal.ts'

/** A value for an input, as it stands on the command line. true: a flag without a value. */
interface GivenInput {
  readonly name: string
  readonly text: string | boolean
  /** As `@file`: it has to be a file. */
  readonly isFile?: boolean
}

/** `rest`: what the command did not know itself. `schema`: that of the inputs. */
export function readFlags(rest: readonly string[], schema: JsonObject): GivenInput[] {
  const given: GivenInput[] = []
  for (let at = 0; at < rest.length; at++) {
    const [flag, inline] = splitAt(rest[at], '=')
    if (!/^--[A-Za-z]/.test(flag)) throw refuse(`${JSON.stringify(rest[at])} is not of the form --input-name value`)
    const { name, isNegated } = nameOf(flag, schema)
    if (inline !== null || isNegated) {
      given.push({ name, text: isNegated ? false : (inline ?? '') })
      continue
    }
    const next = rest.at(at + 1) ?? null
    const isValue =
      next !== null && (typeOf(schema, name) === 'boolean' ? /^(true|false)$/.test(next) : !/^--[A-Za-z]/.test(next))
    if (isValue) at += 1
    given.push({ name, text: isValue ? next : true })
  }
  return given
}

/** `--input name=value`, for names that are flags of the command already. `@` before a value names a file, `@@` stands for one @. */
export function readNamedInput(text: string): GivenInput {
  const [name, value] = splitAt(text, '=')
  if (value === null) throw refuse(`--input ${JSON.stringify(text)} is not of the form name=value`)
  if (value.startsWith('@@')) return { name, text: value.slice(1) }
  return value.startsWith('@') ? { name, text: value.slice(1), isFile: true } : { name, text: value }
}

function splitAt(text: string, sign: string): [string, string | null] {
  const at = text.indexOf(sign)
  return at === -1 ? [text, null] : [text.slice(0, at), text.slice(at + 1)]
}

/** A name that no input has is passed on: the service knows which one was meant. */
function nameOf(flag: string, schema: JsonObject): { readonly name: string; readonly isNegated: boolean } {
  const name = flag.slice(2).replaceAll('-', '_')
  const positive = name.startsWith('no_') ? name.slice(3) : null
  const isNegated = positive !== null && propertyOf(schema, name) === null && typeOf(schema, positive) === 'boolean'
  return isNegated ? { name: positive, isNegated } : { name, isNegated }
}

function propertyOf(schema: JsonObject, name: string): JsonObject | null {
  const { properties } = schema
  const property = isJsonObject(properties) && Object.hasOwn(properties, name) ? properties[name] : null
  return isJsonObject(property) ? property : null
}

function typeOf(schema: JsonObject, name: string): JsonValue {
  return propertyOf(schema, name)?.['type'] ?? null
}

type Upload = (file: string) => Promise<JsonValue>

/** The object of inputs. A file of this machine is uploaded; `upload` gives what stands for it. */
export async function toInputs(
  given: readonly GivenInput[],
  schema: JsonObject,
  { cwd, upload }: { readonly cwd: string; readonly upload: Upload },
): Promise<JsonObject> {
  const inputs: JsonObject = {}
  for (const { name, text, isFile = false } of given) {
    if (Object.hasOwn(inputs, name)) throw refuse(`${name} is given twice`)
    const property = propertyOf(schema, name)
    const takesFile = isFile || property?.['contentMediaType'] !== undefined
    const isLocal = takesFile && typeof text === 'string' && (isFile || isFileHere(text, cwd))
    inputs[name] = isLocal ? await upload(text) : toValue(text, property)
  }
  return inputs
}

function isFileHere(text: string, cwd: string): boolean {
  if (/^(https?|data):/i.test(text)) return false
  try {
    return statSync(path.resolve(cwd, text)).isFile()
  } catch {
    // Not there, or no name that a file could have: perhaps the id of an asset.
    return false
  }
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

function toValue(text: string | boolean, property: JsonObject | null): JsonValue {
  if (typeof text === 'boolean' || property === null) return text
  const { type, enum: choices } = property
  if (Array.isArray(choices)) return choices.find((choice) => String(choice) === text) ?? text
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return (type === 'integer' || type === 'number') && NUMBER.test(text) ? keepNumber(text) : text
}

function refuse(message: string): CommandError {
  return new CommandError(toPrintable(message), EXIT.usage)
}
