/** The service as a whole, for its operator. */
import { getJson, send } from './client.ts'
import { type JobFilter, toQuery } from './filter.ts'
import type { JobDetail } from './job-detail.ts'
import type { Counts, Summary } from './summary.ts'

export interface Overview {
  readonly kind: string
  readonly version: string
  readonly jobs: Counts
  readonly accounts: number
  readonly streams: number
}

export interface Pool {
  readonly pool: string
  readonly queued: number
  readonly running: number
  readonly workers: number
  readonly wanted_workers: number
  readonly oldest_wait_seconds: number
}

export type EngineState = 'standby' | 'quarantined' | 'lost' | 'starting' | 'draining' | 'cordoned' | 'ready'

export interface Engine {
  readonly id: string
  readonly state: EngineState
  readonly reason: string | null
  readonly driven_by: string | null
  readonly concurrency: number
  readonly running: number
  readonly node_classes: number
  readonly weights: number
  readonly loaded_weights: readonly string[]
  readonly version: string | null
  /** null: an engine of a release, the built-in one, or it has not said enough. */
  readonly observed_release: {
    readonly id: string
    readonly comfyui: string | null
    readonly python: string | null
    readonly torch: string | null
    readonly packs: readonly string[]
  } | null
  readonly memory_bytes: number | null
  readonly started_at: string | null
  readonly last_error: { readonly message: string; readonly at: string } | null
  readonly jobs: number
  readonly failures: number
  readonly losses: number
}

export interface AccountRow {
  readonly id: string
  readonly name: string
  readonly tier: string
  readonly status: 'active' | 'suspended'
  readonly created_at: string
}

/** A line of an account's ledger. */
export interface LedgerLine {
  readonly seq: number
  readonly kind: 'grant' | 'revoke' | 'hold' | 'settle' | 'release' | 'refund'
  readonly reference: string
  readonly charged_micros: number
  readonly available_usd: string
  readonly at: string
  readonly memo: string
}

export interface AccountDetail extends AccountRow {
  readonly entries: readonly LedgerLine[]
  readonly use: { readonly running: number; readonly queued: number; readonly streams: number }
  readonly balance: { readonly available_usd: string; readonly held_usd: string } | null
  readonly usage: { readonly from: string; readonly to: string; readonly charged_usd: string; readonly settled: number }
}

export interface AdminKey {
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[] | null
  readonly created_at: string
  readonly revoked_at: string | null
  readonly last_used_at: string | null
}

export interface Deployment {
  readonly id: string
  readonly account_id: string | null
  readonly state: 'provisioning' | 'ready' | 'draining' | 'stopped'
  readonly workers: number
  readonly path: string
  readonly use: { readonly queued: number; readonly running: number; readonly workers: number }
}

export interface AuditRecord {
  readonly seq: number
  readonly at: string
  readonly actor: string
  readonly action: string
  readonly subject: string
  readonly outcome: string
}

const ADMIN = '/admin/v1'

export const getOverview = (signal?: AbortSignal) => getJson<Overview>(`${ADMIN}/overview`, signal)
export const listPools = (signal?: AbortSignal) =>
  getJson<{ readonly pools: readonly Pool[] }>(`${ADMIN}/pools`, signal)
export const listEngines = (signal?: AbortSignal) =>
  getJson<{ readonly engines: readonly Engine[] }>(`${ADMIN}/engines`, signal)
/** A process of the service. */
interface ServiceProcess {
  readonly id: string
  readonly role: 'all' | 'api' | 'worker'
  readonly host: string
  readonly url: string | null
}

export const listProcesses = (signal?: AbortSignal) =>
  getJson<{ readonly nodes: readonly ServiceProcess[] }>(`${ADMIN}/nodes`, signal)

export const getEngine = (id: string, signal?: AbortSignal) =>
  getJson<Engine>(`${ADMIN}/engines/${encodeURIComponent(id)}`, signal)
export const listAccounts = (signal?: AbortSignal) =>
  getJson<{ readonly accounts: readonly AccountRow[]; readonly next: string | null }>(
    `${ADMIN}/accounts?limit=200`,
    signal,
  )
export const getAccount = (id: string, signal?: AbortSignal) =>
  getJson<AccountDetail>(`${ADMIN}/accounts/${encodeURIComponent(id)}`, signal)
