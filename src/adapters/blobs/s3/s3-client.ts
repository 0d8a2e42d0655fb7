/**
 * One signed request to a bucket and its answer, over the service's own HTTP client. It knows where objects lie (path style or
 * host style), how long a silence may last, and the time of the storage where its clock differs from ours; it tries nothing twice
 * except after a refusal for the wrong time, which is ours to mend.
 */
import { Readable } from 'node:stream'
import { type ExchangeAnswer, ExchangeError } from '../../../../lib/outbound/exchange.ts'
import { openOutboundClient } from '../../../../lib/outbound/outbound-client.ts'
import { textsOf } from './read-xml.ts'
import { hasS3Code, S3Error } from './s3-error.ts'
import { type BucketKeys, createRequestSigner } from './sign-request.ts'

interface BucketAddress {
  readonly bucket: string
  /** Scheme and host of the service, without the bucket. */
  readonly endpoint: string
  /** What clients reach the service by. */
  readonly publicEndpoint: string
  readonly region: string
  readonly isPathStyle: boolean
}

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** null: the bucket itself. */
  readonly key: string | null
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** Asked for each try. */
  readonly body?: () => string | Uint8Array | Readable
  readonly signal?: AbortSignal
}

export interface S3Client extends AsyncDisposable {
  /** Any answer with a status below 300, read whole. Throws S3Error. */
  send(request: S3Request): Promise<ExchangeAnswer & { readonly body: Buffer }>
  /** The same, with the body as a stream. */
  stream(request: S3Request): Promise<ExchangeAnswer & { readonly body: Readable }>
  /** An address that others may use for so long. */
  presign(method: string, key: string, options: PresignOptions): Promise<string>
  /** False while the last request got no usable answer. */
  isAnswering(): boolean
}

interface PresignOptions {
  readonly query: Readonly<Record<string, string>>
  readonly lifetimeSeconds: number
}

interface S3ClientOptions {
  readonly address: BucketAddress
  readonly keys: BucketKeys
  readonly now?: () => Date
  /** Silence that counts as an outage. */
  readonly silentMs?: number
}

// Bodies are as large as their answers may be; everything else that storage says is short.
const MAX_ANSWER_BYTES = 8 * 1024 * 1024
const CONNECT_MS = 3_000
const SILENT_MS = 10_000
// Two parts each of a dozen uploads, and as many downloads.
const CONNECTIONS = 64

export function openS3Client({
  address,
  keys,
  now = () => new Date(),
  silentMs = SILENT_MS,
}: S3ClientOptions): S3Client {
  const http = openOutboundClient({ connectionsPerHost: CONNECTIONS, connect: { timeout: CONNECT_MS } })
  let aheadMs = 0
  let answers = true
  const signer = createRequestSigner({
    keys,
    region: address.region,
    now: () => new Date(now().getTime() + aheadMs),
  })

  async function ask({ method, key, query = {}, headers = {}, body, signal }: S3Request, wantsStream: boolean) {
    const url = toUrl(address.endpoint, address, key, query)
    const signed = await signer.sign({ method, url, headers })
    const sent = body?.() ?? null
    // A file that cannot be read fails the request; when the request never begins, nobody else would hear of it.
    if (sent instanceof Readable) sent.on('error', () => {})
    try {
      return await http.send(
        { origin: url.origin, path: `${url.pathname}${url.search}`, method, headers: signed, body: sent },
        {
          silentHeadMs: silentMs,
          silentBodyMs: silentMs,
          ...(signal !== undefined && { signal }),
          // A HEAD announces the size of what it does not send.
          maxBytes: wantsStream || method === 'HEAD' ? Number.POSITIVE_INFINITY : MAX_ANSWER_BYTES,
          mayStream: (status) => wantsStream && status < 300,
        },
      )
    } catch (error) {
      if (sent instanceof Readable) sent.destroy()
      throw error instanceof ExchangeError ? toS3Error(error) : error
    }
  }

  async function askInTime(request: S3Request, wantsStream: boolean): Promise<ExchangeAnswer> {
    const answer = await ask(request, wantsStream)
    if (answer.status < 300) return answer
    const error = readError(request, answer)
    const theirs = Date.parse(answer.headers.date ?? '')
    if (!hasS3Code(error, 'RequestTimeTooSkewed') || Number.isNaN(theirs)) throw error
    aheadMs = theirs - now().getTime()
    const again = await ask(request, wantsStream)
    if (again.status < 300) return again
    throw readError(request, again)
  }

  async function tracked(request: S3Request, wantsStream: boolean): Promise<ExchangeAnswer> {
    try {
      const answer = await askInTime(request, wantsStream)
      answers = true
      return answer
    } catch (error) {
      // An answer about one object says that the storage is there.
      if (error instanceof S3Error && error.code !== 'aborted') {
        answers = error.status !== null && error.status < 500 && error.status !== 403 && error.status !== 401
      }
      throw error
    }
  }

  return {
    async send(request) {
      const answer = await tracked(request, false)
      return { ...answer, body: answer.body as Buffer }
    },
    async stream(request) {
      const answer = await tracked(request, true)
      return { ...answer, body: answer.body as Readable }
    },
    presign: (method, key, { query, lifetimeSeconds }) =>
      signer.presign(method, toUrl(address.publicEndpoint, address, key, query), lifetimeSeconds),
    isAnswering: () => answers,
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  }
}

function toUrl(
  endpoint: string,
  { bucket, isPathStyle }: Pick<BucketAddress, 'bucket' | 'isPathStyle'>,
  key: string | null,
  query: Readonly<Record<string, string>>,
): URL {
  const url = new URL(endpoint)
  const path = key === null ? '' : key.split('/').map(encodeURIComponent).join('/')
  if (isPathStyle) url.pathname = `/${bucket}/${path}`
  else {
    url.hostname = `${bucket}.${url.hostname}`
    url.pathname = `/${path}`
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return url
}

function toS3Error(error: ExchangeError): S3Error {
  return new S3Error(`the storage gave no answer: ${error.message}`, { status: null, code: error.fault, cause: error })
}

/** A HEAD has no body, so its status is all there is. */
function readError({ method, key }: S3Request, { status, body }: ExchangeAnswer): S3Error {
  const text = Buffer.isBuffer(body) ? body.toString('utf8', 0, 4096) : ''
  const [code = String(status)] = textsOf(text, 'Code')
  const [said = ''] = textsOf(text, 'Message')
  const what = key === null ? 'the bucket' : 'an object'
  return new S3Error(`${method} of ${what} was answered with ${status} ${code}${said && `: ${said.slice(0, 200)}`}`, {
    status,
    code,
  })
}
