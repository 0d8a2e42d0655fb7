/**
 * Tools about models. A call is queued, never held: an agent that loses the connection asks for the result later, by the id
 * that was given out first.
 */
import { randomUUID } from 'node:crypto'
import { createBackoff, sleep } from '../../../../lib/waiting/sleep.ts'
import { MAX_SOURCE_BYTES, showPicture } from '../job-text.ts'
import { ApiRefusal, readBytes, toFields } from '../service-api.ts'
import {
  createMatch,
  json,
  readPages,
  readWaitMs,
  type Tool,
  type ToolCall,
  type ToolContent,
  ToolError,
  type ToolHost,
  type ToolInput,
  text,
  WAIT_PROPERTY,
} from '../tool.ts'

const MAX_FOUND = 50
const MAX_DOCUMENT_BYTES = 4_194_304
// Polls count against the rate of the account.
const POLLS = { firstMs: 1000, maxMs: 5000 }
const MODEL_ID = /^[\w.-]{1,64}\/[\w.-]{1,128}$/

const MODEL = { type: 'string', maxLength: 193, description: 'provider/model, as find_models gives it.' }
const INPUT = { type: 'object', description: "The model's own input; get_model_schema describes it." }
const REQUEST_ID = { type: 'string', maxLength: 64, description: 'As run_model gave it.' }

function pathOf(input: ToolInput, rest = ''): string {
  const id = String(input['model'])
  if (!MODEL_ID.test(id)) throw new ToolError('model must be provider/model, such as find_models lists them')
  return `/v2/models/${id}${rest}`
}

function requestPathOf(input: ToolInput, rest = ''): string {
  return pathOf(input, `/requests/${encodeURIComponent(String(input['request_id']))}${rest}`)
}

const findModels: Tool = {
  name: 'find_models',
  title: 'Find models',
  description: `Lists models of all providers that this account may call, at most ${MAX_FOUND}. Every word of the query must occur in provider/model. Model files of the engines are not among them: find_weights lists those.`,
  properties: { query: { type: 'string', maxLength: 200, description: 'Words, such as "flux pro".' } },
  isReadOnly: true,
  async run(input, { api, signal }) {
    const matches = createMatch(input['query'])
    const listed = { query: new URLSearchParams({ limit: '100' }), member: 'data', signal }
    const found = (await readPages(api, '/v2/models', listed)).map(({ id }) => String(id)).filter(matches)
    return [json({ found: found.length, models: found.slice(0, MAX_FOUND) })]
  },
}

const getModelSchema: Tool = {
  name: 'get_model_schema',
  title: 'Input and output of a model',
  description: "Gives the JSON Schema of a model's input and of its result.",
  properties: { model: MODEL },
  required: ['model'],
  isReadOnly: true,
  async run(input, { api, signal }) {
    const response = await api.call(pathOf(input, '/openapi.json'), { signal })
    const bytes = await readBytes(response, MAX_DOCUMENT_BYTES)
    if (bytes === null) throw new ToolError('the description of this model is too long')
    const document = toFields(JSON.parse(bytes.toString('utf8')))
    const [operations] = Object.values(toFields(document['paths'])).map(toFields)
    const { requestBody, responses } = toFields(operations?.['post'])
    const components = document['components']
    return [json({ input: schemaOf(requestBody), output: schemaOf(toFields(responses)['200']), components })]
  },
}

function schemaOf(message: unknown): unknown {
  const [content] = Object.values(toFields(toFields(message)['content']))
  return toFields(content)['schema'] ?? null
}

const estimateModel: Tool = {
  name: 'estimate_model',
  title: 'What a call would cost',
  description:
    'Checks an input as run_model does and says what the call would cost, in US dollars. Nothing is sent to the provider.',
  properties: { model: MODEL, input: INPUT },
  required: ['model', 'input'],
  isReadOnly: true,
  async run(input, { api, signal }) {
    const body = JSON.stringify(input['input'])
    return [text(await (await api.call(pathOf(input, '/estimate'), { method: 'POST', body, signal })).text())]
  },
}

const runModel: Tool = {
  name: 'run_model',
  title: 'Run a model',
  description:
    'Calls a model, which may cost money, and gives its result. A call that takes longer than wait_seconds goes on: its request_id is given instead, for get_model_result.',
  properties: { model: MODEL, input: INPUT, ...WAIT_PROPERTY },
  required: ['model', 'input'],
  isReadOnly: false,
  async run(input, call) {
    const response = await call.api.call(pathOf(input, '/requests'), {
      method: 'POST',
      headers: { 'Idempotency-Key': randomUUID() },
      body: JSON.stringify(input['input']),
      signal: call.signal,
    })
    const { request_id: requestId } = toFields(await response.json())
    return waitForResult({ ...input, request_id: requestId }, call)
  },
}

const getModelResult: Tool = {
  name: 'get_model_result',
  title: 'The result of a call',
  description: 'Gives the result of a call of run_model that had not ended, waiting for it if need be.',
  properties: { model: MODEL, request_id: REQUEST_ID, ...WAIT_PROPERTY },
  required: ['model', 'request_id'],
  isReadOnly: true,
  run: waitForResult,
}

