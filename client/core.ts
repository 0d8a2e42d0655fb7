/**
 * What every operation of the client goes through: addresses, the token, repeats and refusals. It needs `fetch` and what comes with
 * it, so it is the same in Node 20 or newer, Deno, Bun and browsers.
 *
 * A request is repeated only when that cannot do a thing twice: after 429, which refuses before anything is done, always; after
 * 502, 503, 504 or a broken connection only where the method, or an idempotency key, makes it count once. An operation that takes
 * such a key is given one when the caller gives none.
 */

export interface ClientOptions {
  /** Of the service; left out: the variable ATELIER_BASE_URL, or http://127.0.0.1:8189. */
  readonly baseUrl?: string
  /** An API key or token; for the admin API the operator's. Left out: the variable ATELIER_TOKEN. */
  readonly token?: string
  /** How often a request is sent at most; default: 4. */
  readonly attempts?: number
  /** How long the first byte of an answer may take; default: five minutes. */
  readonly timeoutMs?: number
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  /** What sends the requests; default: the `fetch` of the platform. */
  readonly fetch?: typeof fetch
}

/** A service, and in whose name it is asked. Made by `connect`. */
export interface Client {
  readonly baseUrl: string
  readonly attempts: number
  readonly timeoutMs: number
  readonly headers: Readonly<Record<string, string>>
  readonly fetch: typeof fetch
}

export interface CallOptions {
  readonly signal?: AbortSignal
  /** How long the first byte of this answer may take. */
  readonly timeoutMs?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Told of the answer before its body is read: its status and headers. */
  readonly onResponse?: (response: Response) => void
}

/** What an operation sends, and how. */
export interface Route {
  readonly method: string
  readonly path: string
  /** Names of arguments that belong into the query. */
  readonly query?: readonly string[]
  /** Headers, by the names of their arguments. */
  readonly headers?: Readonly<Record<string, string>>
  /** The type of a body that is sent as it is; `multipart/form-data` and JSON are made from their members. */
  readonly bodyType?: string
  readonly accept?: string
}

export type Bytes = Blob | ArrayBuffer | Uint8Array | ReadableStream<Uint8Array>

type Given = Readonly<Record<string, unknown>>

const DEFAULT_BASE_URL = 'http://127.0.0.1:8189'
const JSON_TYPE = 'application/json'
const FORM_TYPE = 'multipart/form-data'
const PASSING: readonly number[] = [502, 503, 504]
const TOO_MANY = 429
// A service that asks for longer than this is told to the caller instead.
const LONGEST_PAUSE_MS = 60_000

/** Refused by the service, or not reached. */
export class AtelierError extends Error {
  /** Of the answer; 0: there was none. */
  readonly status: number
  /** What to act on: the code of the refusal, or `unreachable`, `timeout`, `not_atelier`. */
  readonly code: string
  /** What the refusal says beside its code and its message. */
  readonly details: unknown
  /** Under which the service's log has this request; null: there was no answer. */
  readonly requestId: string | null

  constructor(
    message: string,
    facts: {
      readonly status?: number
      readonly code: string
      readonly details?: unknown
      readonly requestId?: string | null
      readonly cause?: unknown
    },
  ) {
    super(message, { cause: facts.cause })
    this.name = 'AtelierError'
    this.status = facts.status ?? 0
    this.code = facts.code
    this.details = facts.details ?? null
    this.requestId = facts.requestId ?? null
  }
}

export function connect(options: ClientOptions = {}): Client {
  const token = options.token ?? variable('ATELIER_TOKEN')
  return {
    baseUrl: (options.baseUrl ?? variable('ATELIER_BASE_URL') ?? DEFAULT_BASE_URL).replace(/\/+$/, ''),
    attempts: options.attempts ?? 4,
    timeoutMs: options.timeoutMs ?? 300_000,
    headers: { ...(token !== undefined && { Authorization: `Bearer ${token}` }), ...options.headers },
    // Not called as a method of the client: browsers refuse that.
    fetch: options.fetch ?? ((...args) => fetch(...args)),
  }
}

/** For answers in JSON. An answer without a body is null. */
export async function askJson<T>(client: Client, route: Route, input: object, options: CallOptions = {}): Promise<T> {
  const response = await askResponse(client, { accept: JSON_TYPE, ...route }, input, options)
  const text = await response.text()
  try {
    return (text === '' ? null : JSON.parse(text)) as T
  } catch (cause) {
    throw new AtelierError(`${response.url} answered something that is not JSON: is it an Atelier service?`, {
      ...{ status: response.status, code: 'not_atelier', requestId: requestIdOf(response), cause },
    })
  }
}

/** For answers that say nothing. */
export async function askNothing(
  client: Client,
  route: Route,
  input: object,
  options: CallOptions = {},
): Promise<void> {
  const response = await askResponse(client, route, input, options)
  await response.body?.cancel()
}

/** For answers that are files, or that are told by their status and headers. */
export async function askResponse(
  client: Client,
  route: Route,
  input: object,
  options: CallOptions = {},
): Promise<Response> {
  const given = input as Given
  const url = client.baseUrl + toPath(route, given)
  const headers = toHeaders(client, route, given, options)
  const isRepeatable = isOnce(route.method) || headers.has('Idempotency-Key')
  const { body, type } = toBody(route, given['body'])
  if (type !== null) headers.set('Content-Type', type)
  const attempts = body instanceof ReadableStream ? 1 : client.attempts
  const init: RequestInit & { duplex?: 'half' } = {
    ...{ method: route.method, headers, body },
    ...(body instanceof ReadableStream && { duplex: 'half' }),
  }
  for (let attempt = 1; ; attempt++) {
    const isLast = attempt >= attempts
    const response = await sendOnce(client, url, init, options).catch((error: unknown) => {
      if (options.signal?.aborted === true || isLast || !isRepeatable) throw error
      return null
    })
    if (response !== null) options.onResponse?.(response)
    if (response?.ok === true) return response
    const pauseMs = pauseAfter(response, attempt)
    const isPassing = response === null || response.status === TOO_MANY || PASSING.includes(response.status)
    const isWorthIt = isPassing && (isRepeatable || response?.status === TOO_MANY) && pauseMs <= LONGEST_PAUSE_MS
    if (response !== null && (isLast || !isWorthIt)) throw await toError(response)
    await response?.body?.cancel()
    await sleep(pauseMs, options.signal)
  }
}

