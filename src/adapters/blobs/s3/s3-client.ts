/**
 * One signed request to a bucket and its answer, over the service's own HTTP client. It knows where objects lie (path style or
 * host style), how long a silence may last, and the time of the storage where its clock differs from ours; it tries nothing twice
 * except after a refusal for the wrong time or for keys that are over, which are ours to mend.
 */
import { Readable } from 'node:stream'
import { type ExchangeAnswer, ExchangeError, openOutboundClient } from '../../../../lib/outbound/exchange.ts'
import { createSemaphore } from '../../../../lib/waiting/semaphore.ts'
import { type BucketKeys, createRequestSigner, type KeySource } from './bucket-keys.ts'
import { hasS3Code, isAboutKeys, S3Error } from './s3-error.ts'

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
  /** How long the storage may think about it; left out: as long as about any other. */
  readonly answerMs?: number
}

export interface S3Client extends AsyncDisposable {
  /** Any answer with a status below 300, read whole. Throws S3Error. */
  send(request: S3Request): Promise<ExchangeAnswer & { readonly body: Buffer }>
  /** The same, with the body as a stream. */
  stream(request: S3Request): Promise<ExchangeAnswer & { readonly body: Readable }>
  /** An address that others may use for so long, or as long as the keys last that signed it. */
  presign(method: string, key: string, options: PresignOptions): Promise<string>
  /** False while the last request got no usable answer. */
  isAnswering(): boolean
  /** Since the start: every try counts; failures are those that an outage of the storage explains. */
  stats(): { readonly requests: number; readonly failures: number }
}

interface PresignOptions {
  readonly query: Readonly<Record<string, string>>
  /** Headers that must be sent with the address exactly as they are here. */
  readonly headers?: Readonly<Record<string, string>>
  readonly lifetimeSeconds: number
}

interface S3ClientOptions {
  readonly address: BucketAddress
  readonly keys: KeySource
  readonly now?: () => Date
  /** Silence that counts as an outage: no byte goes out or comes in. */
  readonly silentMs?: number
  /** The same after a body has gone out, the end of which may still be on its way. */
  readonly answerMs?: number
  readonly lanes?: LaneOptions
}

// Bodies are as large as their answers may be; everything else that storage says is short.
const MAX_ANSWER_BYTES = 8 * 1024 * 1024
const CONNECT_MS = 3_000
const SILENT_MS = 10_000
// The system takes in megabytes before it sends them, which over a narrow line is a minute.
const ANSWER_MS = 60_000
// Services accept a quarter of an hour; a difference below this is of the network.
const MIN_SKEW_MS = 5 * 60_000
// What is sent at once; the next piece shows that this one went.
const PIECE_BYTES = 256 * 1024

