/** Makes answers comparable: masks what differs between any two requests, and keeps everything else. */
import { type Answer, call } from '../support/clients/call.ts'
import type { IsolationRequest, IsolationSurface } from './surface.ts'
import type { World } from './world.ts'

const OWN_HEADERS = new Set(['date', 'x-service-request-id', 'x-comfy-request-id'])

/** Ids, hashes and times differ from request to request; what the request itself said may come back. */
function mask(text: string, said: readonly SaidPair[]): string {
  let masked = text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>')
    .replaceAll(/blake3:[0-9a-f]{64}/g, '<hash>')
    .replaceAll(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z/g, '<time>')
    .replaceAll(/X-Goog-Date=\w+/g, 'X-Goog-Date=<time>')
    .replaceAll(/"next_cursor":"[\w-]+"/g, '"next_cursor":"<cursor>"')
    .replaceAll(/signature=[\w-]{43}/g, 'signature=<signature>')
  for (const pair of said) for (const word of pair) masked = masked.replaceAll(word, '<named>')
  return masked
}

export type SaidPair = readonly string[]

export interface Comparable {
  readonly status: number
  /** In the order in which they came. */
  readonly headers: readonly string[]
  readonly body: string
}

export async function ask(world: World, surface: IsolationSurface, request: IsolationRequest): Promise<Answer> {
  const { method, path, headers, body } = request
  const { app, caller } = world
  const answer = await call(app.url, path, {
    method,
    body,
    headers: { authorization: `Bearer ${caller.key}`, ...headers },
  })
  await surface.settle?.(world, answer, request)
  return answer
}

/** What the two requests of a case say differently, word by word: a refusal may repeat what it was asked. */
export function differences(foreign: IsolationRequest, unknown: IsolationRequest): SaidPair[] {
  const words = ({ path, body = '' }: IsolationRequest) => `${path} ${body}`.split(/[^\w.:-]+/)
  const others = words(unknown)
  return words(foreign).flatMap((word, index) => (word === others[index] ? [] : [[word, others[index] ?? word]]))
}

export function toComparable(answer: Answer, said: readonly SaidPair[]): Comparable {
  const headers = Object.entries(answer.headers).filter(([name]) => !OWN_HEADERS.has(name))
  // A masked body has a length of its own; equal bodies have equal lengths in any case.
  const body = mask(answer.text, said)
  const shown = headers.map(([name, value]) => `${name}: ${mask(String(value), said)}`)
  return { status: answer.status, headers: shown, body }
}
