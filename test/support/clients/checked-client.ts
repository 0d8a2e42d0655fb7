/**
 * A client of the Jobs API that checks every answer against the specification, against the schemas of the official client, and
 * for the headers that every answer must have. Tests then check only what is special to them.
 */
import assert from 'node:assert/strict'
import { schemas } from '@comfyorg/sdk/low'
import { waitUntil } from '../wait-until.ts'
import { type Answer, type CallOptions, call } from './call.ts'
import { checkAgainstSchema, checkAgainstSpec } from './check-against-spec.ts'
import { type Frame, openEvents } from './event-reader.ts'

export interface WireOutput {
  readonly node_id: string
  readonly name: string
  readonly type: string
  readonly content_type: string
  readonly size_bytes: number
  readonly id: string
  readonly hash: string
  readonly url: string
  readonly url_expires_at: string
  readonly job_id: string
}

export interface WireJob {
  readonly id: string
  readonly status: string
  readonly created_at: string
  readonly started_at: string | null
  readonly completed_at: string | null
  readonly expires_at: string
  readonly queue_position: number | null
  readonly progress: Readonly<Record<string, unknown>> | null
  readonly outputs: readonly WireOutput[]
  readonly error: Readonly<Record<string, string | null>> | null
  readonly metrics: { readonly queue_ms: number | null; readonly execution_ms: number | null }
  readonly metadata: Readonly<Record<string, string>>
  readonly priority: number
  readonly outputs_reused: boolean
  readonly outputs_replaced: number
  readonly urls: { readonly self: string; readonly events: string; readonly cancel: string; readonly logs: string }
}

export interface WireAsset {
  readonly id: string
  readonly hash: string
  readonly size_bytes: number
  readonly content_type: string
  readonly file_path: string | null
  readonly created_at: string
  readonly expires_at: string | null
  readonly url: string
  readonly url_expires_at: string
  readonly created_new?: boolean
  readonly job_id?: string
}

export type Workflow = Readonly<Record<string, unknown>>
type Headers = CallOptions['headers']

const TEMPLATES = [
  '/api/v2/health',
  '/api/v2/openapi.json',
  '/api/v2/jobs',
  '/api/v2/jobs/validate',
  '/api/v2/jobs/{id}',
  '/api/v2/jobs/{id}/workflow',
  '/api/v2/jobs/{id}/logs',
  '/api/v2/jobs/{id}/events',
  '/api/v2/jobs/{id}/cancel',
  '/api/v2/assets',
  '/api/v2/assets/from-hash',
  '/api/v2/assets/from-path',
  '/api/v2/assets/uploads',
  '/api/v2/assets/uploads/parts',
  '/api/v2/assets/uploads/complete',
  '/api/v2/assets/uploads/abandon',
  '/api/v2/assets/by-hash/{hash}',
  '/api/v2/assets/{id}/content',
  '/api/v2/assets/{id}',
].map((template) => ({ template, pattern: new RegExp(`^${template.replace(/\{\w+\}/, '[^/]+')}$`) }))

