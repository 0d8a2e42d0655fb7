/** A `fetch` for the official client that notes every exchange and holds each answer against the contract. */
import { checkAnswer } from './checked-client.ts'

export interface Exchange {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: Headers
  /** JSON as it was sent; null for anything else. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  readonly body: any
  readonly status: number
}

export interface RecordedFetch {
  readonly fetch: typeof fetch
  readonly exchanges: readonly Exchange[]
  /** `METHOD path status` of everything so far. */
  lines(): string[]
  clear(): void
}

export interface RecordOptions {
  /** What stands before the routes. */
  readonly mountPrefix?: string
  /** Called before an answer is handed to the client, which gets what this returns. */
  readonly onAnswer?: (exchange: Exchange, response: Response) => Promise<Response> | Response
}

export function recordFetch({ mountPrefix = '', onAnswer }: RecordOptions = {}): RecordedFetch {
  const exchanges: Exchange[] = []
  return {
    exchanges,
    async fetch(input, init = {}) {
      const url = new URL(String(input))
      const response = await fetch(input, init)
      const method = init.method ?? 'GET'
      const path = url.pathname.slice(mountPrefix.length) + url.search
      const body = typeof init.body === 'string' ? JSON.parse(init.body) : null
      const exchange = { method, path, headers: new Headers(init.headers), body, status: response.status }
      exchanges.push(exchange)
      if (!path.endsWith('/events') && !path.endsWith('/content')) await check(exchange, response.clone())
      return onAnswer === undefined ? response : onAnswer(exchange, response)
    },
    lines: () => exchanges.map(({ method, path, status }) => `${method} ${path} ${status}`),
    clear: () => void exchanges.splice(0),
  }
}

async function check({ method, path }: Exchange, response: Response): Promise<void> {
  const bytes = Buffer.from(await response.arrayBuffer())
  const text = bytes.toString()
  const headers = Object.fromEntries(response.headers)
  const json = headers['content-type'] === 'application/json' && text !== '' ? JSON.parse(text) : undefined
  checkAnswer(method, path, { status: response.status, headers, bytes, text, json })
}
