/**
 * The calls that `run` makes to a server of the Jobs API v2, over plain fetch. It follows the links that the server gives instead
 * of building addresses, and sends the token to the server's own origin only.
 */
import { randomUUID } from 'node:crypto'
import { openAsBlob } from 'node:fs'
import path from 'node:path'
import { typeFromName } from '../../../lib/files/mime.ts'
import {
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { ENV } from '../../config/env.ts'
import { CommandError, EXIT, toPrintable } from '../terminal.ts'
import { type Conversion, type JobView, readConversion, readJob, toErrorLines, toFields } from './job-answers.ts'
import { RESUMABLE_FROM_BYTES, sendResumable } from './resumable-upload.ts'

export interface ClientOptions {
  readonly baseUrl: string
  readonly token: string | null
  /** Larger files are sent so that they can be continued; left out: those above 64 MiB. */
  readonly resumableFromBytes?: number
}

/** The server could not be reached, or the connection broke: the request may be tried again. */
export class UnreachableError extends Error {}

/** The server answered, with a refusal. */
export class RefusedError extends Error {
  readonly status: number
  readonly lines: readonly string[]
  readonly retryAfterSeconds: number | null
  /** The body of the answer. */
  readonly answer: JsonValue

  constructor(status: number, lines: readonly string[], retryAfterSeconds: number | null, answer: JsonValue) {
    super(lines[0])
    this.status = status
    this.lines = lines
    this.retryAfterSeconds = retryAfterSeconds
    this.answer = answer
  }
}

/** What the built-in engine refuses without a server, as a server would. */
export function refusedHere(message: string, nodeErrors: object): RefusedError {
  const body = { error: { code: 'invalid_workflow', message, details: { node_errors: nodeErrors } } }
  const lines = toErrorLines(body, 422).map(toPrintable)
  return new RefusedError(422, lines, null, parseLosslessJson(JSON.stringify(body)))
}

// A poll or a submit without an answer for this long has failed. Uploads and downloads have no such limit.
const ANSWER_WITHIN_MS = 30_000
const PASSING: ReadonlySet<number> = new Set([409, 423, 429])
// As long as the official clients retry when the queue is full.
const KEEP_SUBMITTING_MS = 60_000

/** Checks the address before any request: a malformed one is a mistake in the call, not a server that cannot be reached. */
export function readBaseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    throw new CommandError(
      `--base-url ${JSON.stringify(text)} is not an http(s) address, such as http://127.0.0.1:8189`,
      EXIT.usage,
    )
  }
  return url.href.replace(/\/+$/, '')
}

/** An absolute link stays as it is; `/…/api/…` is resolved against the origin, anything else against the base. */
export function resolveLink(link: string, baseUrl: string): string {
  if (URL.canParse(link)) return link
  if (link.startsWith('/') && link.includes('/api/')) return new URL(link, baseUrl).href
  return `${baseUrl}/api/v2${link.startsWith('/') ? link : `/${link}`}`
}

export class RunClient {
  readonly baseUrl: string
  readonly #token: string | null
  readonly #resumableFromBytes: number
  readonly #origin: string

  constructor({ baseUrl, token, resumableFromBytes = RESUMABLE_FROM_BYTES }: ClientOptions) {
    this.baseUrl = baseUrl
    this.#token = token
    this.#resumableFromBytes = resumableFromBytes
    this.#origin = new URL(baseUrl).origin
  }

