/**
 * HTTPS to any node of a service that was joined. Requests go to one address as long as it answers and to the next one when it does
 * not; each has a bound on its time. A node that does not answer is, to a worker, a store that is away: it waits and asks again.
 * A key that is refused ends the worker, and so does a service that speaks none of its versions.
 */
import type { Dispatcher } from 'undici'
import type { Log } from '../../../lib/log.ts'
import { loadUndici } from '../../../lib/outbound/exchange.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { type Refusal, ServiceError, storeUnavailable } from '../../domain/errors.ts'

export interface Hello {
  readonly service_id: string
  readonly version: string
  readonly protocol_versions: readonly number[]
  readonly key_id: string
  readonly pools: readonly string[]
  readonly lease_ms: number
  readonly max_wait_ms: number
  readonly piece_bytes: number
  readonly time_ms: number
}

export interface GatewayCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Behind `/worker/v1`, with its query. */
  readonly path: string
  readonly json?: object
  readonly bytes?: Uint8Array
  readonly range?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly withinMs?: number
  readonly signal?: AbortSignal
}

export interface GatewayClient extends AsyncDisposable {
  /** Throws ServiceError. */
  hello(): Promise<Hello>
  /** The JSON of the answer; null: it has no content. Throws ServiceError. */
  call<Answer>(call: GatewayCall): Promise<Answer | null>
  /** The answer as it streams. Throws ServiceError. */
  open(call: GatewayCall): Promise<Dispatcher.ResponseData>
  /** Where the next request goes, and what it shows. */
  address(): { readonly url: string; readonly headers: Readonly<Record<string, string>> }
  /** Resolves when this worker can never go on: its key is refused, or nobody speaks its version. */
  readonly refused: Promise<ServiceError>
  /** Looks whether the key still counts; called when something other than a request was refused. */
  confirm(): void
}

interface GatewayClientOptions {
  /** Of nodes of one service, each `https://host` with an optional path. */
  readonly urls: readonly string[]
  readonly key: string
  readonly instanceId: string
  /** Those that this program speaks. */
  readonly versions: readonly number[]
  readonly log: Log
}

const CALL_MS = 30_000
const CONFIRM_MS = 10_000
const IDLE_MS = 60_000
const KEEP_ALIVE_MS = 30_000
// A key that was made a moment ago may be unknown to a node for two seconds; one that was revoked stays refused.
const CONFIRM_AFTER_MS = [400, 900, 1500]
// What a node says of itself, and not of what it was asked for.
const AWAY: ReadonlySet<string> = new Set(['store_unavailable', 'overloaded', 'shutting_down'])
// Said by whatever stands before the nodes.
const AWAY_STATUS = new Set([429, 502, 503, 504])

