/** Plain calls of the v1 API. Bodies are read as they are; numbers beyond a double stay visible in `text`. */
import assert from 'node:assert/strict'
import { waitUntil } from '../wait-until.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
export type Json = any

export interface LegacyAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly bytes: Buffer
  readonly json: Json
}

export class LegacyClient {
  readonly url: string
  readonly #headers: Readonly<Record<string, string>>

  constructor(url: string, headers: Readonly<Record<string, string>> = {}) {
    this.url = url
    this.#headers = headers
  }

  async call(path: string, init: RequestInit = {}): Promise<LegacyAnswer> {
    const headers = { ...this.#headers, ...(init.headers as Record<string, string>) }
    const response = await fetch(this.url + path, { redirect: 'manual', ...init, headers })
    const bytes = Buffer.from(await response.arrayBuffer())
    const text = bytes.toString('utf8')
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
    return { status: response.status, headers: response.headers, bytes, text, json: isJson ? JSON.parse(text) : null }
  }

  get(path: string): Promise<LegacyAnswer> {
    return this.call(path)
  }

  post(path: string, body: unknown = {}): Promise<LegacyAnswer> {
    return this.call(path, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) })
  }

  prompt(prompt: object, rest: object = {}): Promise<LegacyAnswer> {
    return this.post('/prompt', { prompt, ...rest })
  }

  async accepted(prompt: object, rest: object = {}): Promise<string> {
    const answer = await this.prompt(prompt, rest)
    assert.equal(answer.status, 200, answer.text)
    return answer.json.prompt_id
  }

  upload(name: string, bytes: Uint8Array, fields: Readonly<Record<string, string>> = {}): Promise<LegacyAnswer> {
    const form = new FormData()
    form.append('image', new Blob([new Uint8Array(bytes)]), name)
    for (const [field, value] of Object.entries(fields)) form.append(field, value)
    return this.call('/upload/image', { method: 'POST', body: form })
  }

  /** The history entry, once there is one. */
  async untilHistory(id: string): Promise<Json> {
    return waitUntil(async () => (await this.get(`/history/${id}`)).json[id])
  }

  async untilStatus(id: string, word: string): Promise<void> {
    await waitUntil(async () => (await this.get(`/api/job/${id}/status`)).json.status === word)
  }
}