const isUnreachable = (error: unknown) => error instanceof ApiRefusal && error.status === null

async function waitForResult(input: ToolInput, call: ToolCall): Promise<readonly ToolContent[]> {
  const { api, signal } = call
  const path = requestPathOf(input)
  const endsAt = performance.now() + readWaitMs(input)
  const polls = createBackoff(POLLS)
  for (let round = 0; ; round++) {
    const response = await api.call(path, { signal }).catch((error: unknown) => {
      // Any other refusal may be the end of the call itself.
      if (isUnreachable(error) && performance.now() < endsAt) return null
      // The call itself failed, or its id is wrong; either way the agent must know which call it was.
      if (error instanceof ApiRefusal) error.message += `\nrequest_id: ${input['request_id']}`
      throw error
    })
    if (response !== null && response.status !== 202)
      return tellResult(response, { ...call, url: api.toPublicUrl(path) })
    const { status, queue_position: position } = toFields(await response?.json())
    const where = typeof position === 'number' ? `${status}, ${position} ahead` : String(status)
    await call.tell(round, `request ${input['request_id']}: ${where}`)
    if (performance.now() >= endsAt) {
      const next = 'it goes on; ask get_model_result for its result'
      return [json({ model: input['model'], request_id: input['request_id'], status, next })]
    }
    await sleep(Math.min(polls.nextMs(), endsAt - performance.now()), signal)
    signal.throwIfAborted()
  }
}

const cancelModelCall: Tool = {
  name: 'cancel_model_call',
  title: 'Call a model call off',
  description: 'Asks for a call of run_model to stop. One that its provider already works on may still be charged.',
  properties: { model: MODEL, request_id: REQUEST_ID },
  required: ['model', 'request_id'],
  isReadOnly: false,
  isDestructive: true,
  async run(input, { api, signal }) {
    return [text(await (await api.call(requestPathOf(input, '/cancel'), { method: 'PUT', signal })).text())]
  },
}

export const MODEL_TOOLS = [findModels, getModelSchema, estimateModel, runModel, getModelResult, cancelModelCall]

/** What a model gave, as an agent can use it: pictures are shown, also those that stand as base64 within a JSON answer. */
interface TellOptions extends Pick<ToolHost, 'pictures'> {
  /** Where the whole result is. */
  readonly url: string
}

// Shorter texts are hardly files; longer ones that are no files stay as they are.
const MIN_FILE_CHARS = 256
const MAX_SHOWN = 8
const DATA_URI = /^data:[\w.+/-]{1,100}(?:;[\w=-]{1,100}){0,4},/

async function tellResult(response: Response, { pictures, url }: TellOptions): Promise<readonly ToolContent[]> {
  const type = response.headers.get('Content-Type') ?? ''
  const cost = creditsOf(response.headers)
  const bytes = await readBytes(response, MAX_SOURCE_BYTES)
  if (bytes === null) return [json({ ...cost, content_type: type, result: 'too large to be told here', url })]
  const value = /\bjson\b/.test(type) ? JSON.parse(bytes.toString('utf8')) : null
  if (value === null) {
    const shown = await showPicture(bytes, pictures)
    return [json({ ...cost, content_type: type, size_bytes: bytes.length, url }), ...(shown === null ? [] : [shown])]
  }
  const shown: ToolContent[] = []
  const result = await replaceFiles(value, async (file) => {
    const picture = shown.length < MAX_SHOWN ? await showPicture(file, pictures) : null
    if (picture !== null) shown.push(picture)
    return picture === null ? `a file of ${file.length} bytes; see url` : `picture ${shown.length} below`
  })
  return [json({ ...cost, result, url }), ...shown]
}

/** The header bears the name of the service's brand. */
function creditsOf(headers: Headers): { readonly credits_used?: string } {
  for (const [name, value] of headers) if (name.endsWith('-credits-used')) return { credits_used: value }
  return {}
}

async function replaceFiles(value: unknown, name: (file: Buffer) => Promise<string>): Promise<unknown> {
  if (typeof value === 'string') {
    const file = readFile(value)
    return file === null ? value : name(file)
  }
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (const item of value) items.push(await replaceFiles(item, name))
    return items
  }
  if (typeof value !== 'object' || value === null) return value
  const members: [string, unknown][] = []
  for (const [key, item] of Object.entries(value)) members.push([key, await replaceFiles(item, name)])
  return Object.fromEntries(members)
}

/** Base64 alone or as a data URI; null for any other text. */
function readFile(value: string): Buffer | null {
  if (value.length < MIN_FILE_CHARS) return null
  const start = DATA_URI.exec(value.slice(0, 600))?.[0].length ?? 0
  const isBase64 = /^[A-Za-z0-9+/]{200}/.test(value.slice(start)) && /^[A-Za-z0-9+/]{50,}={0,2}$/.test(value.slice(-60))
  return isBase64 ? Buffer.from(value.slice(start), 'base64') : null
}