const isOnce = (method: string) => method !== 'POST' && method !== 'PATCH'

async function sendOnce(client: Client, url: string, init: RequestInit, options: CallOptions): Promise<Response> {
  const { signal, timeoutMs = client.timeoutMs } = options
  const timeout = new AbortController()
  const timer = setTimeout(() => timeout.abort(), timeoutMs)
  try {
    const signals = signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal])
    return await client.fetch(url, { ...init, signal: signals })
  } catch (cause) {
    if (signal?.aborted === true) throw cause
    if (timeout.signal.aborted)
      throw new AtelierError(`${url} did not answer within ${timeoutMs} ms`, { code: 'timeout', cause })
    throw new AtelierError(`cannot reach ${url}: is the service running?`, { code: 'unreachable', cause })
  } finally {
    clearTimeout(timer)
  }
}

function toPath({ path, query = [] }: Route, input: Given): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = input[name]
    // An empty part, or one of dots, would lead to another operation.
    if (value === undefined || /^\.{0,2}$/.test(String(value)))
      throw new TypeError(`${name} must be given: it is a part of ${path}`)
    return encodeURIComponent(String(value))
  })
  const pairs = query.flatMap((name) => toPairs(name, input[name]))
  return pairs.length === 0 ? filled : `${filled}?${new URLSearchParams(pairs)}`
}

/** Lists with commas between, maps as `name[key]=value`: all that the specification has. */
function toPairs(name: string, value: unknown): [string, string][] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return [[name, value.join(',')]]
  if (typeof value !== 'object') return [[name, String(value)]]
  return Object.entries(value).map(([key, each]) => [`${name}[${key}]`, String(each)])
}

function toHeaders(client: Client, route: Route, input: Given, options: CallOptions): Headers {
  const headers = new Headers(client.headers)
  if (route.accept !== undefined) headers.set('Accept', route.accept)
  for (const [argument, header] of Object.entries(route.headers ?? {})) {
    const value = input[argument] ?? (header === 'Idempotency-Key' ? newKey() : undefined)
    if (value !== undefined) headers.set(header, String(value))
  }
  for (const [header, value] of Object.entries(options.headers ?? {})) headers.set(header, value)
  return headers
}

function toBody(route: Route, body: unknown): { readonly body: BodyInit | null; readonly type: string | null } {
  if (body === undefined) return { body: null, type: null }
  if (route.bodyType === FORM_TYPE) return { body: toForm(body as Given), type: null }
  if (body instanceof Blob) return { body, type: body.type || (route.bodyType ?? 'application/octet-stream') }
  if (route.bodyType !== undefined) return { body: body as BodyInit, type: route.bodyType }
  return { body: JSON.stringify(body), type: JSON_TYPE }
}

/** Files come last, so that what is said of them can be judged before they are read. A list is one part for each of its members. */
function toForm(members: Given): FormData {
  const form = new FormData()
  const parts = Object.entries(members).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((each): readonly [string, unknown] => [name, each]),
  )
  for (const [name, value] of parts) {
    if (!(value instanceof Blob) && value !== undefined && value !== null) form.append(name, String(value))
  }
  for (const [name, value] of parts) if (value instanceof Blob) form.append(name, value)
  return form
}

/** The surfaces of the service have envelopes of their own; what is common to them is a code and a message. */
async function toError(response: Response): Promise<AtelierError> {
  const body = (await response.json().catch(() => null)) as Given | null
  const envelope = body?.['error']
  const inner = isRecord(envelope) ? envelope : body
  const code = inner?.['code'] ?? inner?.['type'] ?? inner?.['error_type'] ?? inner?.['error']
  const message = inner?.['message'] ?? inner?.['detail']
  return new AtelierError(
    typeof message === 'string' ? message : toSentence(message) || `${response.url} answered ${response.status}`,
    {
      status: response.status,
      code: typeof code === 'string' ? code : `http_${response.status}`,
      details: inner?.['details'] ?? body,
      requestId: requestIdOf(response),
    },
  )
}

/** The router names every input that is wrong. */
function toSentence(detail: unknown): string {
  if (!Array.isArray(detail)) return ''
  return detail
    .filter(isRecord)
    .map(({ loc, msg }) => `${Array.isArray(loc) ? loc.join('.') : 'input'}: ${String(msg)}`)
    .join('; ')
}

function requestIdOf({ headers }: Response): string | null {
  return headers.get('X-Service-Request-Id') ?? headers.get('X-Comfy-Request-Id')
}

function pauseAfter(response: Response | null, attempt: number): number {
  const asked = response?.headers.get('Retry-After') ?? ''
  return /^\d+$/.test(asked) ? Number(asked) * 1000 : 250 * 2 ** (attempt - 1)
}

export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason)
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

function isRecord(value: unknown): value is Given {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

// Not `randomUUID`, which browsers have on secure pages only.
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function variable(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
  return process?.env?.[name]
}
