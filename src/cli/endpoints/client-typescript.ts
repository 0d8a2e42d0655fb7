/** A client in TypeScript. Only types that can be stripped, so that Node runs it as it is; only `fetch` and what comes with it. */
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import {
  type ClientFacts,
  describeInput,
  describeOutput,
  isBeyondDouble,
  toCommentLines,
  toLiteral,
  toPathPart,
} from './client-facts.ts'
import type { InputWire } from './endpoint-api.ts'

export function toTypescriptClient({ reference, baseUrl, endpoint, version }: ClientFacts): string {
  const { title, description } = endpoint
  const { inputs, outputs, version: number } = version
  const files = inputs.filter(({ type }) => type === 'file').map(({ name }) => toLiteral(name))
  return [
    HEAD,
    ...toDoc(
      [
        ...toCommentLines(title),
        ...(description === '' ? [] : ['', ...toCommentLines(description)]),
        '',
        `Inputs of version ${number}.`,
      ],
      '',
    ),
    'export interface Inputs {',
    ...inputs.flatMap((input) => [
      ...toDoc(describeInput(input), '  '),
      `  ${toKey(input.name)}${input.required ? '' : '?'}: ${typeOf(input)}`,
    ]),
    '}',
    '',
    '/** What a run makes, by name. */',
    'export interface Outputs {',
    ...outputs.flatMap((output) => [...toDoc(describeOutput(output), '  '), `  ${toKey(output.name)}: OutputFile[]`]),
    '}',
    '',
    `const ENDPOINT = ${toLiteral(toPathPart(reference))}`,
    `const BASE_URL = ${toLiteral(baseUrl)}`,
    `const FILE_INPUTS: readonly string[] = [${files.join(', ')}]`,
    BODY,
  ].join('\n')
}

function toDoc(lines: readonly string[], indent: string): string[] {
  if (lines.length <= 1) return lines.map((line) => `${indent}/** ${line} */`)
  return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line}`.trimEnd()), `${indent} */`]
}

function toKey(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : toLiteral(name)
}

function typeOf(input: InputWire): string {
  switch (input.type) {
    case 'boolean':
      return 'boolean'
    case 'integer':
    case 'seed':
      return isBeyondDouble(input) ? 'number | string' : 'number'
    case 'number':
      return 'number'
    case 'file':
      return 'FileInput'
    case 'choice':
      return input.open === true ? 'string' : [...new Set((input.choices ?? []).map(toType))].join(' | ') || 'never'
    default:
      return 'string'
  }
}

function toType(choice: JsonValue): string {
  if (typeof choice === 'string') return toLiteral(choice)
  return typeof choice === 'boolean' || (typeof choice === 'number' && Number.isFinite(choice))
    ? String(choice)
    : 'number'
}

const HEAD = `// A client of one endpoint of an Atelier service, in one file without dependencies: Node 20 or newer, Deno, Bun, browsers.
// Written by "atelier endpoints client"; write it again when the inputs change.
`

// `public` stands for `export`, which whoever reads this file line by line would take for one of its own.
const BODY = String.raw`const ENDED: readonly string[] = ['succeeded', 'failed', 'canceled', 'expired']
const PASSING: readonly number[] = [429, 502, 503, 504]
const ATTEMPTS = 5

/** The id of an asset, an https or data: address, bytes, or a file of this machine. */
public type FileInput = string | Blob | { readonly path: string }

public interface OutputFile {
  readonly id: string
  readonly name: string
  readonly content_type: string
  readonly size_bytes: number
  readonly url: string
}

public interface Run {
  readonly id: string
  readonly status: 'queued' | 'running' | 'canceling' | 'succeeded' | 'failed' | 'canceled' | 'expired'
  readonly endpoint: { readonly name: string; readonly version: number }
  /** As they were used: defaults, and the seeds that were drawn. */
  readonly inputs: Readonly<Record<string, unknown>> | null
  readonly results: Outputs
  readonly error: { readonly code: string; readonly message: string } | null
}

