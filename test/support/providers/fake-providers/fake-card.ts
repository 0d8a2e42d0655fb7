/**
 * The base of every fake provider: a server that behaves as the provider's documentation says, in the scenario that the test sets.
 * It counts generations (what a real provider would charge for) and records every request with its headers.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { type HttpFake, readBody, startHttpFake } from '../http-fake.ts'

export interface FakeRequest {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly raw: Buffer
  /** null when the body is no JSON object. */
  readonly json: Record<string, unknown> | null
}

export interface FakeAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  readonly body?: string | Buffer
  /** The connection breaks in the middle of the answer. */
  readonly breaksOff?: boolean
}

export interface FakeCall {
  readonly request: FakeRequest
  /** The groups of the route's pattern. */
  readonly params: readonly string[]
  readonly scenario: string
  /** The address of this server under another host name: every name leads here in tests. */
  at(host: string, path: string): string
  /** One more generation; gives its id. */
  begin(): string
  /** How often this id was asked for before, this time included. */
  countPoll(id: string): number
  /** How often this scenario's submit was called, this time included. */
  readonly submits: number
  /** How many looks find the task still running. */
  readonly pendingPolls: number
  /** What the provider remembers between calls. */
  readonly memory: Map<string, string>
}

export type FakeRoute = readonly [method: string, path: RegExp, answer: (call: FakeCall) => FakeAnswer]

export interface FakeCard {
  readonly provider: string
  /** What stands before every path, as in the provider's base URL. */
  readonly basePath: string
  readonly key: string
  readonly isKnown: (headers: IncomingHttpHeaders) => boolean
  readonly unauthorized: FakeAnswer
  readonly routes: readonly FakeRoute[]
}

export interface FakeProvider extends HttpFake {
  readonly card: FakeCard
  readonly baseUrl: string
  scenario: string
  pendingPolls: number
  readonly generations: number
  /** How many tasks were asked about. */
  readonly polled: number
  readonly requests: readonly FakeRequest[]
  /** What an answer waits for before it leaves: by then the provider has done its work. */
  hold: ((request: FakeRequest, answer: FakeAnswer) => Promise<void>) | null
  reset(scenario: string): void
}

interface FakeProviderOptions {
  /** For clients that read what they are given: every address leads to this server, and pictures and films are whole. */
  readonly isReadable?: boolean
}

export async function startFakeProvider(
  card: FakeCard,
  { isReadable = false }: FakeProviderOptions = {},
): Promise<FakeProvider> {
  const state = {
    scenario: 'success',
    pendingPolls: 2,
    generations: 0,
    submits: 0,
    polls: new Map<string, number>(),
    requests: [] as FakeRequest[],
    memory: new Map<string, string>(),
    hold: null as FakeProvider['hold'],
  }

  function answer(request: FakeRequest, port: number): FakeAnswer {
    if (request.path.startsWith('/assets/')) return deliver(request, state.scenario)
    const path = request.path.startsWith(card.basePath) ? request.path.slice(card.basePath.length) : null
    const route = card.routes.find(
      ([method, pattern]) => method === request.method && path !== null && pattern.test(path),
    )
    if (route === undefined || path === null)
      return { status: 404, json: { error: `no route ${request.method} ${request.path}` } }
    if (!card.isKnown(request.headers)) return card.unauthorized
    const [method, pattern, respond] = route
    if (method === 'POST') state.submits++
    return respond({
      request,
      params: pattern.exec(path)?.slice(1) ?? [],
      scenario: state.scenario,
      submits: state.submits,
      pendingPolls: state.pendingPolls,
      memory: state.memory,
      at: (host, rest) => `http://${isReadable ? '127.0.0.1' : host}:${port}${rest}`,
      begin: () => `task-${++state.generations}`,
      countPoll(id) {
        const count = (state.polls.get(id) ?? 0) + 1
        state.polls.set(id, count)
        return count
      },
    })
  }

  const fake: HttpFake = await startHttpFake(async (incoming, response) => {
    const url = new URL(incoming.url ?? '/', 'http://fake')
    const raw = await readBody(incoming)
    const { method = 'GET', headers } = incoming
    const request = { method, path: url.pathname, query: url.searchParams, headers, raw, json: toJson(raw) }
    state.requests.push(request)
    const ready = answer(request, fake.port)
    await state.hold?.(request, ready)
    const { status = 200, headers: more = {}, json, body, breaksOff } = ready
    response.writeHead(status, { ...(json === undefined ? {} : { 'content-type': 'application/json' }), ...more })
    if (breaksOff) return void response.write('{"da', () => response.destroy())
    const text = json === undefined ? body : JSON.stringify(json)
    response.end(isReadable && typeof text === 'string' ? toReadable(text, fake.url) : text)
  })

  return {
    ...fake,
    card,
    baseUrl: `${fake.url}${card.basePath}`,
    get scenario() {
      return state.scenario
    },
    set scenario(scenario) {
      state.scenario = scenario
    },
    get pendingPolls() {
      return state.pendingPolls
    },
    set pendingPolls(count) {
      state.pendingPolls = count
    },
    get generations() {
      return state.generations
    },
    get polled() {
      return state.polls.size
    },
    get requests() {
      return state.requests
    },
    get hold() {
      return state.hold
    },
    set hold(hold) {
      state.hold = hold
    },
    reset(scenario) {
      Object.assign(state, { scenario, generations: 0, submits: 0, polls: new Map(), requests: [], memory: new Map() })
    },
    [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose](),
  }
}

