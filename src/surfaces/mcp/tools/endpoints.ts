/**
 * One tool for each endpoint that its owner offers to agents: `run_<name>`, with the endpoint's own inputs as its arguments. The
 * list is made anew for every request, so it follows what is published.
 */
import { randomUUID } from 'node:crypto'
import { ENDED } from '../job-text.ts'
import { ApiRefusal, readBytes, type ServiceApi, toFields } from '../service-api.ts'
import { json, readWaitMs, type Tool, type ToolCall, type ToolContent, ToolError } from '../tool.ts'
import { showAsset } from './files.ts'
import { watchJob } from './jobs.ts'

type Fields = Readonly<Record<string, unknown>>

const MAX_TOOLS = 100
const MAX_PAGES = 20
// What clients take as the name of a tool.
const MAX_NAME = 64
const MAX_DOCUMENT_BYTES = 16_777_216
const MAX_SHOWN = 8
const MAX_LINKS = 20
const MAX_DESCRIPTION = 2_000

/** By the names of their tools. `taken`: names of other tools. Throws ApiRefusal, for a key that may not list them. */
async function readEndpoints(api: ServiceApi, taken: ReadonlySet<string>, signal: AbortSignal) {
  const found: string[] = []
  let after = ''
  for (let page = 0; page < MAX_PAGES && found.length < MAX_TOOLS; page++) {
    const query = new URLSearchParams({ limit: '100', ...(after !== '' && { after }) })
    const answer = toFields(await (await api.call(`/api/v2/endpoints?${query}`, { signal })).json())
    const list = (Array.isArray(answer['endpoints']) ? answer['endpoints'] : []).map(toFields)
    found.push(
      ...list.filter(({ tool, state }) => tool === true && state !== 'stopped').map(({ name }) => String(name)),
    )
    after = String(list.at(-1)?.['name'] ?? '')
    if (answer['has_more'] !== true || after === '') break
  }
  return nameTools(found.slice(0, MAX_TOOLS), taken)
}

/** Names that are too long or taken get a number; those that need none are given first. */
export function nameTools(endpoints: readonly string[], taken: ReadonlySet<string>): Map<string, string> {
  const named = new Map<string, string>()
  const isFree = (name: string) => !taken.has(name) && !named.has(name)
  const plain = (endpoint: string) => `run_${endpoint.replaceAll('-', '_')}`
  const others: string[] = []
  for (const endpoint of endpoints) {
    const name = plain(endpoint)
    if (name.length <= MAX_NAME && isFree(name)) named.set(name, endpoint)
    else others.push(endpoint)
  }
  for (const endpoint of others) {
    for (let number = 2; ; number++) {
      const name = `${plain(endpoint).slice(0, MAX_NAME - String(number).length - 1)}_${number}`
      if (!isFree(name)) continue
      named.set(name, endpoint)
      break
    }
  }
  return named
}

