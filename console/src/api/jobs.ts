/** Questions about jobs and what can be done to them. */
import { isJsonObject, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { InputChange } from '../form/workflow-fields.ts'
import type { EngineFigures } from '../text/format.ts'
import { getJson, getText, request, send } from './client.ts'
import { type JobFilter, toQuery } from './filter.ts'
import type { EditorLayout, JobDetail, LogPage, NodeSpans } from './job-detail.ts'
import { type NodeClasses, readNodeClasses } from './node-classes.ts'
import { type CompactSummary, type Counts, type JobPage, type JobStatus, type Summary, toSummary } from './summary.ts'

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

/** A job that waits: its place in the queue of its account, and the time until which it is held. */
export function moveJob(id: string, change: { move: 'front' | 'back' } | { not_before: null }): Promise<unknown> {
  return send('PATCH', `/api/v2/jobs/${encodeURIComponent(id)}`, change)
}

/** Of the whole account. */
export const resumeQueue = () => send('POST', '/api/v2/queue/resume')

interface Canceled {
  readonly count: number
  /** There may be more that fit: the request is to be repeated for them. */
  readonly has_more: boolean
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

export interface BatchItem {
  readonly index: number
  /** null: it was refused. */
  readonly job_id: string | null
  /** null: it was refused, or its job is gone. */
  readonly status: JobStatus | null
  readonly error: { readonly code: string; readonly message: string } | null
}

export interface Batch {
  readonly id: string
  readonly created_at: string
  readonly expires_at: string
  readonly mode: 'all_or_nothing' | 'per_item'
  readonly total: number
  readonly accepted: number
  readonly refused: number
  readonly counts: Counts
  /** 0 to 1. */
  readonly progress: number
  readonly is_done: boolean
  readonly items: readonly BatchItem[]
}

const atBatch = (id: string, rest = '') => `/api/v2/batches/${encodeURIComponent(id)}${rest}`

/** Jobs that came in one request, as `GET /api/v2/batches/{id}` tells of them. */
export const getBatch = (id: string, signal?: AbortSignal) => getJson<Batch>(atBatch(id), signal)

export const cancelBatch = (id: string) => send('POST', atBatch(id, '/cancel'))

/** What its jobs have made by now, as one file. */
export const batchZip = (base: string, id: string) => `${base}${atBatch(id, '/outputs.zip')}`

export interface GalleryOutput {
  readonly asset_id: string
  readonly job_id: string
  readonly job_title: string
  readonly node_id: string
  readonly name: string
  readonly type: string
  readonly content_type: string
  readonly size_bytes: number
  readonly created_at: string
  readonly url: string
}

interface OutputPage {
  readonly outputs: readonly GalleryOutput[]
  readonly next_cursor: string | null
}

/** Outputs over all jobs. */
export function listOutputs(query: URLSearchParams, signal?: AbortSignal): Promise<OutputPage> {
  return getJson<OutputPage>(`/console/v1/outputs?${query}`, signal)
}

interface Converted {
  /** JSON text of the graph. */
  readonly text: string
  readonly warnings: readonly string[]
  readonly missing: readonly string[]
}

/** Turns whatever holds a workflow (JSON of the editor or of the API, a picture that ComfyUI saved) into a graph in API format. */
export async function convertWorkflow(file: Blob): Promise<Converted> {
  const response = await request('/api/v2/workflows/convert', {
    method: 'POST',
    body: file,
    headers: { 'Content-Type': file.type === '' ? 'application/octet-stream' : file.type },
  })
  const answer = parseLosslessJson(await response.text())
  if (!isJsonObject(answer)) return { text: '{}', warnings: [], missing: [] }
  const { workflow, warnings, missing } = answer
  return {
    text: stringifyLosslessJson(workflow),
    warnings: Array.isArray(warnings)
      ? warnings.flatMap((warning) =>
          isJsonObject(warning) ? [`node ${String(warning['node_id'])}: ${String(warning['message'])}`] : [],
        )
      : [],
    missing: isJsonObject(missing)
      ? [
          ...namesIn(missing['classes'], 'class_type').map((name) => `node class ${name}`),
          ...namesIn(missing['weights'], 'name').map((name) => `weights ${name}`),
        ]
      : [],
  }
}

function namesIn(list: unknown, key: string): readonly string[] {
  if (!Array.isArray(list)) return []
  return list.flatMap((item: unknown) => {
    if (typeof item === 'string') return [item]
    if (typeof item !== 'object' || item === null) return []
    const found = (item as Record<string, unknown>)[key] ?? Object.values(item)[0]
    return typeof found === 'string' ? [found] : []
  })
}

interface SavedForm {
  readonly name: string
  readonly modified_at: string
}

interface FormDocument {
  /** JSON text: a workflow's numbers may be longer than a double. */
  readonly workflow_text: string
}

/** Workflows that the account keeps to run again: a document of ours, kept as it is. */
export function listForms(signal?: AbortSignal): Promise<{ readonly forms: readonly SavedForm[] }> {
  return getJson('/console/v1/forms', signal)
}

export async function getForm(name: string, signal?: AbortSignal): Promise<FormDocument> {
  return JSON.parse(await getText(`/console/v1/forms/${encodeURIComponent(name)}`, signal)) as FormDocument
}

export function saveForm(name: string, document: FormDocument): Promise<unknown> {
  return send('PUT', `/console/v1/forms/${encodeURIComponent(name)}`, document)
}

export function removeForm(name: string): Promise<unknown> {
  return send('DELETE', `/console/v1/forms/${encodeURIComponent(name)}`)
}

/** How the engines stand, and the node classes that they have. */
export function getEngines(signal?: AbortSignal): Promise<EngineFigures> {
  return getJson<EngineFigures>('/console/v1/engines', signal)
}

export async function getNodeClasses(signal?: AbortSignal): Promise<NodeClasses> {
  return readNodeClasses(await getText('/console/v1/nodes', signal))
}
