/**
 * The service as an agent's tools see it: its public HTTP API, called with the agent's own credential. So a tool
 * can do exactly what that credential can, on whichever transport the agent came. Refusals become `ApiRefusal` with a text that
 * an agent can act on.
 */

interface ApiRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | FormData
  readonly signal: AbortSignal
}

export interface ServiceApi {
  /** Throws ApiRefusal for every status but 2xx. `path` begins with a slash. */
  call(path: string, request: ApiRequest): Promise<Response>
  /** The bytes of an asset, wherever the service sends those who ask for them; null: more than `maxBytes`. */
  download(assetId: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null>
  /** An address of an answer as the agent's side can use it. */
  toPublicUrl(link: string): string
}

interface ServiceApiOptions {
  /** Where the service is reached from here, with its prefix and without a slash at the end. */
  readonly baseUrl: string
  /** Where the agent's side reaches it. */
  readonly publicUrl: string
  /** null: the service asks for none. */
  readonly credential: string | null
  /** Sent with every call; left out: none. */
  readonly headers?: Readonly<Record<string, string>>
}

export class ApiRefusal extends Error {
  /** null: the service could not be reached. */
  readonly status: number | null

  constructor(status: number | null, message: string) {
    super(message)
    this.status = status
  }
}

/** The next try may get through: too many requests, a restart, a connection that broke. */
export function isPassing(error: unknown): boolean {
  return error instanceof ApiRefusal && (error.status === null || error.status === 429 || error.status === 503)
}

// Complaints about a large graph may be many; the first ones are enough to go on.
const MAX_DETAIL_CHARS = 8000
const MAX_ERROR_BYTES = 262_144

export function createServiceApi({ baseUrl, publicUrl, credential, ...options }: ServiceApiOptions): ServiceApi {
  const inside = new URL(baseUrl)
  const outside = new URL(publicUrl)

  async function send(url: string, { method = 'GET', body, signal, ...request }: ApiRequest, isOurs: boolean) {
    const headers = new Headers({ ...(isOurs && options.headers), ...request.headers })
    if (isOurs && credential !== null) headers.set('Authorization', `Bearer ${credential}`)
    if (typeof body === 'string') headers.set('Content-Type', 'application/json')
    // Redirects are followed by hand, so that no credential goes where it does not belong.
    const answer = fetch(url, { method, headers, body, signal, redirect: 'manual' })
    return answer.catch((error: unknown) => {
      if (signal.aborted) throw error
      throw new ApiRefusal(null, `${isOurs ? publicUrl : 'the storage'} cannot be reached: ${toReason(error)}`)
    })
  }

  /** Links in answers name the address outside, which may not lead back to here. */
  function toInside(link: string): string {
    const url = new URL(link, `${baseUrl}/`)
    return url.origin === outside.origin ? move(url, outside, inside) : url.href
  }

  return {
    async call(path, request) {
      const response = await send(baseUrl + path, request, true)
      if (response.ok) return response
      throw await toRefusal(response)
    },
    async download(assetId, maxBytes, signal) {
      const first = await send(`${baseUrl}/api/v2/assets/${encodeURIComponent(assetId)}/content`, { signal }, true)
      const location = isRedirect(first) ? first.headers.get('Location') : null
      await (location === null ? null : first.body?.cancel())
      // The address that it leads to carries its own authorisation.
      const response = location === null ? first : await send(toInside(location), { signal }, false)
      if (!response.ok) throw await toRefusal(response)
      return readBytes(response, maxBytes)
    },
    toPublicUrl(link) {
      const url = new URL(link, `${baseUrl}/`)
      return url.origin === inside.origin ? move(url, inside, outside) : url.href
    },
  }
}

function isRedirect({ status }: Response): boolean {
  return status >= 300 && status < 400
}

/** The same place under another address of the service. */
function move({ pathname, search }: URL, from: URL, to: URL): string {
  const path = pathname.startsWith(from.pathname) ? pathname.slice(from.pathname.length) : pathname
  return `${to.href.replace(/\/$/, '')}/${path.replace(/^\//, '')}${search}`
}

/** The whole body, as long as it has at most so many bytes; null: it has more. */
export async function readBytes(response: Response, maxBytes: number): Promise<Buffer | null> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of response.body ?? []) {
    size += part.byteLength
    // Leaving the loop cancels the body.
    if (size > maxBytes) return null
    parts.push(part)
  }
  return Buffer.concat(parts)
}

function toReason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (cause instanceof Error && 'code' in cause) return String(cause.code)
  return cause instanceof Error ? cause.message : String(cause)
}

type Fields = Readonly<Record<string, unknown>>

export function toFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

async function toRefusal(response: Response): Promise<ApiRefusal> {
  const text = (await readBytes(response, MAX_ERROR_BYTES))?.toString('utf8') ?? ''
  const retryAfter = response.headers.get('Retry-After')
  const lines = [describe(readJson(text), response.status)]
  if (response.status === 401) lines.push('The key is missing or wrong: whoever set up this connection must mend it.')
  if (retryAfter !== null) lines.push(`Try again after ${retryAfter} s.`)
  return new ApiRefusal(response.status, lines.join('\n'))
}

function readJson(text: string): Fields {
  try {
    return toFields(JSON.parse(text))
  } catch {
    return {}
  }
}

/** The Jobs API answers `error`, the router `detail` and `error_type`. */
function describe(body: Fields, status: number): string {
  const { code, message, details } = toFields(body['error'])
  const { detail, error_type: type } = body
  const what = `${code ?? type ?? `HTTP ${status}`}: `
  if (message !== undefined) return what + String(message) + describeDetails(details)
  if (detail === undefined) return `${what}the service refused this without a reason`
  return what + (typeof detail === 'string' ? detail : describeDetails(detail).trimStart())
}

function describeDetails(details: unknown): string {
  if (details === undefined || details === null) return ''
  // Inputs of an endpoint: a sentence for each that is wrong.
  const { inputs } = toFields(details)
  const wrong = (Array.isArray(inputs) ? inputs : []).flatMap((input) => toFields(input)['message'] ?? [])
  if (wrong.length > 0)
    return `\n${wrong.map((message) => `- ${String(message)}`).join('\n')}`.slice(0, MAX_DETAIL_CHARS)
  const text = JSON.stringify(details)
  return `\n${text.length > MAX_DETAIL_CHARS ? `${text.slice(0, MAX_DETAIL_CHARS)} … (cut)` : text}`
}