/** None for a key that may not list endpoints, and for a service that has none. */
export async function listEndpointTools(
  api: ServiceApi,
  taken: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<Tool[]> {
  try {
    const named = await readEndpoints(api, taken, signal)
    if (named.size === 0) return []
    const all = await describe(api, '/api/v2/endpoints/openapi.json', signal)
    const tools: Tool[] = []
    let left = MAX_DOCUMENT_BYTES
    for (const [tool, endpoint] of named) {
      let operation = all.operations.get(endpoint)
      // The document of all has only so many.
      if (operation === undefined && left > 0) {
        const own = await describe(api, `/api/v2/endpoints/${endpoint}/openapi.json`, signal)
        operation = own.operations.get(endpoint)
        left -= own.length
      }
      if (operation !== undefined) tools.push(toTool(tool, endpoint, operation))
    }
    return tools
  } catch (error) {
    if (error instanceof ApiRefusal) return []
    throw error
  }
}

/** null: there is no such tool. */
export async function findEndpointTool(
  api: ServiceApi,
  { name, taken, signal }: { readonly name: string; readonly taken: ReadonlySet<string>; readonly signal: AbortSignal },
): Promise<Tool | null> {
  if (!/^run_[a-z0-9_]{1,60}$/.test(name)) return null
  try {
    const endpoint = (await readEndpoints(api, taken, signal)).get(name)
    return endpoint === undefined ? null : toTool(name, endpoint, {})
  } catch (error) {
    // A key may be allowed to run what it may not list.
    if (!(error instanceof ApiRefusal && error.status === 403)) throw error
    return toTool(name, name.slice('run_'.length).replaceAll('_', '-'), {})
  }
}

interface Described {
  /** The operations that run endpoints, by the endpoint's name. */
  readonly operations: ReadonlyMap<string, Fields>
  readonly length: number
}

async function describe(api: ServiceApi, path: string, signal: AbortSignal): Promise<Described> {
  const bytes = await readBytes(await api.call(path, { signal }), MAX_DOCUMENT_BYTES)
  const document = bytes === null ? {} : toFields(JSON.parse(bytes.toString('utf8')))
  const operations = Object.entries(toFields(document['paths'])).flatMap(([at, methods]): [string, Fields][] => {
    const endpoint = /\/endpoints\/([a-z0-9-]+)\/runs$/.exec(at)?.[1]
    return endpoint === undefined ? [] : [[endpoint, toFields(toFields(methods)['post'])]]
  })
  return { operations: new Map(operations), length: bytes?.length ?? MAX_DOCUMENT_BYTES }
}

function toTool(name: string, endpoint: string, operation: Fields): Tool {
  const { summary, description } = operation
  const inputs = toFields(membersOf(operation['requestBody'])['inputs'])
  const [, own] = (schemaOf(toFields(operation['responses'])['200'])['allOf'] as unknown[] | undefined) ?? []
  const outputs = Object.entries(toFields(toFields(toFields(toFields(own)['properties'])['results'])['properties']))
  const makes = outputs
    .map(([output, schema]) => `${output} (${String(toFields(schema)['title'] ?? output)})`)
    .join(', ')
  const said = [summary, description].filter((text) => typeof text === 'string' && text !== '').join('. ')
  return {
    name,
    title: String(summary ?? endpoint),
    description: `${said.slice(0, MAX_DESCRIPTION)}\nRuns the endpoint ${endpoint}, which may cost money, and gives what it makes: ${makes || 'nothing that is named'}.`,
    properties: toFields(inputs['properties']) as Record<string, object>,
    required: Array.isArray(inputs['required']) ? inputs['required'].map(String) : [],
    isReadOnly: false,
    run: (input, call) => runEndpoint(endpoint, input, call),
  }
}

function schemaOf(message: unknown): Fields {
  const [content] = Object.values(toFields(toFields(message)['content']))
  return toFields(toFields(content)['schema'])
}

function membersOf(message: unknown): Fields {
  return toFields(schemaOf(message)['properties'])
}

async function runEndpoint(endpoint: string, inputs: Fields, call: ToolCall): Promise<readonly ToolContent[]> {
  const { api, signal } = call
  const runs = `/api/v2/endpoints/${endpoint}/runs`
  const headers = { 'Idempotency-Key': randomUUID() }
  const submitted = await api.call(runs, { method: 'POST', headers, body: JSON.stringify({ inputs }), signal })
  const { id } = toFields(await submitted.json())
  const path = `${runs}/${encodeURIComponent(String(id))}`
  const run = toFields(await watchJob(path, call, readWaitMs({}), `/api/v2/jobs/${String(id)}`))
  const { status, error, results, inputs: used, endpoint: version } = run
  const facts = { job_id: id, status, endpoint: version, inputs: used }
  if (!ENDED.has(status)) return [json({ ...facts, next: 'it goes on; wait for it with watch_job' })]
  if (status !== 'succeeded') {
    const { code = status, message = '' } = toFields(error)
    throw new ToolError(`the run ${String(id)} ${String(status)}: ${String(code)}: ${String(message)}`)
  }
  const outputs = Object.entries(toFields(results)).flatMap(([name, files]) =>
    (Array.isArray(files) ? files : []).map((file) => ({ name, file: toFields(file) })),
  )
  const told = outputs.map(({ name, file }) => ({
    ...{ output: name, asset_id: file['id'], name: file['name'], content_type: file['content_type'] },
    ...{ size_bytes: file['size_bytes'], url: api.toPublicUrl(String(file['url'])) },
  }))
  const content: ToolContent[] = []
  for (const [index, { file }] of outputs.slice(0, MAX_LINKS).entries())
    content.push(...(await show(file, call, index < MAX_SHOWN)))
  return [json({ ...facts, outputs: told }), ...content]
}

/** A key that may run endpoints, but not read assets, gets the links. */
async function show(file: Fields, call: ToolCall, isShown: boolean): Promise<readonly ToolContent[]> {
  try {
    return await showAsset(file, call, { isShown })
  } catch (error) {
    if (!(error instanceof ApiRefusal)) throw error
    return showAsset(file, call, { isShown: false })
  }
}
