/**
 * Calls to one server: each with a deadline, a bounded answer and an abort. A failed call says what is known about it, above
 * all whether the server may have acted on it. Nothing of a request is ever put into an error: it may hold credentials.
 */
import { Readable } from 'node:stream'
import { Pool } from 'undici'
import { type JsonValue, parseLosslessJson } from '../../../../../lib/json/lossless-json.ts'

export type CallFault =
  | 'unreachable' // no connection was made: the server has not seen the request
  | 'broken' // the connection ended before the answer did
  | 'timeout'
  | 'status' // an answer, but not a good one
  | 'too_large'
  | 'malformed'
  | 'aborted' // by whoever called

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

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'HEAD'

export interface CallOptions {
  readonly method?: Method
  /** Sent as JSON text. */
  readonly json?: string
  readonly body?: AsyncIterable<Uint8Array>
  readonly headers?: Readonly<Record<string, string>>
  readonly deadlineMs: number
  readonly maxBytes: number
  readonly signal?: AbortSignal
}

export interface Answer {
  readonly status: number
  readonly text: string
}

export interface StreamedAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: AsyncIterable<Uint8Array> & { destroy(error?: Error): unknown }
}

export interface StreamOptions extends Pick<CallOptions, 'method' | 'headers'> {
  /** Until the head of the answer; the body is the caller's business. */
  readonly firstByteMs: number
  readonly idleMs: number
  readonly signal: AbortSignal
}

export interface HttpClient {
  /** Any status; throws CallError when there is no whole answer within the bounds. */
  call(path: string, options: CallOptions): Promise<Answer>
  /** The parsed body of a 2xx answer (null when it is empty); throws CallError for everything else. */
  json(path: string, options: CallOptions): Promise<JsonValue>
  stream(path: string, options: StreamOptions): Promise<StreamedAnswer>
  close(): Promise<void>
}

export interface HttpOptions {
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly connectMs: number
  /** One is kept for streams that hang, others for calls. */
  readonly connections?: number
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
const LATE: ReadonlySet<string> = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])
// A server or proxy between us may close an idle connection at any moment; a young one is hardly ever hit.
const KEEP_ALIVE_MS = 4_000

export function openHttp(options: HttpOptions): HttpClient {
  const { url, connectMs, connections = 16 } = options
  const pool = new Pool(url.origin, {
    connections,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connect: { timeout: connectMs },
  })
  const root = url.pathname.replace(/\/+$/, '')
  const common = { ...options.headers, ...credentialsOf(url) }

  async function request(path: string, { method = 'GET', json, body, headers, deadlineMs, signal }: CallOptions) {
    const late = AbortSignal.timeout(deadlineMs)
    const over = signal === undefined ? late : AbortSignal.any([signal, late])
    const answer = await pool.request({
      path: root + path,
      method,
      headers: { ...common, ...(json === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      body: json ?? (body === undefined ? null : Readable.from(body, { objectMode: false })),
      signal: over,
      headersTimeout: deadlineMs,
      bodyTimeout: deadlineMs,
    })
    return answer
  }

  async function call(path: string, callOptions: CallOptions): Promise<Answer> {
    try {
      const { statusCode, body } = await request(path, callOptions)
      return { status: statusCode, text: await readText(body, callOptions.maxBytes) }
    } catch (error) {
      throw toCallError(error, path, callOptions.signal)
    }
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
    async stream(path, { method = 'GET', headers, firstByteMs, idleMs, signal }) {
      try {
        const {
          statusCode,
          headers: answered,
          body,
        } = await pool.request({
          path: root + path,
          method,
          headers: { ...common, ...headers },
          signal,
          headersTimeout: firstByteMs,
          bodyTimeout: idleMs,
        })
        // Whoever reads hears of it; without a reader an error must not end the process.
        body.on('error', () => {})
        return { status: statusCode, headers: answered, body }
      } catch (error) {
        throw toCallError(error, path, signal)
      }
    },
    close: () => pool.destroy(),
  }
}

/** As a header: an address with credentials in it must never be shown. */
export function credentialsOf({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {}
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { authorization: `Basic ${Buffer.from(text).toString('base64')}` }
}

async function readText(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of body) {
    bytes += part.byteLength
    if (bytes > maxBytes) throw new CallError('too_large', `an answer is larger than ${maxBytes} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

function readBody(text: string): { readonly isJson: true; readonly body: JsonValue } | { readonly isJson: false } {
  if (text === '') return { isJson: true, body: null }
  try {
    return { isJson: true, body: parseLosslessJson(text) }
  } catch {
    return { isJson: false }
  }
}

/** Without the query: it names files of the user. */
function shown(path: string): string {
  return path.split('?', 1)[0] ?? path
}

/** Nobody listens at the address: whatever process was there has ended. A network that is cut says no such thing. */
export function isNobodyThere(error: unknown): boolean {
  const cause = error instanceof CallError && error.fault === 'unreachable' ? error.cause : null
  const causes = cause instanceof AggregateError ? cause.errors : [cause]
  return causes.every((each) => (each as { code?: string } | null)?.code === REFUSED)
}

export function toCallError(error: unknown, path: string, signal?: AbortSignal): CallError {
  if (error instanceof CallError) return error
  if (signal?.aborted) return new CallError('aborted', `${shown(path)} was given up`)
  const { code = '', name = '' } = error as { code?: string; name?: string }
  if (NOT_CONNECTED.has(code) || isConnectFailure(error)) {
    return new CallError('unreachable', `${shown(path)}: no connection (${code || name})`, { cause: error })
  }
  if (LATE.has(code) || name === 'TimeoutError') {
    return new CallError('timeout', `${shown(path)} did not answer in time`, { cause: error })
  }
  return new CallError('broken', `${shown(path)}: the connection broke (${code || name})`, { cause: error })
}

/** Several addresses were tried, none answered. */
function isConnectFailure(error: unknown): boolean {
  return (
    error instanceof AggregateError &&
    error.errors.every((each) => NOT_CONNECTED.has((each as { code?: string }).code ?? ''))
  )
}
