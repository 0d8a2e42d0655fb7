/**
 * Calls to one server: each with a deadline, a bounded answer and an abort. A failed call says what is known about it, above
 * all whether the server may have acted on it. Nothing of a request is ever put into an error: it may hold credentials.
 */
import { Readable } from 'node:stream'
import { type JsonValue, parseLosslessJson } from '../../../../../lib/json/lossless-json.ts'
import {
  type ExchangeAnswer,
  ExchangeError,
  type ExchangeLimits,
  type ExchangeRequest,
  openOutboundClient,
} from '../../../../../lib/outbound/exchange.ts'
import type { Tracer } from '../../../../../lib/tracing/tracer.ts'

type CallFault =
  | 'unreachable' // no connection was made: the server has not seen the request
  | 'broken' // the connection ended before the answer did
  | 'timeout'
  | 'status' // an answer, but not a good one
  | 'too_large'
  | 'malformed'
  | 'aborted' // by the caller

export class CallError extends Error {
  readonly fault: CallFault
  /** The status of an answer that came, else null. */
  readonly status: number | null
  /** Its body, when it was JSON. */
  readonly body: JsonValue | null

  constructor(fault: CallFault, message: string, answer: { status?: number; body?: JsonValue; cause?: unknown } = {}) {
    super(message, { cause: answer.cause })
    this.name = 'CallError'
    this.fault = fault
    this.status = answer.status ?? null
    this.body = answer.body ?? null
  }
}

interface CallOptions {
  readonly method?: ExchangeRequest['method']
  /** Sent as JSON text. */
  readonly json?: string
  readonly body?: AsyncIterable<Uint8Array>
  readonly headers?: Readonly<Record<string, string>>
  readonly deadlineMs: number
  readonly maxBytes: number
  readonly signal?: AbortSignal
}

interface Answer {
  readonly status: number
  readonly text: string
}

export interface StreamedAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: AsyncIterable<Uint8Array> & { destroy(error?: Error): unknown }
}

interface StreamOptions extends Pick<CallOptions, 'method' | 'headers'> {
  /** How long the server may be silent before the head of its answer. */
  readonly firstByteMs: number
  /** And within the body. */
  readonly idleMs: number
  readonly signal: AbortSignal
}

export interface ComfyHttp extends AsyncDisposable {
  /** Any status; throws CallError when there is no whole answer within the bounds. */
  call(path: string, options: CallOptions): Promise<Answer>
  /** The parsed body of a 2xx answer (null when it is empty); throws CallError for everything else. */
  json(path: string, options: CallOptions): Promise<JsonValue>
  stream(path: string, options: StreamOptions): Promise<StreamedAnswer>
}

interface ComfyHttpOptions {
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly connectMs: number
  readonly tracer?: Tracer
}

const REFUSED = 'ECONNREFUSED'
const NOT_CONNECTED: ReadonlySet<string> = new Set([
  REFUSED,
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])
// Enough that streams which hang leave connections for calls.
const CONNECTIONS = 16

