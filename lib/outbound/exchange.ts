/**
 * One HTTP request and its answer, within bounds: time until the answer begins, time for the whole body, silence within it, and
 * size. A body is either collected or passed on as a stream that buffers only a few chunks. An error says whether any of the
 * request was sent, because only then may the server have acted on it.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { createRequire } from 'node:module'
import { Readable } from 'node:stream'
import type * as undici from 'undici'
import type { Agent, buildConnector, Dispatcher } from 'undici'
import { toTraceHeaders } from '../tracing/trace-context.ts'
import { inSpan, type Tracer } from '../tracing/tracer.ts'
import { MAX_TIMER_MS } from '../waiting/sleep.ts'

export interface ExchangeRequest {
  readonly origin: string
  readonly path: string
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | Readable | null
}

interface CommonLimits {
  readonly signal?: AbortSignal
  readonly maxBytes: number
  /** Answers for which it returns true are passed on as a stream instead of being collected. */
  readonly mayStream?: (status: number, headers: IncomingHttpHeaders) => boolean
}

export interface PhaseLimits extends CommonLimits {
  /** Time until the headers of the answer arrive. A model may take minutes before it answers. `MAX_TIMER_MS`: the signal ends it. */
  readonly headTimeMs: number
  /** Time for the whole body after the headers: ends a body that arrives too slowly. */
  readonly bodyTimeMs: number
  /** How long the body may be silent in between. Left out: as long as that. */
  readonly silentBodyMs?: number
}

/** From the start to the last byte, whatever happens in between. */
interface TotalLimits extends CommonLimits {
  readonly totalTimeMs: number
}

/** For bodies of any length: only silence ends them. Waiting for a free connection does not count as silence. */
interface SilenceLimits extends CommonLimits {
  /** Until the answer begins, counted anew whenever something of the request goes out. */
  readonly silentHeadMs: number
  /** The same once all of the request went out. Left out: as before. */
  readonly answerMs?: number
  readonly silentBodyMs: number
}

/** Every exchange is bounded in time, in one of these ways. */
export type ExchangeLimits = PhaseLimits | TotalLimits | SilenceLimits

export interface ExchangeAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer | Readable
}

type ExchangeFault = 'unreachable' | 'broken' | 'timeout' | 'too_large' | 'aborted'

export class ExchangeError extends Error {
  readonly fault: ExchangeFault
  /** False: nothing of the request was sent, so it is always safe to try again. */
  readonly wasSent: boolean
  /** The answer's status where it had begun. */
  readonly status: number | null
  constructor(fault: ExchangeFault, message: string, { wasSent, status, cause }: ExchangeErrorOptions) {
    super(message, { cause })
    this.name = 'ExchangeError'
    this.fault = fault
    this.wasSent = wasSent
    this.status = status ?? null
  }
}

interface ExchangeErrorOptions {
  readonly wasSent: boolean
  readonly status?: number | null
  readonly cause?: unknown
}

const STREAM_HIGH_WATER_BYTES = 256 * 1024
const SILENT = 'the server fell silent'
const SILENCE = 'UND_ERR_BODY_TIMEOUT'

function exchange(dispatcher: Dispatcher, request: ExchangeRequest, limits: ExchangeLimits): Promise<ExchangeAnswer> {
  return new Promise((resolve, reject) => {
    if (limits.signal?.aborted) return reject(new ExchangeError('aborted', 'the call had ended', { wasSent: false }))
    const handler = new ExchangeHandler(limits, resolve, reject)
    dispatcher.dispatch(
      {
        origin: request.origin,
        path: request.path,
        method: request.method,
        headers: request.headers,
        body: request.body ?? null,
        // The timers of this handler replace those of the transport, which would abort a model that takes six minutes.
        headersTimeout: 0,
        bodyTimeout: 'silentBodyMs' in limits ? (limits.silentBodyMs ?? 0) : 0,
      },
      handler,
    )
  })
}

/** Of a type that was sent twice the first, as Node's own client reads it: everybody else takes it for a text. */
function withOneType(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const type: unknown = headers['content-type']
  return Array.isArray(type) ? { ...headers, 'content-type': String(type[0]) } : headers
}

const boundBody = (handler: ExchangeHandler) => handler.boundBody()