const ZOD = {
  'POST /api/v2/jobs': schemas.zPostJobsResponse,
  'GET /api/v2/jobs/{id}': schemas.zGetJobResponse,
  'GET /api/v2/jobs/{id}/workflow': schemas.zGetJobWorkflowResponse,
  'POST /api/v2/jobs/{id}/cancel': schemas.zCancelJobResponse,
  'POST /api/v2/assets': schemas.zPostAssetsResponse,
  'POST /api/v2/assets/from-hash': schemas.zAssetFromHashResponse,
  'GET /api/v2/assets/{id}': schemas.zGetAssetResponse,
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const EVENT_SCHEMAS: Readonly<Record<string, string>> = {
  status: 'StatusEvent',
  progress: 'Progress',
  output: 'Output',
  preview: 'PreviewEvent',
  outputs_reset: 'OutputsResetEvent',
}
const TERMINAL = ['succeeded', 'failed', 'canceled', 'expired']

/** Throws when the answer breaks a rule that holds for every answer of this API. */
export function checkAnswer(method: string, path: string, answer: Answer): void {
  const where = `${method} ${path} -> ${answer.status} ${answer.text.slice(0, 300)}`
  const { headers } = answer
  assert.match(String(headers['x-service-request-id']), UUID, where)
  assert.equal(headers['x-comfy-request-id'], headers['x-service-request-id'], where)
  assert.equal(headers['x-content-type-options'], 'nosniff', where)
  if (answer.status === 429) assert.match(String(headers['retry-after']), /^[1-9]\d*$/, where)
  if (answer.status >= 400 && method !== 'HEAD') {
    assert.equal(headers['content-type'], 'application/json', where)
    checkAgainstSchema('ErrorEnvelope', answer.json)
    schemas.zErrorEnvelope.parse(answer.json)
  }
  const bare = path.split('?', 1)[0]
  const template = TEMPLATES.find(({ pattern }) => pattern.test(bare))?.template
  if (template === undefined || method === 'OPTIONS') return
  const isBytes = template.endsWith('/content') && answer.status < 400
  const isHead = method === 'HEAD' && !template.includes('by-hash')
  checkAgainstSpec(isHead ? 'GET' : method, template, answer.status, isBytes || isHead ? undefined : answer.json)
  if (answer.status < 300) ZOD[`${method} ${template}` as keyof typeof ZOD]?.parse(answer.json)
}

/** A frame of an event stream against the schema of its name. */
export function checkFrame({ event, data }: Frame): void {
  const schema = EVENT_SCHEMAS[event]
  if (schema !== undefined) checkAgainstSchema(schema, data)
  else assert.equal(event, 'comment', `an event that the contract does not have: ${event}`)
  if (event === 'output') schemas.zOutput.parse(data)
  if (event === 'progress') schemas.zProgress.parse(data)
}

export interface UploadOptions {
  readonly fields?: Readonly<Record<string, string | readonly string[]>>
  readonly headers?: Headers
}

export class CheckedClient {
  readonly url: string
  readonly #headers: Headers

  constructor(url: string, headers: Headers = {}) {
    this.url = url
    this.#headers = headers
  }

  async call(path: string, options: CallOptions = {}): Promise<Answer> {
    const answer = await call(this.url, path, { ...options, headers: { ...this.#headers, ...options.headers } })
    checkAnswer(options.method ?? 'GET', path, answer)
    return answer
  }

  /** `body` as text is sent as it stands. */
  submit(body: unknown, headers: Headers = {}): Promise<Answer> {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return this.call('/api/v2/jobs', { method: 'POST', headers, body: text })
  }

  /** Submits what must be accepted. */
  async accepted(workflow: Workflow, more: object = {}, headers: Headers = {}): Promise<WireJob> {
    const answer = await this.submit({ workflow, ...more }, headers)
    assert.equal(answer.status, 201, answer.text)
    return answer.json as WireJob
  }

  async job(id: string): Promise<WireJob> {
    const answer = await this.call(`/api/v2/jobs/${id}`)
    assert.equal(answer.status, 200, answer.text)
    return answer.json as WireJob
  }

  /** Polls until the job fulfils the condition. */
  async until(id: string, isWanted: (job: WireJob) => boolean): Promise<WireJob> {
    let last: WireJob | null = null
    const look = async () => {
      last = await this.job(id)
      return isWanted(last) ? last : null
    }
    return waitUntil(look, () => `${isWanted}, and not ${JSON.stringify(last)}`)
  }

  untilStatus(id: string, status: string): Promise<WireJob> {
    return this.until(id, (job) => {
      assert.ok(job.status === status || !TERMINAL.includes(job.status), `ended ${job.status}, not ${status}`)
      return job.status === status
    })
  }

  /** Submits and waits for the end, whatever it is. */
  async run(workflow: Workflow, more: object = {}): Promise<WireJob> {
    const { id } = await this.accepted(workflow, more)
    return this.until(id, ({ status }) => TERMINAL.includes(status))
  }

  cancel(id: string): Promise<Answer> {
    return this.call(`/api/v2/jobs/${id}/cancel`, { method: 'POST' })
  }

  /** Every frame of the job's stream until it ends. */
  async events(id: string): Promise<Frame[]> {
    using reader = openEvents(this.url, `/api/v2/jobs/${id}/events`)
    assert.match(await reader.head, /^HTTP\/1\.1 200 /)
    const frames = await reader.rest()
    for (const frame of frames) checkFrame(frame)
    return frames
  }

  /** Sends a form as the official clients do: fields first, then the file. */
  async upload(filePath: string, bytes: Uint8Array | string, options: UploadOptions = {}): Promise<Answer> {
    const form = new FormData()
    const fields = { content_type: 'image/png', file_path: filePath, ...options.fields }
    for (const [name, value] of Object.entries(fields)) for (const one of [value].flat()) form.append(name, one)
    form.append('file', new Blob([typeof bytes === 'string' ? bytes : new Uint8Array(bytes)]), filePath)
    const request = new Request('http://form.test', { method: 'POST', body: form })
    return this.call('/api/v2/assets', {
      method: 'POST',
      headers: { 'content-type': request.headers.get('content-type') ?? '', ...options.headers },
      body: Buffer.from(await request.arrayBuffer()),
    })
  }

  /** Uploads what must be accepted. */
  async uploaded(filePath: string, bytes: Uint8Array | string, options: UploadOptions = {}): Promise<WireAsset> {
    const answer = await this.upload(filePath, bytes, options)
    assert.ok(answer.status === 200 || answer.status === 201, answer.text)
    return answer.json as WireAsset
  }
}

export function refused(answer: Answer, status: number, code: string): Readonly<Record<string, unknown>> | null {
  assert.deepEqual([answer.status, answer.json?.error?.code], [status, code], answer.text)
  return answer.json.error.details
}

/** One node of a graph. */
export function node(classType: string, inputs: object = {}): object {
  return { class_type: classType, inputs }
}

/** A reference to an asset, as it stands in a workflow. */
export function assetRef(id: string): object {
  return { __type: 'core/ASSET', info: { id } }
}
