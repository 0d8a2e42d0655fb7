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
  /** Absent: the service is older than this right. */
  readonly builds?: boolean
  readonly lease_ms: number
  readonly max_wait_ms: number
  readonly piece_bytes: number
  readonly time_ms: number
}

export interface GatewayCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Behind `/worker/v1`, with its query. */
  readonly path: string
  /** The path is one of the service itself, and shows its right by itself: the key stays here. */
  readonly isLink?: boolean
  readonly json?: object
  readonly bytes?: Uint8Array
  readonly range?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly withinMs?: number
  readonly signal?: AbortSignal
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

export class GatewayClient implements AsyncDisposable {
  /** Resolves when this worker can never go on: its key is refused, or nobody speaks its version. */
  readonly refused: Promise<ServiceError>
  readonly #deps: GatewayClientOptions
  readonly #agent: Dispatcher
  readonly #ended = Promise.withResolvers<ServiceError>()
  #at = 0
  #version: number
  #isConfirming = false
  #isClosed = false

  constructor(deps: GatewayClientOptions) {
    this.#deps = deps
    this.refused = this.#ended.promise
    this.#agent = new (loadUndici().Agent)({
      keepAliveTimeout: KEEP_ALIVE_MS,
      connect: { timeout: 10_000 },
      pipelining: 1,
      allowH2: false,
    })
    this.#version = Math.max(...deps.versions)
  }

  /** Throws ServiceError. */
  async hello(): Promise<Hello> {
    const response = await this.#send({ method: 'GET', path: '/hello' })
    const told = (await response.body.json()) as Hello
    const common = told.protocol_versions.filter((each) => this.#deps.versions.includes(each))
    if (common.length === 0) {
      const refused = new ServiceError(
        'invalid_request',
        `the service speaks version ${told.protocol_versions.join(' and ')} of the worker protocol, this worker ${this.#deps.versions.join(' and ')}: upgrade the older of the two`,
      )
      this.#ended.resolve(refused)
      throw refused
    }
    this.#version = Math.max(...common)
    return told
  }

  /** Looks whether the key still counts; called when something other than a request was refused. */
  confirm(): void {
    if (this.#isConfirming) return
    this.#isConfirming = true
    void this.#confirmNow().finally(() => {
      this.#isConfirming = false
    })
  }

  /** The JSON of the answer; null: it has no content. Throws ServiceError. */
  async call<Answer>(call: GatewayCall): Promise<Answer | null> {
    const response = await this.#send(call)
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
  }

  /** The answer as it streams. Throws ServiceError. */
  open(call: GatewayCall): Promise<Dispatcher.ResponseData> {
    return this.#send(call)
  }

  /** Where the next request goes, and what it shows. */
  address(): { readonly url: string; readonly headers: Readonly<Record<string, string>> } {
    return { url: this.#deps.urls[this.#at] ?? '', headers: this.#headersNow() }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await this.#agent.destroy()
  }

  #headersNow(): Readonly<Record<string, string>> {
    return {
      authorization: `Bearer ${this.#deps.key}`,
      'atelier-worker-version': String(this.#version),
      'atelier-worker-instance': this.#deps.instanceId,
    }
  }

  async #send(call: GatewayCall): Promise<Dispatcher.ResponseData> {
    const { method, path, json, bytes, range, signal } = call
    const over = AbortSignal.timeout(call.withinMs ?? CALL_MS)
    const began = this.#at
    try {
      const response = await loadUndici().request(
        `${this.#deps.urls[this.#at]}${call.isLink === true ? '' : '/worker/v1'}${path}`,
        {
          dispatcher: this.#agent,
          method,
          headers: {
            ...call.headers,
            ...(call.isLink !== true && this.#headersNow()),
            ...(json !== undefined && { 'content-type': 'application/json' }),
            ...(bytes !== undefined && { 'content-type': 'application/octet-stream' }),
            ...(range !== undefined && { range }),
          },
          body: json === undefined ? bytes : JSON.stringify(json),
          signal: signal === undefined ? over : AbortSignal.any([signal, over]),
          headersTimeout: 0,
          bodyTimeout: IDLE_MS,
        },
      )
      if (response.statusCode < 300) return response
      throw await this.#toRefusal(response)
    } catch (error) {
      if (error instanceof ServiceError) throw error
      if (signal?.aborted === true) throw error
      // Whatever broke, the next node may answer.
      if (this.#at === began) this.#at = (this.#at + 1) % this.#deps.urls.length
      throw storeUnavailable(error)
    }
  }

  async #toRefusal(response: Dispatcher.ResponseData): Promise<ServiceError> {
    const text = await response.body.text()
    const { type, message, details } = readError(text)
    const { statusCode } = response
    if (type === null ? AWAY_STATUS.has(statusCode) : AWAY.has(type)) {
      this.#at = (this.#at + 1) % this.#deps.urls.length
      return storeUnavailable(new Error(`${statusCode}: ${message}`))
    }
    if (statusCode === 401) this.confirm()
    if (statusCode === 426) void this.#renegotiate()
    const refusal = (statusCode === 401 ? 'unauthorized' : (type ?? 'invalid_request')) as Refusal
    return new ServiceError(refusal, message, details === null ? {} : { details })
  }

  /** Ends the worker unless some node accepts the key. */
  async #confirmNow(): Promise<void> {
    for (const pauseMs of CONFIRM_AFTER_MS) {
      await sleep(pauseMs)
      if (this.#isClosed) return
      const answers = await Promise.all(this.#deps.urls.map((url) => this.#askAt(url)))
      // Whatever else is wrong with it, it is not the key. Nor do those that do not answer say anything about it.
      if (answers.some((status) => status !== null && status !== 401) || !answers.includes(401)) return
    }
    this.#deps.log.error({}, 'the service refuses the key of this worker: it is wrong, expired or revoked')
    this.#ended.resolve(
      new ServiceError('unauthorized', 'the service refuses the key of this worker: it is wrong, expired or revoked'),
    )
  }

  /** The status with which a node answers to the key; null: it does not answer. */
  async #askAt(url: string): Promise<number | null> {
    try {
      const { statusCode, body } = await loadUndici().request(`${url}/worker/v1/hello`, {
        ...{ dispatcher: this.#agent, headers: this.#headersNow(), signal: AbortSignal.timeout(CONFIRM_MS) },
      })
      await body.dump()
      // Something before the node that cannot reach it knows nothing about the key.
      return AWAY_STATUS.has(statusCode) ? null : statusCode
    } catch {
      return null
    }
  }

  async #renegotiate(): Promise<void> {
    await this.hello().catch((error: unknown) =>
      this.#deps.log.warn({ err: error }, 'no version of the worker protocol could be agreed on'),
    )
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