public interface Options {
  /** Of the service; default: ATELIER_BASE_URL, or the service that this file was written by. */
  readonly baseUrl?: string
  /** The key; default: ATELIER_TOKEN. */
  readonly token?: string
  readonly signal?: AbortSignal
}

public interface RunOptions extends Options {
  /** false: give the run as soon as it is recorded; getRun says how it goes on. */
  readonly wait?: boolean
  /** How long to wait for the end; default: ten minutes. The run goes on all the same. */
  readonly timeoutMs?: number
  readonly metadata?: Readonly<Record<string, string>>
  /** The same key never makes a second run; default: a new one for each call. */
  readonly idempotencyKey?: string
}

public interface InputProblem {
  readonly name: string
  readonly reason: string
  /** A sentence that begins with the name. */
  readonly message: string
}

interface ErrorFacts {
  readonly code: string
  readonly status?: number
  readonly inputs?: readonly InputProblem[]
  readonly details?: Readonly<Record<string, unknown>>
  readonly run?: Run
}

public class EndpointError extends Error {
  readonly code: string
  /** Of the answer; 0: there was none. */
  readonly status: number
  /** Every input that is wrong. */
  readonly inputs: readonly InputProblem[]
  readonly details: Readonly<Record<string, unknown>>
  /** The run that failed, or that has not ended in time. */
  readonly run: Run | null

  constructor(message: string, { code, status = 0, inputs = [], details = {}, run }: ErrorFacts) {
    super(message)
    this.name = 'EndpointError'
    this.code = code
    this.status = status
    this.inputs = inputs
    this.details = details
    this.run = run ?? null
  }
}

/** Runs the endpoint and waits for the end. Throws EndpointError: for wrong inputs, a run that failed, a time that is over. */
public async function run(inputs: Inputs, options: RunOptions = {}): Promise<Run> {
  const { wait = true, timeoutMs = 600_000, metadata, idempotencyKey = newKey() } = options
  const endsAt = Date.now() + timeoutMs
  const sent = { inputs: await sendFiles(inputs, options), ...(metadata !== undefined && { metadata }) }
  const headers = { 'Content-Type': 'application/json', ...(wait && { Prefer: 'wait=60' }) }
  let current = await submit(JSON.stringify(sent), { ...headers, 'Idempotency-Key': idempotencyKey }, options)
  if (!wait) return current
  for (let pauseMs = 500; !ENDED.includes(current.status); pauseMs = Math.min(pauseMs * 1.5, 5000)) {
    if (Date.now() >= endsAt) throw new EndpointError('the run has not ended in time', { code: 'timeout', run: current })
    await sleep(Math.min(pauseMs, Math.max(1, endsAt - Date.now())), options.signal)
    current = await getRun(current.id, options)
  }
  if (current.status === 'succeeded') return current
  const { code = current.status, message = 'the run was ' + current.status } = current.error ?? {}
  throw new EndpointError(message, { code, status: 200, run: current })
}

public async function getRun(id: string, options: Options = {}): Promise<Run> {
  const [name] = ENDPOINT.split('@')
  return (await ask('/endpoints/' + name + '/runs/' + encodeURIComponent(id), {}, options)).json() as Promise<Run>
}

/** Stores a file, and gives what stands for it as an input. */
public async function upload(file: Blob, name: string, options: Options = {}): Promise<object> {
  const form = new FormData()
  form.set('content_type', file.type || 'application/octet-stream')
  form.set('file_path', name)
  form.set('file', file, name)
  const headers = { 'Idempotency-Key': newKey() }
  const id = await ask('/assets', { method: 'POST', headers, body: form }, options)
    .then(async (response) => ((await response.json()) as { id: string }).id)
    .catch((error: unknown) => madeBefore(error, 'asset_id'))
  return { __type: 'core/ASSET', info: { id, file_path: name } }
}

