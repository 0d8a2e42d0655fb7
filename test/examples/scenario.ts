/** What the examples of an API show, in the order in which they can be asked of a service. */
import type { Examples } from '../../lib/openapi/examples.ts'
import { type Answer, call } from '../support/clients/call.ts'

/** A service, and what is known of it by name: an id in an answer, a key. */
export interface World extends AsyncDisposable {
  readonly url: string
  readonly token: string | null
  readonly values: Map<string, string>
}

export interface Step {
  readonly operation: string
  /** `$name` stands for what is known by this name. */
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  /** What is known from then on: names, and where the answer has them. */
  readonly keeps?: Readonly<Record<string, readonly (string | number)[]>>
  /** What has to have happened before. */
  readonly before?: (world: World) => Promise<void>
  /** The answer is long and says little, or is a file. */
  readonly isUntold?: boolean
}

export interface Scenario {
  /** The document, below `spec/`. */
  readonly source: string
  readonly name: string
  start(): Promise<World>
  readonly steps: readonly Step[]
}

export function fill(value: unknown, values: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string')
    return value.replace(/\$([a-z]\w*)/g, (whole, name: string) => values.get(name) ?? whole)
  if (Array.isArray(value)) return value.map((each) => fill(each, values))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fill(each, values)]))
}

export function keep({ keeps = {} }: Step, answer: unknown, values: Map<string, string>): void {
  for (const [name, path] of Object.entries(keeps)) {
    const found = path.reduce<unknown>((value, part) => (value as Record<string | number, unknown>)?.[part], answer)
    if (found === undefined)
      throw new Error(`the answer has no ${path.join('.')} for $${name}: ${JSON.stringify(answer)}`)
    values.set(name, String(found))
  }
}

/** Asks beside the scenario. */
export async function ask(
  world: Pick<World, 'url' | 'token'>,
  method: string,
  path: string,
  body?: unknown,
  more: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const headers = { ...(world.token !== null && { authorization: `Bearer ${world.token}` }), ...more }
  const text = body === undefined ? undefined : JSON.stringify(body)
  const answer = await call(world.url, path, { method, headers, body: text })
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
  return answer
}

export type { Examples }