export const PNG_BYTES = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
  'base64',
)
const SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'
/** A film of 16 by 16 points and half a second. */
export const MP4_BYTES = Buffer.from(
  [
    'AAAAHGZ0eXBpc29tAAACAGlzb21pc28ybXA0MQAAAAhmcmVlAAAAK21kYXQAAAGzABAHAAABthMCjBHtv38AAAGzABAHAAABthcDjErb',
    '9wAAAzltb292AAAAbG12aGQAAAAAAAAAAAAAAAAAAAPoAAAB9AABAAABAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAEAAAAAAAAA',
    'AAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACAAACY3RyYWsAAABcdGtoZAAAAAMAAAAAAAAAAAAAAAEAAAAAAAAB',
    '9AAAAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAEAAAAAAEAAAABAAAAAAACRlZHRzAAAAHGVsc3QA',
    'AAAAAAAAAQAAAfQAAAAAAAEAAAAAAdttZGlhAAAAIG1kaGQAAAAAAAAAAAAAAAAAAEAAAAAgAFXEAAAAAAAtaGRscgAAAAAAAAAAdmlk',
    'ZQAAAAAAAAAAAAAAAFZpZGVvSGFuZGxlcgAAAAGGbWluZgAAABR2bWhkAAAAAQAAAAAAAAAAAAAAJGRpbmYAAAAcZHJlZgAAAAAAAAAB',
    'AAAADHVybCAAAAABAAABRnN0YmwAAADac3RzZAAAAAAAAAABAAAAym1wNHYAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAEAAQAEgAAABI',
    'AAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAY//8AAABgZXNkcwAAAAADgICATwABAASAgIBBIBEAAAAAAAIw',
    'AAAAAAWAgIAvAAABsAEAAAG1iRMAAAEAAAABIADEjYgAJQCEAhRjAAABskxhdmM2Mi4yOC4xMDIGgICAAQIAAAAUYnRydAAAAAAAAAIw',
    'AAAAAAAAABhzdHRzAAAAAAAAAAEAAAACAAAQAAAAABxzdHNjAAAAAAAAAAEAAAABAAAAAgAAAAEAAAAcc3RzegAAAAAAAAAAAAAAAgAA',
    'ABIAAAARAAAAFHN0Y28AAAAAAAAAAQAAACwAAABidWR0YQAAAFptZXRhAAAAAAAAACFoZGxyAAAAAAAAAABtZGlyYXBwbAAAAAAAAAAA',
    'AAAAAC1pbHN0AAAAJal0b28AAAAdZGF0YQAAAAEAAAAATGF2ZjYyLjEyLjEwMg==',
  ].join(''),
  'base64',
)

/** Made-up hosts and the first bytes of pictures and films, as most tests see them, become what can be read. */
function toReadable(text: string, url: string): string {
  return text
    .replace(/https?:\/\/(?!127\.)[^"/]+\//g, `${url}/assets/`)
    .replaceAll('"iVBORw0KGgo="', `"${PNG_BYTES.toString('base64')}"`)
    .replaceAll('"AAAAIGZ0eXBpc29t"', `"${MP4_BYTES.toString('base64')}"`)
}

/** The server that gives results out: it is another host than the API and must never see the key. */
function deliver({ path }: FakeRequest, scenario: string): FakeAnswer {
  if (scenario === 'assets gone' || (scenario === 'one asset gone' && path.includes('draft')))
    return { status: 404, body: 'gone' }
  if (scenario === 'assets are pages') return { headers: { 'content-type': 'text/html' }, body: '<html></html>' }
  if (path.endsWith('.mp4')) return { headers: { 'content-type': 'application/octet-stream' }, body: MP4_BYTES }
  if (path.endsWith('.svg')) return { headers: { 'content-type': 'image/svg+xml' }, body: SVG }
  return { headers: { 'content-type': 'image/png' }, body: PNG_BYTES }
}

function toJson(raw: Buffer): Record<string, unknown> | null {
  try {
    return JSON.parse(raw.toString('utf8'))
  } catch {
    return null
  }
}

export function bearer(key: string): FakeCard['isKnown'] {
  return ({ authorization }) => authorization === `Bearer ${key}`
}

/** The first submit is told to wait, the next is taken: what every rate limit comes down to. */
export function tooFastOnce(call: FakeCall, answer: FakeAnswer): FakeAnswer | null {
  return call.scenario === 'rate' && call.submits === 1 ? answer : null
}
