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

  constructor(status: number, lines: readonly string[], retryAfterSeconds: number | null) {
    super(lines[0])
    this.status = status
    this.lines = lines
    this.retryAfterSeconds = retryAfterSeconds
  }
}

export interface RunClient {
  readonly baseUrl: string
  /** Uploads a file and returns the reference that stands for it in a workflow. It is named as it is on this machine, if not otherwise. */
  upload(file: string, signal: AbortSignal, filePath?: string): Promise<JsonObject>
  submit(workflow: JsonValue, signal: AbortSignal): Promise<JobView>
  /** Sends what makes something, with a key of its own, until it is taken. */
  post(link: string, body: JsonObject, signal: AbortSignal): Promise<unknown>
  /** A workflow as the editor saves it, in the form that `submit` takes. */
  convert(content: JsonObject, signal: AbortSignal): Promise<Conversion>
  job(link: string, signal: AbortSignal): Promise<JobView>
  /** An answer that is neither a job nor a file. */
  read(link: string, signal: AbortSignal): Promise<unknown>
  cancel(link: string, signal: AbortSignal): Promise<JobView>
  /** Resolves to the answer whose body is the event stream; throws refusals. */
  events(link: string, signal: AbortSignal): Promise<Response>
  download(url: string, signal: AbortSignal): Promise<Response>
  /** Any other request, without a limit of time. */
  call(link: string, init: RequestInit): Promise<Response>
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

export function createRunClient({ baseUrl, token, ...options }: ClientOptions): RunClient {
  const { resumableFromBytes = RESUMABLE_FROM_BYTES } = options
  const origin = new URL(baseUrl).origin

  async function call(link: string, init: RequestInit): Promise<Response> {
    const url = resolveLink(link, baseUrl)
    const headers = new Headers(init.headers)
    if (token !== null && new URL(url).origin === origin) headers.set('Authorization', `Bearer ${token}`)
    const response = await fetch(url, { ...init, headers }).catch((error: unknown) => {
      if (init.signal?.aborted && !isTimeout(init.signal.reason)) throw error
      throw new UnreachableError(`cannot reach ${url}: ${toReason(error)}`)
    })
    if (response.ok) return response
    throw await toRefusal(response)
  }

  async function callForJson(link: string, init: RequestInit): Promise<unknown> {
    const timeout = AbortSignal.timeout(ANSWER_WITHIN_MS)
    const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout
    const response = await call(link, { ...init, signal })
    return response.json().catch((error: unknown) => {
      throw new UnreachableError(`the answer of ${response.url} broke off: ${toReason(error)}`)
    })
  }

  async function post(link: string, content: JsonObject, signal: AbortSignal): Promise<unknown> {
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': randomUUID() }
    const body = stringifyLosslessJson(content)
    const giveUpAt = Date.now() + KEEP_SUBMITTING_MS
    while (true) {
      try {
        // Not aborted by the caller's signal: a submit on its way may create the job, and only its answer says which to cancel.
        return await callForJson(link, { method: 'POST', headers, body })
      } catch (error) {
        const waitMs =
          error instanceof RefusedError && error.status === 429 ? (error.retryAfterSeconds ?? 2) * 1000 : null
        if (waitMs === null || Date.now() + waitMs > giveUpAt) throw error
        await sleep(waitMs, signal)
        signal.throwIfAborted()
      }
    }
  }

  /** null: this server takes every upload in one request. */
  async function sendInOneOrMore(
    bytes: Blob,
    { name, contentType, signal }: { name: string; contentType: string; signal: AbortSignal },
  ): Promise<string | null> {
    const metadata = { file_path: name, content_type: contentType }
    try {
      return await sendResumable(bytes, { call, metadata, mayPass, signal })
    } catch (error) {
      if (error instanceof RefusedError && (error.status === 404 || error.status === 405)) return null
      throw error
    }
  }

  async function upload(file: string, signal: AbortSignal, name = path.basename(file)): Promise<JsonObject> {
    const contentType = typeFromName(name) ?? 'application/octet-stream'
    // A blob backed by the file, which is read while it is sent.
    const bytes = await openAsBlob(file, { type: contentType })
    const assetId = bytes.size > resumableFromBytes ? await sendInOneOrMore(bytes, { name, contentType, signal }) : null
    if (assetId !== null) return { __type: 'core/ASSET', info: { id: assetId, file_path: name } }
    const form = new FormData()
    form.set('content_type', contentType)
    form.set('file_path', name)
    form.set('file', bytes, path.basename(name))
    const response = await call('/assets', {
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

  async function convert(content: JsonObject, signal: AbortSignal): Promise<Conversion> {
    const headers = { 'Content-Type': 'application/json' }
    const body = stringifyLosslessJson(content)
    const response = await call('/workflows/convert', { method: 'POST', headers, body, signal })
    return readConversion(parseLosslessJson(await response.text()))
  }

  return {
    baseUrl,
    upload,
    submit: async (workflow, signal) => readJob(await post('/jobs', { workflow }, signal)),
    post,
    convert,
    read: (link, signal) => callForJson(link, { signal }),
    job: async (link, signal) => readJob(await callForJson(link, { signal })),
    cancel: async (link, signal) => readJob(await callForJson(link, { method: 'POST', signal })),
    events: (link, signal) => call(link, { headers: { Accept: 'text/event-stream' }, signal }),
    download: (url, signal) => call(url, { signal }),
    call,
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

async function toRefusal(response: Response): Promise<RefusedError> {
  const body: unknown = await response.json().catch(() => null)
  const retryAfter = response.headers.get('Retry-After') ?? ''
  const seconds = /^\d{1,5}$/.test(retryAfter) ? Math.max(1, Number(retryAfter)) : null
  return new RefusedError(response.status, toErrorLines(body, response.status).map(toPrintable), seconds)
}