/** The bytes of an output. */
public async function download(output: OutputFile, options: Options = {}): Promise<Blob> {
  return (await ask(output.url, {}, options)).blob()
}

async function submit(body: string, headers: Record<string, string>, options: Options): Promise<Run> {
  try {
    return (await (await ask('/endpoints/' + ENDPOINT + '/runs', { method: 'POST', headers, body }, options)).json()) as Run
  } catch (error) {
    return getRun(madeBefore(error, 'job_id'), options)
  }
}

/** What an attempt made whose answer was lost. Throws any other error. */
function madeBefore(error: unknown, member: string): string {
  const made = error instanceof EndpointError && error.code === 'idempotency_key_reuse' ? error.details[member] : null
  if (typeof made === 'string') return made
  throw error
}

async function sendFiles(inputs: Inputs, options: Options): Promise<Record<string, unknown>> {
  const sent: Record<string, unknown> = { ...inputs }
  for (const name of FILE_INPUTS) {
    const value = sent[name]
    if (value instanceof Blob) sent[name] = await upload(value, 'name' in value ? String(value.name) : name, options)
    else if (typeof value === 'object' && value !== null && 'path' in value) sent[name] = await uploadPath(String(value.path), options)
  }
  return sent
}

async function uploadPath(path: string, options: Options): Promise<object> {
  const files = 'node:fs/promises'
  const { readFile } = (await import(files)) as { readFile(path: string): Promise<Uint8Array<ArrayBuffer>> }
  const name = path.split(/[\\/]/).at(-1) ?? 'file'
  return upload(new Blob([await readFile(path)], { type: TYPES[name.split('.').at(-1)?.toLowerCase() ?? ''] ?? '' }), name, options)
}

const TYPES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  mp4: 'video/mp4',
  webm: 'video/webm',
  wav: 'audio/wav',
  mp3: 'audio/mpeg',
  flac: 'audio/flac',
  glb: 'model/gltf-binary',
}

/** Every request may be made again: it reads, or it has a key under which it counts once. */
async function ask(link: string, init: RequestInit, options: Options): Promise<Response> {
  const { signal } = options
  const base = (options.baseUrl ?? variable('ATELIER_BASE_URL') ?? BASE_URL).replace(/\/+$/, '')
  const token = options.token ?? variable('ATELIER_TOKEN')
  const url = link.startsWith('/') ? base + '/api/v2' + link : link
  const headers = new Headers(init.headers)
  // The key goes to the service only: files may be elsewhere.
  if (token !== undefined && new URL(url).origin === new URL(base).origin) headers.set('Authorization', 'Bearer ' + token)
  for (let attempt = 1; ; attempt++) {
    let response: Response | null = null
    try {
      response = await fetch(url, { ...init, headers, signal: signal ?? null })
    } catch (error) {
      if (signal?.aborted) throw error
      if (attempt === ATTEMPTS) throw new EndpointError('cannot reach ' + url + ': ' + String(error), { code: 'unreachable' })
    }
    if (response?.ok) return response
    if (response !== null && (attempt === ATTEMPTS || !PASSING.includes(response.status))) throw await toError(response)
    const seconds = Number(response?.headers.get('Retry-After') ?? Number.NaN)
    await response?.body?.cancel()
    await sleep(Number.isFinite(seconds) ? Math.min(seconds, 60) * 1000 : 250 * 2 ** attempt, signal)
  }
}

async function toError(response: Response): Promise<EndpointError> {
  const body = (await response.json().catch(() => null)) as {
    error?: { code?: string; message?: string; details?: { inputs?: InputProblem[] } | null }
  } | null
  const { code = 'http_' + response.status, message = 'the service refused this without a reason', details } = body?.error ?? {}
  return new EndpointError(message, { code, status: response.status, inputs: details?.inputs ?? [], details: details ?? {} })
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function variable(name: string): string | undefined {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name]
}
`.replaceAll(/^public /gm, 'export ')