export function openGatewayClient(options: GatewayClientOptions): GatewayClient {
  const { urls, key, instanceId, log } = options
  const { Agent, request } = loadUndici()
  const agent = new Agent({
    keepAliveTimeout: KEEP_ALIVE_MS,
    connect: { timeout: 10_000 },
    pipelining: 1,
    allowH2: false,
  })
  const ended = Promise.withResolvers<ServiceError>()
  let at = 0
  let version = Math.max(...options.versions)
  let isConfirming = false
  let isClosed = false

  const headersNow = () => ({
    authorization: `Bearer ${key}`,
    'atelier-worker-version': String(version),
    'atelier-worker-instance': instanceId,
  })

  async function send(call: GatewayCall): Promise<Dispatcher.ResponseData> {
    const { method, path, json, bytes, range, signal } = call
    const over = AbortSignal.timeout(call.withinMs ?? CALL_MS)
    const began = at
    try {
      const response = await request(`${urls[at]}/worker/v1${path}`, {
        dispatcher: agent,
        method,
        headers: {
          ...call.headers,
          ...headersNow(),
          ...(json !== undefined && { 'content-type': 'application/json' }),
          ...(bytes !== undefined && { 'content-type': 'application/octet-stream' }),
          ...(range !== undefined && { range }),
        },
        body: json === undefined ? bytes : JSON.stringify(json),
        signal: signal === undefined ? over : AbortSignal.any([signal, over]),
        headersTimeout: 0,
        bodyTimeout: IDLE_MS,
      })
      if (response.statusCode < 300) return response
      throw await toRefusal(response)
    } catch (error) {
      if (error instanceof ServiceError) throw error
      if (signal?.aborted === true) throw error
      // Whatever broke, the next node may answer.
      if (at === began) at = (at + 1) % urls.length
      throw storeUnavailable(error)
    }
  }

  async function toRefusal(response: Dispatcher.ResponseData): Promise<ServiceError> {
    const text = await response.body.text()
    const { type, message, details } = readError(text)
    const { statusCode } = response
    if (type === null ? AWAY_STATUS.has(statusCode) : AWAY.has(type)) {
      at = (at + 1) % urls.length
      return storeUnavailable(new Error(`${statusCode}: ${message}`))
    }
    if (statusCode === 401) confirm()
    if (statusCode === 426) void renegotiate()
    const refusal = (statusCode === 401 ? 'unauthorized' : (type ?? 'invalid_request')) as Refusal
    return new ServiceError(refusal, message, details === null ? {} : { details })
  }

  async function hello(): Promise<Hello> {
    const response = await send({ method: 'GET', path: '/hello' })
    const told = (await response.body.json()) as Hello
    const common = told.protocol_versions.filter((each) => options.versions.includes(each))
    if (common.length === 0) {
      const refused = new ServiceError(
        'invalid_request',
        `the service speaks version ${told.protocol_versions.join(' and ')} of the worker protocol, this worker ${options.versions.join(' and ')}: upgrade the older of the two`,
      )
      ended.resolve(refused)
      throw refused
    }
    version = Math.max(...common)
    return told
  }

  function confirm(): void {
    if (isConfirming) return
    isConfirming = true
    void confirmNow().finally(() => {
      isConfirming = false
    })
  }

  /** Ends the worker unless some node accepts the key. */
  async function confirmNow(): Promise<void> {
    for (const pauseMs of CONFIRM_AFTER_MS) {
      await sleep(pauseMs)
      if (isClosed) return
      const answers = await Promise.all(urls.map(askAt))
      // Whatever else is wrong with it, it is not the key. Nor do those that do not answer say anything about it.
      if (answers.some((status) => status !== null && status !== 401) || !answers.includes(401)) return
    }
    log.error({}, 'the service refuses the key of this worker: it is wrong, expired or revoked')
    ended.resolve(
      new ServiceError('unauthorized', 'the service refuses the key of this worker: it is wrong, expired or revoked'),
    )
  }

  /** The status with which a node answers to the key; null: it does not answer. */
  async function askAt(url: string): Promise<number | null> {
    try {
      const { statusCode, body } = await request(`${url}/worker/v1/hello`, {
        ...{ dispatcher: agent, headers: headersNow(), signal: AbortSignal.timeout(CONFIRM_MS) },
      })
      await body.dump()
      // Something before the node that cannot reach it knows nothing about the key.
      return AWAY_STATUS.has(statusCode) ? null : statusCode
    } catch {
      return null
    }
  }

  async function renegotiate(): Promise<void> {
    await hello().catch((error: unknown) =>
      log.warn({ err: error }, 'no version of the worker protocol could be agreed on'),
    )
  }

  return {
    hello,
    async call<Answer>(call: GatewayCall) {
      const response = await send(call)
      try {
        if (response.statusCode === 204) {
          await response.body.dump()
          return null
        }
        return (await response.body.json()) as Answer
      } catch (error) {
        if (call.signal?.aborted === true) throw error
        throw storeUnavailable(error)
      }
    },
    open: send,
    address: () => ({ url: urls[at] ?? '', headers: headersNow() }),
    refused: ended.promise,
    confirm,
    async [Symbol.asyncDispose]() {
      isClosed = true
      await agent.destroy()
    },
  }
}

interface ReadError {
  /** null: something in between has answered. */
  readonly type: string | null
  readonly message: string
  readonly details: Readonly<Record<string, unknown>> | null
}

function readError(text: string): ReadError {
  try {
    const { error } = JSON.parse(text) as {
      error: { type: string; message: string; details?: Record<string, unknown> }
    }
    return { type: String(error.type), message: String(error.message), details: error.details ?? null }
  } catch {
    return { type: null, message: 'the service answered with something else than its protocol', details: null }
  }
}