export function openComfyHttp({ url, headers: always, connectMs, tracer }: ComfyHttpOptions): ComfyHttp {
  const client = openOutboundClient({
    connectionsPerHost: CONNECTIONS,
    connect: { timeout: connectMs },
    ...(tracer !== undefined && { traces: { tracer, nameOf } }),
  })
  const root = url.pathname.replace(/\/+$/, '')
  const common = { ...always, ...credentialsOf(url) }

  async function send(
    path: string,
    { method = 'GET', headers, body }: Partial<ExchangeRequest>,
    limits: ExchangeLimits,
  ): Promise<ExchangeAnswer> {
    const request = { origin: url.origin, path: root + path, method, headers: { ...common, ...headers }, body }
    try {
      return await client.send(request, limits)
    } catch (error) {
      throw toCallError(error, path)
    }
  }

  async function call(
    path: string,
    { method, json, body, headers, deadlineMs, maxBytes, signal }: CallOptions,
  ): Promise<Answer> {
    const contentType: Record<string, string> = json === undefined ? {} : { 'content-type': 'application/json' }
    const answer = await send(
      path,
      {
        method,
        headers: { ...contentType, ...headers },
        body: json ?? (body === undefined ? null : Readable.from(body, { objectMode: false })),
      },
      { totalTimeMs: deadlineMs, maxBytes, signal },
    )
    return { status: answer.status, text: answer.body.toString('utf8') }
  }

  return {
    call,
    async json(path, callOptions) {
      const { status, text } = await call(path, callOptions)
      const body = readBody(text)
      if (status < 200 || status > 299) {
        throw new CallError('status', `${shown(path)} answered ${status}`, { status, ...(body.isJson ? body : {}) })
      }
      if (!body.isJson) throw new CallError('malformed', `${shown(path)} answered with something that is not JSON`)
      return body.body
    },
    async stream(path, { method, headers, firstByteMs, idleMs, signal }) {
      const time = { silentHeadMs: firstByteMs, silentBodyMs: idleMs }
      const limits = { ...time, signal, maxBytes: Number.POSITIVE_INFINITY, mayStream: () => true }
      const { status, headers: answered, body } = await send(path, { method, headers }, limits)
      const stream = body as Readable
      // A reader gets the error from the stream; without a reader it must not end the process.
      stream.on('error', () => {})
      return { status, headers: answered, body: stream }
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  }
}

/** The credentials of an address as a header, since an address that holds them must never be shown. */
export function credentialsOf({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {}
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { authorization: `Basic ${Buffer.from(text).toString('base64')}` }
}

/** An address that may be shown. */
export function withoutCredentials(url: URL): string {
  const shown = new URL(url)
  shown.username = ''
  shown.password = ''
  shown.search = ''
  shown.hash = ''
  return shown.href.replace(/\/+$/, '')
}

function readBody(text: string): { readonly isJson: true; readonly body: JsonValue } | { readonly isJson: false } {
  if (text === '') return { isJson: true, body: null }
  try {
    return { isJson: true, body: parseLosslessJson(text) }
  } catch {
    return { isJson: false }
  }
}

/** Only the first part of the path: what follows may be a name that a user gave. */
function nameOf({ method, path }: Pick<ExchangeRequest, 'method' | 'path'>): string {
  return `comfyui ${method} /${
    shown(path)
      .split('/')
      .find((part) => part !== '' && part !== 'api') ?? ''
  }`
}

/** Without the query, which names files of the user. */
function shown(path: string): string {
  return path.split('?', 1)[0] ?? path
}

/** Nothing listens at the address, so the server process has ended. A network that is cut fails in other ways. */
export function isNobodyThere(error: unknown): boolean {
  const cause = error instanceof CallError && error.fault === 'unreachable' ? error.cause : null
  const causes = cause instanceof AggregateError ? cause.errors : [cause]
  return causes.every((each) => (each as { code?: string } | null)?.code === REFUSED)
}

/** What is known about a failed call, from the error of the exchange. */
export function toCallError(error: unknown, path: string): CallError {
  if (error instanceof CallError) return error
  const fault = error instanceof ExchangeError ? error.fault : null
  if (fault === 'aborted') return new CallError('aborted', `${shown(path)} was given up`)
  if (fault === 'too_large') return new CallError('too_large', `${shown(path)}: ${(error as Error).message}`)
  if (fault === 'timeout') return new CallError('timeout', `${shown(path)} did not answer in time`, { cause: error })
  const cause = error instanceof ExchangeError ? error.cause : error
  const { code = '', name = '' } = (cause ?? {}) as { code?: string; name?: string }
  if (NOT_CONNECTED.has(code) || isConnectFailure(cause)) {
    return new CallError('unreachable', `${shown(path)}: no connection (${code || name})`, { cause })
  }
  return new CallError('broken', `${shown(path)}: the connection broke (${code || name})`, { cause })
}

/** Several addresses were tried, none answered. */
function isConnectFailure(error: unknown): boolean {
  return (
    error instanceof AggregateError &&
    error.errors.every((each) => NOT_CONNECTED.has((each as { code?: string }).code ?? ''))
  )
}
