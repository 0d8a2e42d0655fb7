/** `atelier run NAME --prompt …`: calls an endpoint, with flags made from its schema, and gets what it makes. */
import path from 'node:path'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import { askEndpoints, pathOf } from '../endpoints/endpoint-api.ts'
import { toShown } from '../endpoints/endpoint-text.ts'
import { type ClientOptions, RunClient } from '../server/client.ts'
import { readJob, toFields } from '../server/job-answers.ts'
import type { RunContext, RunRequest } from '../server/request.ts'
import { CommandError, EXIT, printLine, toPrintable } from '../terminal.ts'
import { readFlags, readNamedInput, toInputs } from './endpoint-flags.ts'
import { finishBatch, readFile } from './run-batch.ts'
import { finishJob, upload } from './run-remote.ts'
import { readTable } from './table.ts'

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
  const answer = toFields(await client.post(runs, { inputs }, signal))
  const used = toFields(answer['inputs'])
  const made = { endpoint: answer['endpoint'], inputs: used } as unknown as JsonObject
  // The runs of an endpoint may be read by whoever may run it, and other jobs perhaps not.
  const job = { ...readJob(answer), selfLink: `/endpoints${pathOf(name, 'runs')}/${String(answer['id'])}` }
  if (!request.wait) {
    const told = { id: job.id, status: job.status, ...made, url: job.selfLink }
    printLine(terminal.stdout, request.json ? JSON.stringify(told) : job.id)
    return EXIT.ok
  }
  display.say(tellUsed(name, made, inputs))
  return finishJob(client, job, { ...request, more: made }, context)
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