export function openS3Client(options: S3ClientOptions): S3Client {
  const { address, keys, now = () => new Date() } = options
  const lanes = createLanes(options.lanes)
  // The lanes decide who waits; the transport has a connection for everyone who comes.
  const connectionsPerHost = lanes.reads.connections + lanes.writes.connections
  const http = openOutboundClient({ connectionsPerHost, connect: { timeout: CONNECT_MS } })
  let aheadMs = 0
  let answers = true
  let failures = 0
  const signer = createRequestSigner({
    region: address.region,
    now: () => new Date(now().getTime() + aheadMs),
  })
  const { askOnce, requests } = createAsk(options, { lanes, http, signer })

  async function askInTime(request: S3Request, by: BucketKeys, wantsStream: boolean): Promise<ExchangeAnswer> {
    const assumedMs = aheadMs
    try {
      return await askOnce(request, by, wantsStream)
    } catch (error) {
      const theirs = error instanceof S3Error ? error.answeredAt : null
      if (theirs === null) throw error
      const offMs = Math.abs(theirs.getTime() - now().getTime() - assumedMs)
      // The answer to a HEAD has no word for why it refuses.
      const isLate = hasS3Code(error, 'RequestTimeTooSkewed') || (hasS3Code(error, '403') && offMs > MIN_SKEW_MS)
      if (!isLate) throw error
      aheadMs = theirs.getTime() - now().getTime()
      return await askOnce(request, by, wantsStream)
    }
  }

  async function askByKeys(request: S3Request, wantsStream: boolean): Promise<ExchangeAnswer> {
    const by = await keys.current()
    try {
      return await askInTime(request, by, wantsStream)
    } catch (error) {
      const others = isAboutKeys(error, by.token !== null) ? await keys.renew(by) : null
      if (others === null) throw error
      return await askInTime(request, others, wantsStream)
    }
  }

  async function tracked(request: S3Request, wantsStream: boolean): Promise<ExchangeAnswer> {
    try {
      const answer = await askByKeys(request, wantsStream)
      answers = true
      return answer
    } catch (error) {
      // An answer about one object says that the storage is there; who was not asked has not failed.
      if (error instanceof S3Error && error.code !== 'aborted' && error.code !== 'busy') {
        answers = error.status !== null && error.status < 500 && error.status !== 403 && error.status !== 401
        if (!answers) failures++
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
    async presign(method, key, { query, headers = {}, lifetimeSeconds }) {
      const url = toUrl(address.publicEndpoint, address, key, query)
      return signer.presign({ method, url, headers }, await keys.current(), lifetimeSeconds)
    },
    isAnswering: () => answers,
    stats: () => ({ requests: requests(), failures }),
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  }
}

interface AskDeps {
  readonly lanes: ReturnType<typeof createLanes>
  readonly http: ReturnType<typeof openOutboundClient>
  readonly signer: ReturnType<typeof createRequestSigner>
}

/** One request over a connection of its lane. */
function createAsk(
  { address, silentMs = SILENT_MS, answerMs = ANSWER_MS }: S3ClientOptions,
  { lanes, http, signer }: AskDeps,
) {
  let requests = 0

  async function ask(request: S3Request, by: BucketKeys, wantsStream: boolean): Promise<ExchangeAnswer> {
    const giveBack = await (wantsStream ? lanes.reads : lanes.writes).take(request.signal)
    try {
      const answer = await exchange(request, by, wantsStream)
      if (answer.body instanceof Readable) answer.body.once('close', giveBack)
      else giveBack()
      return answer
    } catch (error) {
      giveBack()
      throw error instanceof ExchangeError ? toS3Error(error) : error
    }
  }

  async function exchange(request: S3Request, by: BucketKeys, wantsStream: boolean): Promise<ExchangeAnswer> {
    const { method, key, query = {}, headers = {}, signal } = request
    const url = toUrl(address.endpoint, address, key, query)
    const signed = await signer.sign({ method, url, headers }, by)
    requests++
    const body = toPieces(request.body?.() ?? null)
    // A file that cannot be read fails the request; if the request never begins, the error must be reported here.
    if (body instanceof Readable) body.on('error', () => {})
    try {
      return await http.send(
        { origin: url.origin, path: `${url.pathname}${url.search}`, method, headers: signed, body },
        {
          silentHeadMs: silentMs,
          silentBodyMs: request.answerMs ?? silentMs,
          answerMs: request.answerMs ?? (body === null ? silentMs : answerMs),
          ...(signal !== undefined && { signal }),
          // A HEAD announces the size of what it does not send.
          maxBytes: wantsStream || method === 'HEAD' ? Number.POSITIVE_INFINITY : MAX_ANSWER_BYTES,
          mayStream: (status) => wantsStream && status < 300,
        },
      )
    } catch (error) {
      if (body instanceof Readable) body.destroy()
      throw error
    }
  }

  async function askOnce(request: S3Request, by: BucketKeys, wantsStream: boolean): Promise<ExchangeAnswer> {
    const answer = await ask(request, by, wantsStream)
    if (answer.status < 300) return answer
    throw readError(request, answer)
  }

  return { askOnce, requests: () => requests }
}

/** Bytes that lie in memory go out piece by piece: only so does it show that they go. */
function toPieces(body: string | Uint8Array | Readable | null): string | Uint8Array | Readable | null {
  if (!(body instanceof Uint8Array) || body.length <= PIECE_BYTES) return body
  const count = Math.ceil(body.length / PIECE_BYTES)
  const pieces = Array.from({ length: count }, (_, at) => body.subarray(at * PIECE_BYTES, (at + 1) * PIECE_BYTES))
  return Readable.from(pieces, { objectMode: true, highWaterMark: 1 })
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
function readError({ method, key }: S3Request, { status, headers, body }: ExchangeAnswer): S3Error {
  const text = Buffer.isBuffer(body) ? body.toString('utf8', 0, 4096) : ''
  const [code = String(status)] = textsOf(text, 'Code')
  const [said = ''] = textsOf(text, 'Message')
  const [region = headers['x-amz-bucket-region']] = textsOf(text, 'Region')
  const answeredAt = new Date(headers.date ?? '')
  const what = key === null ? 'the bucket' : 'an object'
  return new S3Error(`${method} of ${what} was answered with ${status} ${code}${said && `: ${said.slice(0, 200)}`}`, {
    status,
    code,
    region: typeof region === 'string' && /^[a-z0-9-]{1,64}$/.test(region) ? region : null,
    answeredAt: Number.isNaN(answeredAt.getTime()) ? null : answeredAt,
  })
}

export interface LaneOptions {
  readonly reads?: number
  readonly writes?: number
  readonly readWaitMs?: number
  readonly writeWaitMs?: number
}

type GiveBack = () => void

interface Lane {
  readonly connections: number
  /** Resolves to the function that gives the connection back. Throws S3Error `busy`, or `aborted`. */
  take(signal?: AbortSignal): Promise<GiveBack>
}

const READS = 128
const WRITES = 64
// Readers may be slow clients: beyond this number a request is refused and should be repeated later.
const READ_WAIT_MS = 15_000
// Everything in front of it is on its way; over a narrow line a few dozen parts take a while.
const WRITE_WAIT_MS = 60_000

/**
 * Who may use the connections to a bucket. A download holds its connection for as long as its reader takes, and the reader may
 * itself be writing to the bucket. So downloads and all other requests have separate lanes: other requests depend only on the storage
 * and always end, and then downloads that wait for them can end too. Every wait in a lane is bounded.
 */
function createLanes(options: LaneOptions = {}): { readonly reads: Lane; readonly writes: Lane } {
  const { reads = READS, writes = WRITES, readWaitMs = READ_WAIT_MS, writeWaitMs = WRITE_WAIT_MS } = options
  return { reads: createLane(reads, readWaitMs), writes: createLane(writes, writeWaitMs) }
}

function createLane(connections: number, waitMs: number): Lane {
  const room = createSemaphore(connections)

  async function waitInLine(signal: AbortSignal | undefined): Promise<GiveBack> {
    const ending = new AbortController()
    const end = () => ending.abort(null)
    const timer = setTimeout(end, waitMs)
    signal?.addEventListener('abort', end, { once: true })
    try {
      return await room.take(ending.signal)
    } catch {
      throw signal?.aborted ? aborted() : busy()
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
    }
  }

  return {
    connections,
    async take(signal) {
      if (signal?.aborted) throw aborted()
      return room.free > 0 ? room.take() : waitInLine(signal)
    },
  }
}

function busy(): S3Error {
  return new S3Error('every connection to the storage is in use', { status: null, code: 'busy' })
}

function aborted(): S3Error {
  return new S3Error('the call had ended', { status: null, code: 'aborted' })
}

/** Reads the few, flat documents that S3-compatible services answer with. Nothing of them is trusted beyond its text. */
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** The text of every element of this name that has no elements inside. */
export function textsOf(xml: string, element: string): string[] {
  const found = xml.matchAll(new RegExp(`<${element}>([^<]*)</${element}>`, 'g'))
  return [...found].map(([, text = '']) => decode(text))
}

/** The insides of every element of this name. */
export function blocksOf(xml: string, element: string): string[] {
  return [...xml.matchAll(new RegExp(`<${element}>(.*?)</${element}>`, 'gs'))].map(([, inside = '']) => inside)
}

function decode(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(amp|lt|gt|quot|apos));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[String(name).toLowerCase()] ?? whole
    const point = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return point <= 0x10ffff ? String.fromCodePoint(point) : whole
  })
}
