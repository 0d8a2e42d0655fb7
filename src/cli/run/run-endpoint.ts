/** `atelier run NAME --prompt …`: calls an endpoint, with flags made from its schema, and gets what it makes. */

import { statSync } from 'node:fs'
import path from 'node:path'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  keepNumber,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { askEndpoints, pathOf } from '../endpoints/endpoint-api.ts'
import { toShown } from '../endpoints/endpoint-text.ts'
import { type ClientOptions, RunClient } from '../server/client.ts'
import { readJob, toFields } from '../server/job-answers.ts'
import type { RunContext, RunRequest } from '../server/request.ts'
import { CommandError, EXIT, printLine, toPrintable } from '../terminal.ts'
import { finishBatch, readFile } from './run-batch.ts'
import { finishJob, upload } from './run-remote.ts'
import { readTable } from './table.ts'

/** A value for an input, as it stands on the command line. true: a flag without a value. */
interface GivenInput {
  readonly name: string
  readonly text: string | boolean
  /** As `@file`: it has to be a file. */
  readonly isFile?: boolean
}

/** `rest`: what the command did not know itself. `schema`: that of the inputs. */
function readFlags(rest: readonly string[], schema: JsonObject): GivenInput[] {
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
function readNamedInput(text: string): GivenInput {
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
async function toInputs(
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

export interface EndpointRequest extends RunRequest {
  /** What the command did not know itself: flags of the endpoint. */
  readonly rest: readonly string[]
  readonly version: string | null
  readonly wait: boolean
}

/** What an endpoint can be called, with its owner before it where that is another account; files have dots. */
export const REFERENCE =
  /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\/)?[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:@[a-z0-9-]{1,32})?$/

/** Returns the exit code. */
export async function runEndpoint(
  request: EndpointRequest,
  server: ClientOptions,
  context: RunContext,
): Promise<number> {
  const { terminal, signal, display } = context
  const { file: reference, batch = null } = request
  const [name, inName = null] = reference.split('@')
  if (inName !== null && request.version !== null)
    throw new CommandError(`${reference} names a version already; leave --version out`, EXIT.usage)
  const version = inName ?? request.version
  const client = new RunClient(server)
  const query = version === null ? '' : `?${new URLSearchParams({ version })}`
  const schema = await askEndpoints<JsonObject>(client, `${pathOf(name, 'schema')}${query}`)
  const files = new Map<string, Promise<JsonValue>>()
  const uploadOnce = (file: string) => {
    const known = files.get(file) ?? upload(client, file, context)
    files.set(file, known)
    return known
  }
  const given = [...request.inputs.map(readNamedInput), ...readFlags(request.rest, schema)]
  const read = (more: typeof given) => toInputs([...given, ...more], schema, { cwd: terminal.cwd, upload: uploadOnce })
  const runs = `/endpoints${pathOf(version === null ? name : `${name}@${version}`, 'runs')}`
  if (batch !== null) {
    const items: JsonObject[] = []
    for (const row of readRows(batch, terminal.cwd)) items.push(await read(row))
    const answer = await client.post(`${runs}/batch`, { items }, signal)
    return finishBatch(client, answer, { ...request, count: items.length }, context)
  }
  const inputs = await read([])
  const made = readJob(await client.post(runs, { inputs }, signal))
  // The runs of an endpoint may be read by whoever may run it, and other jobs perhaps not.
  const job = { ...made, selfLink: `/endpoints${pathOf(name, 'runs')}/${made.id}` }
  if (!request.wait) {
    printLine(terminal.stdout, request.json ? stringifyLosslessJson(job.answer) : job.id)
    return EXIT.ok
  }
  display.say(tellUsed(name, job.answer, inputs))
  return finishJob(client, job, request, context)
}

/** The version that runs, and the values that the caller did not give: defaults, and seeds that were drawn. */
function tellUsed(name: string, { endpoint, inputs }: JsonObject, given: JsonObject): string {
  const others = Object.entries(isJsonObject(inputs) ? inputs : {}).filter(([input]) => !Object.hasOwn(given, input))
  const shown = others.map(([input, value]) => `${input}=${toShown(value).replaceAll(/\s+/g, ' ').slice(0, 40)}`)
  return toPrintable(
    `${name} version ${toFields(endpoint)['version']}${shown.length === 0 ? '' : `, with ${shown.join(' ')}`}`,
  )
}

/** Of a table whose first line names inputs; an empty field is left out. */
function readRows(file: string, cwd: string) {
  const { names, rows } = readTable(readFile(path.resolve(cwd, file), file), file)
  return rows.map((row) =>
    names.flatMap((name, index) => (row[index] === '' ? [] : [{ name: name.trim(), text: row[index] }])),
  )
}