class ExchangeHandler implements Dispatcher.DispatchHandler {
  readonly #limits: ExchangeLimits
  readonly #resolve: (answer: ExchangeAnswer) => void
  readonly #reject: (error: ExchangeError) => void
  readonly #onAbort: () => void
  #timer: NodeJS.Timeout | undefined
  #controller: Dispatcher.DispatchController | null = null
  #status: number | null = null
  #headers: IncomingHttpHeaders = {}
  #chunks: Buffer[] = []
  #bytes = 0
  #stream: Readable | null = null
  #failure: ExchangeError | null = null
  #isOver = false

  constructor(
    limits: ExchangeLimits,
    resolve: (answer: ExchangeAnswer) => void,
    reject: (error: ExchangeError) => void,
  ) {
    this.#limits = limits
    this.#resolve = resolve
    this.#reject = reject
    const onAbort = () => this.#cut('aborted', 'the call ended')
    this.#onAbort = onAbort
    limits.signal?.addEventListener('abort', onAbort, { once: true })
    if ('totalTimeMs' in limits) this.#cutAfter(limits.totalTimeMs, 'no whole answer came in time')
    else if ('headTimeMs' in limits && limits.headTimeMs < MAX_TIMER_MS)
      this.#cutAfter(limits.headTimeMs, 'no answer came in time')
  }

  #cutAfter(ms: number, message: string): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#cut('timeout', message), ms)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#failure !== null) controller.abort(this.#failure)
    else if ('silentHeadMs' in this.#limits) this.#cutAfter(this.#limits.silentHeadMs, SILENT)
  }

