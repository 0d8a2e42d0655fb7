/** One recorded HTTP exchange, sent again. Numbers are kept digit by digit on both ways. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'

export const RECORDINGS = fileURLToPath(new URL('../../fixtures/recordings/', import.meta.url))

interface RecordedFile {
  readonly filename: string
  readonly content: string
}

export interface Exchange {
  readonly request: {
    readonly method: string
    readonly path: string
    readonly headers?: Readonly<Record<string, string>>
    readonly json?: JsonValue
    readonly raw?: string
    readonly multipart?: Readonly<Record<string, string | RecordedFile>>
  }
  readonly response: {
    readonly status: number
    readonly headers: Readonly<Record<string, string>> | null
    readonly body: unknown
  }
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
  /** Parsed, or undefined when the body is no JSON. */
  readonly body: unknown
}

export function readExchanges(file: string): [name: string, exchange: Exchange][] {
  const found: [string, Exchange][] = []
  const walk = (name: string, value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if ('request' in value && 'response' in value) found.push([name, value as Exchange])
    else for (const [key, member] of Object.entries(value)) walk(name === '' ? key : `${name} / ${key}`, member)
  }
  walk('', parseLosslessJson(readFileSync(file, 'utf8')))
  return found
}

export async function sendExchange(url: string, { request }: Exchange): Promise<Answer> {
  const response = await fetch(url + request.path, {
    method: request.method,
    headers: { ...request.headers },
    body: toBody(request),
    redirect: 'manual',
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, bytes, body: parse(response, bytes) }
}

function toBody({ json, raw, multipart }: Exchange['request']): string | FormData | undefined {
  if (raw !== undefined) return raw
  if (json !== undefined) return stringifyLosslessJson(json)
  if (multipart === undefined) return undefined
  const form = new FormData()
  for (const [name, value] of Object.entries(multipart)) {
    if (typeof value === 'string') form.append(name, value)
    else form.append(name, new Blob([readFileSync(RECORDINGS + value.content)]), value.filename)
  }
  return form
}

function parse(response: Response, bytes: Buffer): unknown {
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  return isJson ? parseLosslessJson(bytes.toString('utf8')) : undefined
}
