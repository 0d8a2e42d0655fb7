/** Models that can be called, what they take, what a call would cost, and a call. */
import { isJsonObject, type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { getJson, getText, request, send } from './client.ts'

export interface ModelRow {
  readonly id: string
  readonly provider: string
  readonly title: string
  readonly description: string | null
  /** Words such as `text`, `image`. */
  readonly in: readonly string[]
  readonly out: readonly string[]
  /** In words; null: only the provider knows. */
  readonly price: string | null
  /** False: from public sources, and no bill has confirmed it. Left out by older services. */
  readonly price_confirmed?: boolean
  readonly price_source?: { readonly document: string; readonly date: string } | null
  readonly is_runnable: boolean
  readonly why_not: string | null
}

interface ModelPage {
  readonly models: readonly ModelRow[]
  readonly next: string | null
}

export async function listModels(signal?: AbortSignal): Promise<readonly ModelRow[]> {
  const rows: ModelRow[] = []
  let after: string | null = null
  do {
    const query: string = after === null ? '' : `?after=${encodeURIComponent(after)}`
    const page: ModelPage = await getJson<ModelPage>(`/console/v1/models${query}`, signal)
    rows.push(...page.models)
    after = page.next
  } while (after !== null)
  return rows
}

export interface CallRow {
  readonly request_id: string
  readonly model: string
  readonly status: 'queued' | 'running' | 'succeeded' | 'failed' | 'canceled' | 'interrupted' | 'gone'
  readonly created_at: string
  readonly completed_at: string | null
  readonly cost_usd: string | null
  readonly error: { readonly code: string; readonly message: string } | null
}

export interface CallPage {
  readonly calls: readonly CallRow[]
  readonly next_cursor: string | null
}

export function listCalls(query: URLSearchParams, signal?: AbortSignal): Promise<CallPage> {
  return getJson<CallPage>(`/console/v1/calls?${query}`, signal)
}

function at(id: string, rest = ''): string {
  return `/v2/models/${id.split('/').map(encodeURIComponent).join('/')}${rest}`
}

export interface ModelSchema {
  readonly schema: JsonValue
  /** What references of the schema lead into. */
  readonly root: JsonValue
}

/** What the model takes. */
export async function getModelSchema(id: string, signal?: AbortSignal): Promise<ModelSchema> {
  const root = parseLosslessJson(await getText(at(id, '/openapi.json'), signal))
  let schema: JsonValue | undefined = root
  for (const step of ['paths', at(id), 'post', 'requestBody', 'content', 'application/json', 'schema'])
    schema = isJsonObject(schema) && Object.hasOwn(schema, step) ? schema[step] : undefined
  return { schema: schema ?? {}, root }
}

export interface Estimate {
  readonly source: 'exact' | 'estimated' | 'unknown'
  readonly amount?: string
  readonly min_amount?: string
  readonly max_amount?: string
  readonly reason?: string
}

export function estimateModel(id: string, inputText: string): Promise<Estimate> {
  return send<Estimate>('POST', at(id, '/estimate'), inputText)
}

export interface ModelAnswer {
  readonly contentType: string
  readonly requestId: string | null
  readonly creditsUsed: string | null
  readonly blob: Blob
}

export async function runModel(id: string, inputText: string, signal: AbortSignal): Promise<ModelAnswer> {
  const response = await request(at(id), { method: 'POST', body: inputText, signal })
  return {
    contentType: response.headers.get('content-type') ?? 'application/octet-stream',
    requestId: response.headers.get('x-service-request-id'),
    creditsUsed: response.headers.get('x-service-credits-used'),
    blob: await response.blob(),
  }
}
