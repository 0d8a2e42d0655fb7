/** Endpoints of the account: workflows with a name, typed inputs and versions. Numbers keep their digits: a seed may have 64 bits. */
import { isJsonObject, type JsonObject, type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { getJson, getText, request, send } from './client.ts'
import type { JobStatus } from './summary.ts'

const ENDPOINTS = '/api/v2/endpoints'

interface Missing {
  readonly classes: readonly { readonly class_type: string }[]
  readonly weights: readonly { readonly name: string }[]
}

/** By period: hour, day, month, ever. */
type ByPeriod<Value> = Readonly<Partial<Record<string, Value>>>

export interface EndpointLimits {
  readonly in_flight: number | null
  readonly runs: ByPeriod<number>
  readonly spend_usd: ByPeriod<string>
}

export interface Endpoint {
  readonly name: string
  readonly title: string
  readonly description: string
  /** `service`: everybody has it, and nobody can change it. */
  readonly owner: 'account' | 'service' | 'other_account'
  readonly state: 'ready' | 'stopped' | 'blocked'
  readonly current_version: number
  readonly latest_version: number
  readonly aliases: Readonly<Record<string, number>>
  /** Whose workers run it; null: the common ones. */
  readonly deployment: string | null
  readonly tool: boolean
  readonly models: readonly string[]
  /** Other accounts that may call it; `*`: all. */
  readonly callers: readonly string[]
  readonly limits: EndpointLimits
  readonly price: { readonly kind: string; readonly usd?: string; readonly max_seconds?: number } | null
  readonly missing?: Missing
  readonly updated_at: string
  readonly revision: number
  readonly urls: { readonly runs: string; readonly schema: string; readonly openapi: string; readonly docs: string }
}

export type InputType = 'text' | 'integer' | 'number' | 'seed' | 'boolean' | 'choice' | 'file'

/** Members that only some types have are left out of the others. */
export interface EndpointInput {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly type: InputType
  readonly required: boolean
  readonly example: JsonValue
  readonly default?: JsonValue
  readonly minimum?: JsonValue
  readonly maximum?: JsonValue
  readonly min_length?: number
  readonly max_length?: number
  readonly pattern?: string | null
  readonly multiline?: boolean
  readonly choices?: readonly JsonValue[]
  /** The choices are examples: files that engines have. */
  readonly open?: boolean
  readonly kind?: string
  readonly places: readonly { readonly node_id: string; readonly input: string }[]
}

export interface EndpointOutput {
  readonly name: string
  readonly title: string
  readonly kind: string
  /** Of the account's own. */
  readonly node_id?: string
}

export interface VersionSummary {
  readonly version: number
  readonly note: string
  readonly created_at: string
  /** That its deployment served when it was published. `served`: what calls find there now; null: none. */
  readonly release?: { readonly version: number; readonly pinned: boolean; readonly served: number | null }
}

export interface Version extends VersionSummary {
  readonly inputs: readonly EndpointInput[]
  readonly outputs: readonly EndpointOutput[]
  /** Of the account's own. */
  readonly workflow?: JsonObject
}

export interface Draft {
  readonly title: string | null
  readonly description: string | null
  readonly inputs: readonly EndpointInput[]
  readonly outputs: readonly EndpointOutput[]
  /** Other values of the graph that could be inputs. */
  readonly candidates: readonly EndpointInput[]
  readonly warnings: readonly { readonly node_id: string; readonly input: string | null; readonly message: string }[]
  readonly missing: Missing
}

export interface Difference {
  readonly kind: 'input' | 'output' | 'graph' | 'release'
  readonly breaking: boolean
  readonly message: string
}

/** What the list of runs has of each. */
export interface RunRow {
  readonly id: string
  readonly status: JobStatus
  readonly created_at: string
  readonly started_at: string | null
  readonly completed_at: string | null
  readonly outputs: readonly { readonly id: string; readonly type: string }[]
  readonly endpoint?: { readonly name: string; readonly version: number }
}

interface Run {
  readonly id: string
  readonly endpoint: { readonly name: string; readonly version: number }
  /** As they were used, with the seed that was drawn; null: longer than what is kept. */
  readonly inputs: JsonObject | null
}

function at(name: string, rest = ''): string {
  return `${ENDPOINTS}/${encodeURIComponent(name)}${rest}`
}

/** The shapes are the service's own contract; only the numbers in them are read otherwise. */
async function getExact<Value>(path: string, signal?: AbortSignal): Promise<Value> {
  return parseLosslessJson(await getText(path, signal)) as Value
}

async function sendExact<Value>(path: string, body: string): Promise<Value> {
  return parseLosslessJson(await (await request(path, { method: 'POST', body })).text()) as Value
}

interface EndpointPage {
  readonly endpoints: readonly Endpoint[]
  readonly has_more: boolean
}

/** By name; `after` is the last one of the page before. `areShared`: those of other accounts, in place of the account's own. */
export function listEndpoints(
  after: string | null,
  { areShared = false, signal }: { readonly areShared?: boolean; readonly signal?: AbortSignal } = {},
): Promise<EndpointPage> {
  const asked = new URLSearchParams({ ...(after !== null && { after }), ...(areShared && { shared: 'true' }) })
  return getJson(`${ENDPOINTS}${asked.size === 0 ? '' : `?${asked}`}`, signal)
}

export function getEndpoint(name: string, signal?: AbortSignal): Promise<Endpoint> {
  return getJson(at(name), signal)
}

/** `selector`: a number, an alias or `latest`. */
export function getVersion(name: string, selector: string, signal?: AbortSignal): Promise<Version> {
  return getExact(at(name, `/versions/${encodeURIComponent(selector)}`), signal)
}

export interface CodeSample {
  readonly label: string
  readonly source: string
}

/** `version` null: of whatever is current. */
export async function getSamples(
  name: string,
  version: string | null,
  signal?: AbortSignal,
): Promise<readonly CodeSample[]> {
  const asked = version === null ? '' : `?version=${encodeURIComponent(version)}`
  const document = await getJson<{
    readonly paths: Readonly<Record<string, { readonly post?: { readonly 'x-codeSamples'?: readonly CodeSample[] } }>>
  }>(at(name, `/openapi.json${asked}`), signal)
  return Object.values(document.paths).flatMap(({ post }) => post?.['x-codeSamples'] ?? [])
}

export function listVersions(
  name: string,
  before: string | null,
  signal?: AbortSignal,
): Promise<{ readonly versions: readonly VersionSummary[]; readonly has_more: boolean }> {
  return getJson(at(name, `/versions${before === null ? '' : `?before=${encodeURIComponent(before)}`}`), signal)
}

export async function compareVersions(
  name: string,
  from: string,
  to: string,
  signal?: AbortSignal,
): Promise<readonly Difference[]> {
  const query = new URLSearchParams({ from, to })
  return (await getJson<{ readonly differences: readonly Difference[] }>(at(name, `/compare?${query}`), signal))
    .differences
}

/** `fileText`: the file as JSON text, a picture as a `data:` address in quotes. */
export function previewEndpoint(fileText: string): Promise<Draft> {
  return sendExact(`${ENDPOINTS}/preview`, `{"file":${fileText}}`)
}

interface Publication {
  readonly name: string
  readonly fileText: string
  /** JSON text. */
  readonly declaration: string
  readonly note: string
  readonly isBreakingMeant: boolean
  readonly deployment: string | null
  /** It runs on the release that the deployment serves now, or not at all. */
  readonly isReleasePinned: boolean
}

export function publishEndpoint(wish: Publication): Promise<{ readonly version: Version; readonly is_new: boolean }> {
  const { name, fileText, declaration, note, isBreakingMeant, deployment, isReleasePinned } = wish
  const where = { deployment, pin_release: isReleasePinned }
  const rest = JSON.stringify({ name, note, breaking: isBreakingMeant, ...where }).slice(1)
  return sendExact(ENDPOINTS, `{"file":${fileText},"declaration":${declaration},${rest}`)
}

export interface EndpointChange {
  readonly title?: string
  readonly description?: string
  readonly state?: 'ready' | 'stopped'
  readonly tool?: boolean
  readonly models?: readonly string[]
  readonly callers?: readonly string[]
  readonly current_version?: number
  readonly limits?: object
}

/** Refused when somebody changed it since `revision`. */
export async function changeEndpoint(
  { name, revision }: Pick<Endpoint, 'name' | 'revision'>,
  change: EndpointChange,
): Promise<void> {
  await request(at(name), { method: 'PATCH', body: change, headers: { 'If-Match': `"${revision}"` } })
}

export function removeEndpoint(name: string): Promise<null> {
  return send('DELETE', at(name))
}

export function moveAlias(name: string, alias: string, version: number): Promise<Endpoint> {
  return send('PUT', at(name, `/aliases/${encodeURIComponent(alias)}`), { version })
}

export function removeAlias(name: string, alias: string): Promise<Endpoint> {
  return send('DELETE', at(name, `/aliases/${encodeURIComponent(alias)}`))
}

/** A link to a page on which whoever has it runs the endpoint. */
export interface Share {
  readonly id: string
  readonly version: string | null
  readonly note: string
  readonly state: 'active' | 'expired' | 'revoked'
  readonly runs: number
  readonly runs_per_day: number | null
  readonly spend_usd: string | null
  readonly referrers: readonly string[]
  readonly used: { readonly runs: number; readonly spent_usd: string; readonly running: number }
  readonly expires_at: string
}

export type CreatedShare = Share & { readonly url: string; readonly embed: string | null }

export interface ShareWish {
  readonly runs: number
  readonly runs_per_day: number | null
  readonly spend_usd: string | null
  readonly at_a_time: number
  readonly version: string | null
  readonly note: string
  readonly referrers: readonly string[]
  readonly expires_at: string
}

export function createShare(name: string, wish: ShareWish): Promise<CreatedShare> {
  return send('POST', at(name, '/shares'), wish)
}

export async function listShares(name: string, signal?: AbortSignal): Promise<readonly Share[]> {
  return (await getJson<{ readonly shares: readonly Share[] }>(at(name, '/shares'), signal)).shares
}

export function revokeShare(name: string, id: string): Promise<Share> {
  return send('DELETE', at(name, `/shares/${encodeURIComponent(id)}`))
}

/** `inputsText`: JSON text of the object of inputs. */
export function runEndpoint(name: string, version: number, inputsText: string): Promise<Run> {
  return sendExact(`${ENDPOINTS}/${encodeURIComponent(name)}@${version}/runs`, `{"inputs":${inputsText}}`)
}

export function listRuns(
  name: string,
  cursor: string | null,
  signal?: AbortSignal,
): Promise<{ readonly runs: readonly RunRow[]; readonly next_cursor?: string }> {
  const query = new URLSearchParams({ limit: '20', ...(cursor !== null && { cursor }) })
  return getJson(at(name, `/runs?${query}`), signal)
}

export interface UsageRow {
  readonly key: string | null
  readonly runs: number
  readonly queued: number
  readonly running: number
  readonly succeeded: number
  readonly failed: number
  readonly canceled: number
  readonly expired: number
  readonly seconds: number
  readonly usd: string
}

interface Used<Value> {
  readonly now: Value
  readonly maximum: Value
}

interface EndpointUsage {
  readonly total: Omit<UsageRow, 'key'>
  readonly rows: readonly UsageRow[]
  readonly limits: {
    readonly in_flight: Used<number> | null
    readonly runs: Readonly<Record<string, Used<number>>>
    readonly spend_usd: Readonly<Record<string, Used<string>>>
  }
}

export function getUsage(name: string, asked: URLSearchParams, signal?: AbortSignal): Promise<EndpointUsage> {
  return getJson(at(name, `/usage?${asked}`), signal)
}

export async function getRun(name: string, id: string, signal?: AbortSignal): Promise<Run> {
  const run = await getExact<JsonObject>(at(name, `/runs/${encodeURIComponent(id)}`), signal)
  const { inputs } = run
  return { ...(run as unknown as Run), inputs: isJsonObject(inputs) ? inputs : null }
}
