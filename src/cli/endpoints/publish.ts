/** `atelier endpoints publish|preview|import`: from a file to an address that can be called. */

import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parse } from 'yaml'
import { isJsonObject, type JsonObject, type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { ENV } from '../../config/env.ts'
import type { RunClient } from '../server/client.ts'
import { type Options, type Said, textOf } from '../server/server-commands.ts'
import { CommandError, EXIT, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { askEndpoints, type DraftWire, type PublishedWire } from './endpoint-api.ts'
import {
  toCurl,
  toDifferenceLines,
  toFindingLines,
  toInputTable,
  toOutputLine,
  toReleaseLines,
} from './endpoint-text.ts'

export async function publish(
  client: RunClient,
  [name, file]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  return send(client, { name, ...readFiles(file, options, terminal), ...readTexts(options) }, { options, terminal })
}

export async function preview(
  client: RunClient,
  [file]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const body = readFiles(file, options, terminal)
  const answer = await askEndpoints<DraftWire>(client, '/preview', { method: 'POST', body })
  const { inputs, outputs, candidates, warnings, missing } = answer
  const others = candidates.map((input) => input.name).join(', ')
  return {
    answer,
    lines: [
      ...[toInputTable(inputs), toOutputLine(outputs)],
      ...(others === '' ? [] : ['', `could be inputs, if a declaration says so: ${others}`]),
      ...toFindingLines(warnings, missing),
    ],
  }
}

/** What `export` wrote is published as it was; flags win over what is in the file. */
export async function importFile(
  client: RunClient,
  [file]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const content = readJsonFile(file, terminal.cwd)
  const { atelier_endpoint: format, name: own, title, description, tool, models, version } = content
  if (format !== 1 || !isJsonObject(version))
    throw new CommandError(toPrintable(`${file} is not a file that atelier endpoints export wrote`), EXIT.usage)
  const name = textOf(options, 'name') ?? own
  const note = version['note'] ?? ''
  const kept = Object.fromEntries(
    Object.entries({ title, description, tool, models, note }).filter(([, value]) => value !== undefined),
  )
  return send(client, { ...kept, ...readTexts(options), name, file: content }, { options, terminal })
}

function readFiles(file: string, options: Options, { cwd, stderr }: Terminal): JsonObject {
  const content = readPublishFile(file, cwd)
  const declared = textOf(options, 'declare')
  const beside = declared === null ? findDeclaration(file, cwd) : null
  if (beside !== null) printLine(stderr, toPrintable(`inputs as ${beside} says`))
  const declaration = declared ?? beside
  return { file: content, ...(declaration !== null && { declaration: readDeclaration(declaration, cwd) }) }
}

function readTexts(options: Options): JsonObject {
  const texts: JsonObject = {}
  for (const name of ['title', 'description', 'note', 'deployment']) {
    const text = textOf(options, name)
    if (text !== null) texts[name] = text
  }
  // Commander sets what a --no- flag stands for to true when it is not there.
  return {
    ...texts,
    ...(options['breaking'] === true && { breaking: true }),
    ...(options['pinRelease'] === true && { pin_release: true }),
    ...(options['tool'] === false && { tool: false }),
  }
}

async function send(
  client: RunClient,
  body: JsonObject,
  { options, terminal }: { readonly options: Options; readonly terminal: Terminal },
): Promise<Said> {
  const answer = await askEndpoints<PublishedWire>(client, '', { method: 'POST', body })
  const { endpoint, version, is_new: isNew, differences, warnings, missing } = answer
  const { name, state, urls } = endpoint
  const environment = terminal.env[ENV.token]
  const token = textOf(options, 'token') ?? environment ?? null
  const lines = [
    isNew
      ? `${name} version ${version.version} is published`
      : `${name} has this already as version ${version.version}, which is current now`,
    `address: ${urls.runs}`,
    ...toReleaseLines(version),
    ...['', toInputTable(version.inputs), toOutputLine(version.outputs), ''],
    ...toDifferenceLines(differences),
    ...toFindingLines(warnings, missing),
    ...(state === 'blocked' ? ['It cannot run until an engine has what is missing.'] : []),
    ...(state === 'stopped' ? [`It takes no calls until: atelier endpoints start ${name}`] : []),
    ...(token !== null && token !== environment ? [`export ${ENV.token}=…   # your key, for the next line`] : []),
    toCurl({ url: urls.runs, inputs: version.inputs, hasToken: token !== null }),
  ]
  return { answer, lines }
}

/** A workflow as an object; any other file, which has to carry one, as a `data:` address. */
function readPublishFile(file: string, cwd: string): JsonObject | string {
  const bytes = readBytes(file, cwd)
  const text = bytes
    .subarray(0, 64)
    .toString('utf8')
    .replace(/^\ufeff/, '')
  if (!text.trimStart().startsWith('{')) return `data:application/octet-stream;base64,${bytes.toString('base64')}`
  return readJsonFile(file, cwd)
}

function readJsonFile(file: string, cwd: string): JsonObject {
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
function findDeclaration(file: string, cwd: string): string | null {
  const { dir, name } = path.parse(file)
  const names = [file, path.join(dir, `${name}.endpoint`)].flatMap((base) => [`${base}.yaml`, `${base}.yml`])
  const found = names.filter((each) => existsSync(path.resolve(cwd, each)))
  if (found.length > 1) throw refuse(`${found.join(' and ')} both say something of ${file}: name one with --declare`)
  return found[0] ?? null
}

function readDeclaration(file: string, cwd: string): JsonObject {
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