export const listAccountKeys = (id: string, signal?: AbortSignal) =>
  getJson<{ readonly keys: readonly AdminKey[] }>(`${ADMIN}/accounts/${encodeURIComponent(id)}/keys`, signal)
export const listDeployments = (signal?: AbortSignal) =>
  getJson<{ readonly deployments: readonly Deployment[] }>(`${ADMIN}/deployments`, signal)
export const listAudit = (signal?: AbortSignal) =>
  getJson<{ readonly records: readonly AuditRecord[]; readonly next: number | null }>(
    `${ADMIN}/audit?limit=200`,
    signal,
  )

export type EngineDeed = 'cordon' | 'drain' | 'resume'

export function tellEngine(id: string, deed: EngineDeed): Promise<Engine> {
  return send('POST', `${ADMIN}/engines/${encodeURIComponent(id)}/${deed}`)
}

export function createAccountKey(id: string, name: string): Promise<AdminKey & { readonly text: string }> {
  return send('POST', `${ADMIN}/accounts/${encodeURIComponent(id)}/keys`, { name })
}

export function revokeAccountKey(id: string): Promise<unknown> {
  return send('POST', `${ADMIN}/keys/${encodeURIComponent(id)}/revoke`)
}

export function tellDeployment(id: string, deed: 'start' | 'stop'): Promise<unknown> {
  return send('POST', `${ADMIN}/deployments/${encodeURIComponent(id)}/${deed}`, deed === 'stop' ? {} : undefined)
}

export interface OwnedSummary extends Summary {
  readonly account_id: string
}

interface OwnedPage {
  readonly jobs: readonly OwnedSummary[]
  readonly next_cursor: string | null
  readonly counts: Counts | null
}

export interface OwnedJob extends Omit<JobDetail, 'links'> {
  readonly account_id: string
}

export interface AskedJobs {
  readonly filter: JobFilter
  /** null: of all. */
  readonly account: string | null
}

interface ListOptions {
  readonly now: number
  readonly cursor: string | null
  readonly signal?: AbortSignal
}

/** The jobs of all accounts, one engine and the course of a day, for the operator. */
export function listAllJobs({ filter, account }: AskedJobs, { now, cursor, signal }: ListOptions): Promise<OwnedPage> {
  const query = toQuery(filter, now)
  if (account !== null) query.set('account', account)
  if (cursor !== null) query.set('cursor', cursor)
  query.set('counts', '1')
  return getJson(`${ADMIN}/jobs?${query}`, signal)
}

export const getAnyJob = (id: string, signal?: AbortSignal) =>
  getJson<OwnedJob>(`${ADMIN}/jobs/${encodeURIComponent(id)}`, signal)

export const cancelAnyJob = (id: string) => send('POST', `${ADMIN}/jobs/${encodeURIComponent(id)}/cancel`)

const engineAt = (id: string) => `${ADMIN}/engines/${encodeURIComponent(id)}`

export const listEngineJobs = (id: string, signal?: AbortSignal) =>
  getJson<OwnedPage>(`${engineAt(id)}/jobs?limit=20`, signal)

export interface EngineLine {
  readonly n: number
  readonly at: string
  readonly text: string
}

export interface EngineLog {
  readonly driven_by: string | null
  readonly is_kept: boolean
  readonly began_at: string | null
  readonly lines: readonly EngineLine[]
}

export const getEngineLog = (id: string, after: number | null, signal?: AbortSignal) =>
  getJson<EngineLog>(`${engineAt(id)}/log${after === null ? '' : `?after=${after}`}`, signal)

export interface SeriesAnswer {
  readonly from: string
  readonly step_seconds: number
  readonly series: readonly { readonly name: string; readonly values: readonly (number | string | null)[] }[]
}

export const getSeries = (signal?: AbortSignal) => getJson<SeriesAnswer>(`${ADMIN}/series?step=60&points=60`, signal)

/** What an engine has to have loaded before it is given work. */
export interface EngineWarm {
  readonly weights: readonly string[]
  readonly workflow: object | null
}

export const getEngineWarm = (id: string, signal?: AbortSignal) => getJson<EngineWarm>(`${engineAt(id)}/warm`, signal)

/** Loaded at once, also what was said before. */
export const putEngineWarm = (id: string, warm: EngineWarm) => send<EngineWarm>('PUT', `${engineAt(id)}/warm`, warm)

export const deleteEngineWarm = (id: string) => send<EngineWarm>('DELETE', `${engineAt(id)}/warm`)