  onBodySent(): void {
    if ('silentHeadMs' in this.#limits && this.#status === null) this.#timer?.refresh()
  }

  onRequestSent(): void {
    // An answer may have come before its question was whole.
    if (!('silentHeadMs' in this.#limits) || this.#status !== null || this.#isOver) return
    this.#cutAfter(this.#limits.answerMs ?? this.#limits.silentHeadMs, SILENT)
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return
    this.#status = status
    this.#headers = headers = withOneType(headers)
    if ('silentHeadMs' in this.#limits) clearTimeout(this.#timer)
    if ('bodyTimeMs' in this.#limits) {
      clearTimeout(this.#timer)
      process.nextTick(boundBody, this)
    }
    const announced = Number(headers['content-length'] ?? 0)
    if (announced > this.#limits.maxBytes) this.#cut('too_large', `the answer announces ${announced} bytes`)
    else if (this.#limits.mayStream?.(status, headers)) this.#beginStream(controller, status, headers)
  }

  /** A body that came with its head is whole by now. */
  boundBody(): void {
    if (!this.#isOver && 'bodyTimeMs' in this.#limits)
      this.#cutAfter(this.#limits.bodyTimeMs, 'the answer took too long')
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > this.#limits.maxBytes) {
      this.#cut('too_large', `the answer is larger than ${this.#limits.maxBytes} bytes`)
    } else if (this.#stream === null) this.#chunks.push(chunk)
    else if (!this.#stream.push(chunk)) controller.pause()
  }

  onResponseEnd(): void {
    if (this.#isOver) return
    this.#end()
    if (this.#stream !== null) this.#stream.push(null)
    else {
      const body = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks)
      this.#resolve({ status: this.#status ?? 0, headers: this.#headers, body })
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(this.#failure ?? this.#toFailure(error))
  }

  #beginStream(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    const stream = new Readable({
      highWaterMark: STREAM_HIGH_WATER_BYTES,
      read: () => controller.resume(),
      destroy: (error, callback) => {
        if (!this.#isOver) this.#cut('aborted', 'the reader went away')
        callback(error)
      },
    })
    this.#stream = stream
    this.#resolve({ status, headers, body: stream })
  }

  #toFailure(cause: Error & { readonly code?: unknown }): ExchangeError {
    const wasSent = this.#controller !== null
    if (cause.code === SILENCE) {
      return new ExchangeError('timeout', SILENT, { wasSent, status: this.#status, cause })
    }
    const message = wasSent ? 'the connection broke before the answer was whole' : 'the server cannot be reached'
    return new ExchangeError(wasSent ? 'broken' : 'unreachable', message, { wasSent, status: this.#status, cause })
  }

  #cut(fault: ExchangeFault, message: string): void {
    if (this.#isOver) return
    const failure = new ExchangeError(fault, message, { wasSent: this.#controller !== null, status: this.#status })
    this.#failure = failure
    this.#controller?.abort(failure)
    // A request that still waits for its connection is aborted when it gets one; nothing here waits for that.
    this.#fail(failure)
  }

  #fail(failure: ExchangeError): void {
    if (this.#isOver) return
    this.#end()
    this.#chunks = []
    if (this.#stream !== null) this.#stream.destroy(failure)
    else this.#reject(failure)
  }

  #end(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#limits.signal?.removeEventListener('abort', this.#onAbort)
  }
}

// The client for all outgoing HTTP: keeps connections open, and bounds every phase of a request. It follows no
// redirects: callers get them as answers and decide themselves.

// The HTTP client, loaded with the first request that leaves: it takes a good part of a tenth of a second, which a start and a
// service that calls nobody can do without.

const require = createRequire(import.meta.url)
let loaded: typeof undici | null = null

export function loadUndici(): typeof undici {
  loaded ??= require('undici') as typeof undici
  return loaded
}

// A server or proxy may close an idle connection at any moment; after a short idle time that is unlikely.
const KEEP_ALIVE_MS = 4_000
const FIRST_FAILURE = 400

export interface OutboundClient extends AsyncDisposable {
  /** Resolves with any status. Throws ExchangeError when no complete answer arrived within the limits. */
  send(request: ExchangeRequest, limits: ExchangeLimits): Promise<ExchangeAnswer>
}

interface OutboundClientOptions {
  readonly connectionsPerHost: number
  /** The time limit for connecting, or a function that makes connections. Absent: the transport's default. */
  readonly connect?: { readonly timeout: number } | buildConnector.connector
  /** Left out: no request is traced, and none tells its server of a trace. */
  readonly traces?: OutboundTraces
}

interface OutboundTraces {
  readonly tracer: Tracer
  /** What a request is called in a trace: never by anything that a user wrote. */
  readonly nameOf: (request: ExchangeRequest) => string
}

export function openOutboundClient({ connectionsPerHost, connect, traces }: OutboundClientOptions): OutboundClient {
  let agent: Agent | null = null
  let isClosed = false
  function openAgent(): Agent {
    const opened = new (loadUndici().Agent)({
      connections: connectionsPerHost,
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      ...(connect !== undefined && { connect }),
    })
    // It refuses what it is asked after its end as it refuses everything else.
    if (isClosed) void opened.destroy()
    return opened
  }
  const send: OutboundClient['send'] = (request, limits) => {
    agent ??= openAgent()
    return exchange(agent, request, limits)
  }
  return {
    send: traces === undefined ? send : withTraces(send, traces),
    async [Symbol.asyncDispose]() {
      isClosed = true
      await agent?.destroy()
    },
  }
}

/** A span for each request that is made on behalf of another one; what the program does of its own accord is not traced. */
function withTraces(send: OutboundClient['send'], { tracer, nameOf }: OutboundTraces): OutboundClient['send'] {
  return (request, limits) => {
    if (tracer.active() === undefined) return send(request, limits)
    const attributes = { 'http.request.method': request.method, 'server.address': new URL(request.origin).host }
    return inSpan(tracer, nameOf(request), { kind: 'client', attributes }, async (span) => {
      const headers = { ...request.headers, ...toTraceHeaders(span.context) }
      const answer = await send({ ...request, headers }, limits)
      span.set({ 'http.response.status_code': answer.status })
      if (answer.status >= FIRST_FAILURE) span.fail(String(answer.status))
      return answer
    })
  }
}

interface OnceRequest extends Omit<ExchangeRequest, 'origin' | 'path'> {
  readonly url: string
  /** False: only status and headers are needed; the body is not read and comes back empty. */
  readonly wantsBody: boolean
}

interface OnceAnswer extends ExchangeAnswer {
  readonly body: Buffer
}

/** For a call so rare that no connection is worth keeping. Throws ExchangeError. */
export async function sendOnce(
  { url, wantsBody, ...request }: OnceRequest,
  limits: Omit<TotalLimits, 'mayStream'>,
): Promise<OnceAnswer> {
  const { origin, pathname, search, username, password } = new URL(url)
  if (username !== '' || password !== '') throw new Error('an address with a user name in it is not called')
  await using client = openOutboundClient({ connectionsPerHost: 1 })
  const whole = { ...limits, mayStream: () => !wantsBody }
  const { status, headers, body } = await client.send({ ...request, origin, path: `${pathname}${search}` }, whole)
  if (Buffer.isBuffer(body)) return { status, headers, body }
  body.on('error', () => {}).destroy()
  return { status, headers, body: Buffer.alloc(0) }
}