  /** Any other request, without a limit of time. */
  async call(link: string, init: RequestInit): Promise<Response> {
    const url = resolveLink(link, this.baseUrl)
    const headers = new Headers(init.headers)
    const isOwn = new URL(url).origin === this.#origin
    if (this.#token !== null && isOwn) headers.set('Authorization', `Bearer ${this.#token}`)
    const response = await fetch(url, { ...init, headers }).catch((error: unknown) => {
      if (init.signal?.aborted && !isTimeout(init.signal.reason)) throw error
      throw new UnreachableError(`cannot reach ${url}: ${toReason(error)}`)
    })
    if (response.ok) return response
    throw await toRefusal(response, isOwn && response.status === 401 ? [this.#tokenHint()] : [])
  }

  /** Sends what makes something, with a key of its own, until it is taken. */
  async post(link: string, content: JsonObject, signal: AbortSignal): Promise<JsonValue> {
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': randomUUID() }
    const body = stringifyLosslessJson(content)
    const giveUpAt = Date.now() + KEEP_SUBMITTING_MS
    while (true) {
      try {
        // Not aborted by the caller's signal: a submit on its way may create the job, and only its answer says which to cancel.
        return await this.#callForJson(link, { method: 'POST', headers, body })
      } catch (error) {
        const waitMs =
          error instanceof RefusedError && error.status === 429 ? (error.retryAfterSeconds ?? 2) * 1000 : null
        if (waitMs === null || Date.now() + waitMs > giveUpAt) throw error
        await sleep(waitMs, signal)
        signal.throwIfAborted()
      }
    }
  }

  /** Uploads a file and returns the reference that stands for it in a workflow. It is named as it is on this machine, if not otherwise. */
  async upload(file: string, signal: AbortSignal, name = path.basename(file)): Promise<JsonObject> {
    const contentType = typeFromName(name) ?? 'application/octet-stream'
    // A blob backed by the file, which is read while it is sent.
    const bytes = await openAsBlob(file, { type: contentType })
    const assetId =
      bytes.size > this.#resumableFromBytes ? await this.#sendInOneOrMore(bytes, { name, contentType, signal }) : null
    if (assetId !== null) return { __type: 'core/ASSET', info: { id: assetId, file_path: name } }
    const form = new FormData()
    form.set('content_type', contentType)
    form.set('file_path', name)
    form.set('file', bytes, path.basename(name))
    const response = await this.call('/assets', {
      method: 'POST',
      headers: { 'Idempotency-Key': randomUUID() },
      body: form,
      signal,
    })
    const asset = toFields(await response.json())
    const info: JsonObject = { id: String(asset['id']) }
    if (typeof asset['hash'] === 'string') info['hash'] = asset['hash']
    info['file_path'] = name
    return { __type: 'core/ASSET', info }
  }

  /** A workflow as the editor saves it, in the form that `submit` takes. */
  async convert(content: JsonObject, signal: AbortSignal): Promise<Conversion> {
    const headers = { 'Content-Type': 'application/json' }
    const body = stringifyLosslessJson(content)
    const response = await this.call('/workflows/convert', { method: 'POST', headers, body, signal })
    return readConversion(parseLosslessJson(await response.text()))
  }

  async submit(workflow: JsonValue, signal: AbortSignal): Promise<JobView> {
    return readJob(await this.post('/jobs', { workflow }, signal))
  }

  /** An answer that is neither a job nor a file. */
  read(link: string, signal: AbortSignal): Promise<JsonValue> {
    return this.#callForJson(link, { signal })
  }

  async job(link: string, signal: AbortSignal): Promise<JobView> {
    return readJob(await this.#callForJson(link, { signal }))
  }

  async cancel(link: string, signal: AbortSignal): Promise<JobView> {
    return readJob(await this.#callForJson(link, { method: 'POST', signal }))
  }

  /** Resolves to the answer whose body is the event stream; throws refusals. */
  events(link: string, signal: AbortSignal): Promise<Response> {
    return this.call(link, { headers: { Accept: 'text/event-stream' }, signal })
  }

  download(url: string, signal: AbortSignal): Promise<Response> {
    return this.call(url, { signal })
  }

  #tokenHint(): string {
    if (this.#token === null) return `  no token was given: name one with --token, or in ${ENV.token}`
    return `  the token of --token or ${ENV.token} is not one that this server knows`
  }

  async #callForJson(link: string, init: RequestInit): Promise<JsonValue> {
    const timeout = AbortSignal.timeout(ANSWER_WITHIN_MS)
    const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout
    const response = await this.call(link, { ...init, signal })
    try {
      return parseLosslessJson(await response.text())
    } catch (error) {
      if (init.signal?.aborted) throw init.signal.reason
      throw new UnreachableError(`the answer of ${response.url} broke off: ${toReason(error)}`)
    }
  }

  /** null: this server takes every upload in one request. */
  async #sendInOneOrMore(
    bytes: Blob,
    { name, contentType, signal }: { name: string; contentType: string; signal: AbortSignal },
  ): Promise<string | null> {
    const metadata = { file_path: name, content_type: contentType }
    try {
      return await sendResumable(bytes, { call: (link, init) => this.call(link, init), metadata, mayPass, signal })
    } catch (error) {
      if (error instanceof RefusedError && (error.status === 404 || error.status === 405)) return null
      throw error
    }
  }
}

/** A broken line, a server that starts again, and an upload that its former request still holds. */
export function mayPass(error: unknown): boolean {
  if (error instanceof UnreachableError) return true
  return error instanceof RefusedError && (PASSING.has(error.status) || error.status >= 500)
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof Error && reason.name === 'TimeoutError'
}

function toReason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : null
  return code ?? (cause instanceof Error ? cause.message : String(cause))
}

export async function toRefusal(response: Response, hints: readonly string[] = []): Promise<RefusedError> {
  const { status } = response
  const none = { error: { code: `http_${status}`, message: 'the server gave no reason' } }
  const body = await response
    .text()
    .then(parseLosslessJson)
    .catch(() => none)
  const retryAfter = response.headers.get('Retry-After') ?? ''
  const seconds = /^\d{1,5}$/.test(retryAfter) ? Math.max(1, Number(retryAfter)) : null
  const lines = [...toErrorLines(body, status), ...hints].map(toPrintable)
  return new RefusedError(status, lines, seconds, body)
}
