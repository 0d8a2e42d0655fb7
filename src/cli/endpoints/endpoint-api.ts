/** The calls of endpoints that commands make, and the parts of the answers that they use; spec/jobs-v2.openapi.json describes all of it. */
import {
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { type RunClient, UnreachableError } from '../server/client.ts'

export interface InputWire {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly type: 'text' | 'integer' | 'number' | 'seed' | 'boolean' | 'choice' | 'file'
  readonly required: boolean
  readonly example: JsonValue
  readonly default?: JsonValue
  readonly minimum?: JsonValue
  readonly maximum?: JsonValue
  readonly min_length?: number
  readonly max_length?: number
  readonly pattern?: string | null
  readonly choices?: readonly JsonValue[]
  readonly open?: boolean
  readonly kind?: string
  readonly max_bytes?: number | null
  readonly max_pixels?: number | null
}

export interface OutputWire {
  readonly name: string
  readonly title: string
  readonly kind: string
}

export interface EndpointWire {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly owner: 'account' | 'service' | 'other_account'
  readonly state: string
  readonly current_version: number
  readonly latest_version: number
  readonly aliases: Readonly<Record<string, number>>
  readonly deployment: string | null
  readonly tool: boolean
  readonly callers: readonly string[]
  readonly updated_at: string
  readonly revision: number
  readonly missing?: JsonObject
  readonly urls: { readonly self: string; readonly runs: string }
}

export interface VersionSummaryWire {
  readonly version: number
  readonly hash: string
  readonly note: string
  readonly created_at: string
  readonly created_by: string | null
  readonly release?: ReleaseWire
}

/** `served`: the release that calls find where the version was published; null: none. */
export interface ReleaseWire {
  readonly deployment: string
  readonly version: number
  readonly pinned: boolean
  readonly served: number | null
}

export interface VersionWire extends VersionSummaryWire {
  readonly inputs: readonly InputWire[]
  readonly outputs: readonly OutputWire[]
}

export interface DifferenceWire {
  readonly name: string | null
  readonly breaking: boolean
  readonly message: string
}

export interface DraftWire {
  readonly inputs: readonly InputWire[]
  readonly outputs: readonly OutputWire[]
  readonly candidates: readonly InputWire[]
  readonly warnings: readonly JsonObject[]
  readonly missing: JsonObject
}

export interface PublishedWire {
  readonly endpoint: EndpointWire
  readonly version: VersionWire
  readonly is_new: boolean
  readonly differences: readonly DifferenceWire[]
  readonly warnings: readonly JsonObject[]
  readonly missing: JsonObject
}

// A large file has to be sent and converted.
const ANSWER_WITHIN_MS = 120_000

interface Asked {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly body?: JsonObject
  readonly headers?: Readonly<Record<string, string>>
}

/** `path` begins behind `/endpoints`. Numbers keep their digits; an answer without a body is null. Throws refusals. */
export async function askEndpoints<Answer>(
  client: Pick<RunClient, 'call'>,
  path: string,
  { method = 'GET', body, headers }: Asked = {},
): Promise<Answer> {
  const response = await client.call(`/endpoints${path}`, {
    method,
    headers: { ...headers, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
    ...(body !== undefined && { body: stringifyLosslessJson(body) }),
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  })
  const text = await response.text()
  try {
    return (text === '' ? null : parseLosslessJson(text)) as Answer
  } catch {
    throw new UnreachableError(`${response.url} does not answer with JSON: it is no server of this kind`)
  }
}

export function pathOf(name: string, ...rest: readonly string[]): string {
  return ['', name, ...rest].map(encodeURIComponent).join('/')
}

export function readEndpoint(client: RunClient, name: string): Promise<EndpointWire> {
  return askEndpoints<EndpointWire>(client, pathOf(name))
}

/** `selector`: a number, `latest` or an alias. */
export function readVersion(client: RunClient, name: string, selector: string): Promise<VersionWire> {
  return askEndpoints<VersionWire>(client, pathOf(name, 'versions', selector))
}

// Far more than anybody reads.
const MAX_LISTED = 10_000

/** `areShared`: those of other accounts that may be called, in place of the account's own. */
export async function listEndpoints(
  client: Pick<RunClient, 'call'>,
  { areShared }: { readonly areShared: boolean },
): Promise<EndpointWire[]> {
  const found: EndpointWire[] = []
  for (;;) {
    const after = found.at(-1)
    const query = new URLSearchParams({ limit: '100', ...(after !== undefined && { after: after.name }) })
    if (areShared) query.set('shared', 'true')
    const page = await askEndpoints<{ endpoints: EndpointWire[]; has_more: boolean }>(client, `?${query}`)
    found.push(...page.endpoints)
    if (!page.has_more || page.endpoints.length === 0 || found.length >= MAX_LISTED) return found.slice(0, MAX_LISTED)
  }
}
