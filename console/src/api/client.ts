/**
 * Requests to the service. Whatever it refuses becomes an `ApiError` with the service's own words; whatever does not reach it becomes
 * one without a status, so that a page can tell "refused" from "not there".
 */
import { BASE } from '../routes.ts'

export class ApiError extends Error {
  /** null: no answer came. */
  readonly status: number | null
  readonly code: string
  readonly details: Readonly<Record<string, unknown>> | null
  readonly requestId: string | null
  readonly retryAfterSeconds: number | null

  constructor(message: string, parts: Omit<ApiError, keyof Error>) {
    super(message)
    this.name = 'ApiError'
    this.status = parts.status
    this.code = parts.code
    this.details = parts.details
    this.requestId = parts.requestId
    this.retryAfterSeconds = parts.retryAfterSeconds
  }
}

interface RequestOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** JSON text is sent as it is, so that numbers of any length survive; everything else as JSON. */
  readonly body?: string | Blob | FormData | object
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

/** Below the service's base, such as `/console/v1/session`. */
export async function request(path: string, options: RequestOptions = {}): Promise<Response> {
  const { method = 'GET', body, headers, signal } = options
  const isFile = body instanceof Blob || body instanceof FormData
  const isRaw = typeof body === 'string' || isFile || body === undefined
  let response: Response
  try {
    response = await fetch(BASE + path, {
      method,
      credentials: 'same-origin',
      headers: {
        ...(method !== 'GET' && { 'X-Atelier-Console': '1' }),
        // The browser itself names the type of a form, with the mark that divides its parts.
        ...(body !== undefined && !isFile && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: isRaw ? (body as BodyInit) : JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiError('the service cannot be reached', {
      ...{ status: null, code: 'offline', details: null, requestId: null, retryAfterSeconds: null },
    })
  }
  if (!response.ok) throw await toError(response)
  return response
}

export async function getJson<Value>(path: string, signal?: AbortSignal): Promise<Value> {
  return (await (await request(path, { signal })).json()) as Value
}

/** For texts whose numbers must not pass through a double: workflows. */
export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  return (await request(path, { signal })).text()
}

export async function send<Value>(
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body?: string | object,
): Promise<Value> {
  const response = await request(path, { method, ...(body !== undefined && { body }) })
  return (response.status === 204 ? null : await response.json()) as Value
}

interface Envelope {
  /** Builds and deployments put the code itself here, and the text beside it. */
  readonly message?: string
  readonly error?:
    | string
    | {
        readonly code?: string
        readonly type?: string
        readonly message?: string
        readonly details?: Readonly<Record<string, unknown>> | null
        readonly field?: string | null
      }
}

/** All surfaces answer in envelopes that differ in a word or two. */
async function toError(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '')
  const envelope = parse(text)
  const error = typeof envelope.error === 'string' ? toNested(envelope.error, envelope) : (envelope.error ?? {})
  const field = error.field ?? null
  const retry = Number(response.headers.get('retry-after'))
  return new ApiError(error.message ?? `the service answered ${response.status}`, {
    status: response.status,
    code: error.code ?? error.type ?? 'unknown',
    details: error.details ?? (field === null ? null : { field }),
    requestId: response.headers.get('x-request-id') ?? response.headers.get('x-atelier-request-id'),
    retryAfterSeconds: Number.isFinite(retry) && retry > 0 ? retry : null,
  })
}

function toNested(code: string, { message }: Envelope): Exclude<Envelope['error'], string | undefined> {
  return { code: code.toLowerCase(), ...(message !== undefined && { message }) }
}

function parse(text: string): Envelope {
  try {
    return JSON.parse(text) as Envelope
  } catch {
    return {}
  }
}
