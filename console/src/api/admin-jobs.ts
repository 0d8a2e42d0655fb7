/** The jobs of all accounts, one engine and the course of a day, for the operator. */
import { getJson, send } from './client.ts'
import { type JobFilter, toQuery } from './filter.ts'
import type { JobDetail } from './job-detail.ts'
import type { Counts, Summary } from './summary.ts'

const ADMIN = '/admin/v1'

export interface OwnedSummary extends Summary {
  readonly account_id: string
}

export interface OwnedPage {
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

/** Those that wait. With `isDry` nothing happens: the answer says how many it would hit. */
export function cancelAllWaiting(
  { filter, account }: AskedJobs,
  { now, isDry }: { readonly now: number; readonly isDry: boolean },
): Promise<{ readonly count: number; readonly has_more: boolean }> {
  const query = toQuery(filter, now)
  query.delete('sort')
  const body = { filter: Object.fromEntries(query), account, only_waiting: true }
  return send('POST', `${ADMIN}/jobs/cancel`, { ...body, ...(isDry && { dry_run: true }) })
}

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
