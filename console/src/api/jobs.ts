/** Questions about jobs and what can be done to them. */
import { isJsonObject, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { InputChange } from '../form/change-workflow.ts'
import { getJson, getText, send } from './client.ts'
import { type JobFilter, toQuery } from './filter.ts'
import type { EditorLayout, JobDetail, LogPage, NodeSpans } from './job-detail.ts'
import { type CompactSummary, type JobPage, type Summary, toSummary } from './summary.ts'

const JOBS = '/console/v1/jobs'

function at(id: string, rest = ''): string {
  return `${JOBS}/${encodeURIComponent(id)}${rest}`
}

type CompactPage = Omit<JobPage, 'jobs'> & { readonly jobs: readonly CompactSummary[] }

interface ListOptions {
  readonly now: number
  readonly limit?: number
  readonly cursor?: string | null
  readonly withCounts?: boolean
  readonly signal?: AbortSignal
}

export async function listJobs(filter: JobFilter, options: ListOptions): Promise<JobPage> {
  const query = toQuery(filter, options.now)
  query.set('limit', String(options.limit ?? 100))
  if (options.cursor != null) query.set('cursor', options.cursor)
  if (options.withCounts === true) query.set('counts', '1')
  query.set('compact', '1')
  const page = await getJson<CompactPage>(`${JOBS}?${query}`, options.signal)
  return { ...page, jobs: page.jobs.map(toSummary) }
}

export function getJob(id: string, signal?: AbortSignal): Promise<JobDetail> {
  return getJson<JobDetail>(at(id), signal)
}

export function getNodes(id: string, signal?: AbortSignal): Promise<NodeSpans> {
  return getJson<NodeSpans>(at(id, '/nodes'), signal)
}

export function getLayout(id: string, signal?: AbortSignal): Promise<EditorLayout> {
  return getJson<EditorLayout>(at(id, '/layout'), signal)
}

export function getLogs(
  id: string,
  { after, limit, signal }: { readonly after: number | null; readonly limit: number; readonly signal?: AbortSignal },
): Promise<LogPage> {
  return getJson<LogPage>(at(id, `/logs?limit=${limit}${after === null ? '' : `&after=${after}`}`), signal)
}

/** As text: the numbers of a workflow may be longer than a double. */
export async function getWorkflow(id: string, signal?: AbortSignal): Promise<string> {
  const answer = parseLosslessJson(await getText(`/api/v2/jobs/${encodeURIComponent(id)}/workflow`, signal))
  return stringifyLosslessJson(isJsonObject(answer) && isJsonObject(answer['workflow']) ? answer['workflow'] : {})
}

export function cancelJob(id: string): Promise<unknown> {
  return send('POST', `/api/v2/jobs/${encodeURIComponent(id)}/cancel`)
}

interface Canceled {
  readonly count: number
  /** There may be more that fit: the request is to be repeated for them. */
  readonly has_more: boolean
}

export function cancelJobs(ids: readonly string[]): Promise<Canceled> {
  return send('POST', `${JOBS}/cancel`, { ids })
}

/** With `dryRun` nothing happens: the answer says how many it would hit. */
export function cancelByFilter(
  filter: Readonly<Record<string, string>>,
  { onlyWaiting, dryRun }: { readonly onlyWaiting: boolean; readonly dryRun: boolean },
): Promise<Canceled> {
  return send('POST', `${JOBS}/cancel`, { filter, only_waiting: onlyWaiting, ...(dryRun && { dry_run: true }) })
}

/** Without `metadata` the new job has that of the old one. */
export function rerun(
  id: string,
  changes: readonly InputChange[],
  metadata?: Readonly<Record<string, string>>,
): Promise<Summary> {
  const written = changes.map(
    ({ node, input, valueText }) =>
      `{"node":${JSON.stringify(node)},"input":${JSON.stringify(input)},"value":${valueText}}`,
  )
  const more = metadata === undefined ? '' : `,"metadata":${JSON.stringify(metadata)}`
  return send('POST', at(id, '/rerun'), `{"changes":[${written.join(',')}]${more}}`)
}

/** All outputs of these jobs as one file. */
export function zipHref(base: string, ids: readonly string[]): string {
  const [only] = ids
  if (ids.length === 1) return `${base}${at(only, '/outputs.zip')}`
  return `${base}/console/v1/outputs.zip?jobs=${ids.map(encodeURIComponent).join(',')}`
}
