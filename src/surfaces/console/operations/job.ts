/** What can be read of one job. A job that is not this account's looks exactly like one that does not exist. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isUuid } from '../../../../lib/ids.ts'
import type { Caller } from '../../../domain/accounts/caller.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { noSuchJob } from '../../../domain/jobs/read/job-reader.ts'
import type { RecordedJob } from '../../../domain/jobs/read/recorded-jobs.ts'
import { toLogLines } from '../../../domain/jobs/run/record/log-lines.ts'
import type { GraphLayout } from '../../../domain/jobs/submit/job-origin.ts'
import { type JobDetails, NO_FILTER } from '../../../domain/jobs/summaries/summary-store.ts'
import { isTerminal, type JobStatus } from '../../../domain/jobs/transitions.ts'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { needs } from '../../kit/guards/rights.ts'
import { layoutOf, toDetailView } from '../../kit/jobs/job-detail-view.ts'
import { readFields } from '../../kit/jobs/job-filters.ts'
import { countSlots, readNodes, toErrorView, toWaitView } from '../../kit/jobs/job-view.ts'
import { toSummaryView } from '../../kit/jobs/summary-view.ts'
import { sendJson } from '../../kit/send-json.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'
import { toLineView } from '../views/log-view.ts'
import { toNodesView, toShownRun } from '../views/node-view.ts'

const JOB = `${CONSOLE_API}/jobs/:id`
const WEEK_MS = 7 * 86_400_000

export function jobIdOf(request: FastifyRequest): string {
  const { id } = request.params as { readonly id: string }
  if (!isUuid(id)) throw noSuchJob()
  return id
}

/** The job with its graph and what its run showed. */
async function findRecord({ callerOf, jobs }: ConsoleDeps, request: FastifyRequest): Promise<RecordedJob> {
  const record = await jobs.records.find(callerOf(request).accountId, jobIdOf(request))
  if (record === null) throw noSuchJob()
  return record
}

export function getJob(app: FastifyInstance, deps: ConsoleDeps): void {
  const { callerOf, console: parts, clock } = deps
  app.get(JOB, needs('jobs:read'), async (request, reply) => {
    const caller = callerOf(request)
    const { accountId } = caller
    const jobId = jobIdOf(request)
    const [details, record] = await Promise.all([
      parts.summaries.findDetails(accountId, jobId, clock.now()),
      findRecord(deps, request),
    ])
    if (details === null) throw noSuchJob()
    const { mountPrefix } = serviceAddressOf(request)
    const { job } = record
    const [wait, others, more] = await Promise.all([
      details.summary.status === 'queued' ? explainWait(caller, details) : null,
      job.error === null ? null : countOthers(job, job.error.code),
      toDetailView(details, record, { assets: deps.assets, mountPrefix }),
    ])
    const raw = `${mountPrefix}/api/v2/jobs/${jobId}`
    return sendJson(reply, 200, {
      ...toSummaryView(details.summary),
      ...more,
      trace_id: details.origin.trace?.traceId ?? null,
      wait,
      error: toErrorView(job, others),
      links: { raw, workflow: `${raw}/workflow`, log: `${raw}/logs` },
    })
  })

  async function explainWait(caller: Caller, details: JobDetails) {
    const { id: jobId, pool } = details.summary
    const standing = await parts.standingOf(caller)
    const facts = { standing, engines: parts.engines(pool), availability: parts.availability() }
    const maxSlots = countSlots(details, facts)
    const estimateSeconds = await parts.estimateWait({ accountId: caller.accountId, pool, jobId, maxSlots })
    return toWaitView(details, { ...facts, estimateSeconds, showsUnable: parts.kind === 'local' })
  }

  /** How many other jobs of this week failed in the same way; null: more than are counted. */
  async function countOthers({ accountId, createdAt }: Job, code: string): Promise<number | null> {
    const now = clock.now()
    const since = new Date(now.getTime() - WEEK_MS)
    const counts = await parts.summaries.count(accountId, { ...NO_FILTER, code, since }, now)
    const isCounted = createdAt >= since
    return counts === null ? null : Math.max(0, counts.failed - (isCounted ? 1 : 0))
  }
}

export function getJobNodes(app: FastifyInstance, deps: ConsoleDeps): void {
  app.get(`${JOB}/nodes`, needs('jobs:read'), async (request, reply) => {
    const record = await findRecord(deps, request)
    const { job, workflow } = record
    const live = isHeld(job.status) ? await deps.console.liveRuns.read(job.id) : null
    return sendJson(reply, 200, toNodesView(job, readNodes(workflow), toShownRun(record, live)))
  })
}

/** null: no editor said where the nodes of this job are, or there is no such job. */
export async function findLayout(
  { console: parts, jobs, clock }: Pick<ConsoleDeps, 'console' | 'jobs' | 'clock'>,
  accountId: string,
  jobId: string,
): Promise<GraphLayout | null> {
  const [record, details] = await Promise.all([
    jobs.records.find(accountId, jobId),
    parts.summaries.findDetails(accountId, jobId, clock.now()),
  ])
  if (record === null || details === null) throw noSuchJob()
  return layoutOf(record.submission, details.origin)
}

export function getJobLayout(app: FastifyInstance, deps: ConsoleDeps): void {
  const { callerOf } = deps
  app.get(`${JOB}/layout`, needs('jobs:read'), async (request, reply) => {
    const layout = await findLayout(deps, callerOf(request).accountId, jobIdOf(request))
    if (layout === null) throw new ServiceError('not_found', 'no editor said where the nodes of this job are')
    return sendJson(reply, 200, layout)
  })
}

/** Only of a job that runs there is something to hear; asking for it may take a while. */
function isHeld(status: JobStatus): boolean {
  return status === 'running' || status === 'canceling'
}

const DEFAULT_LINES = 1000
const MAX_LINES = 5000

export function getJobLogs(app: FastifyInstance, { callerOf, jobs, console: parts }: ConsoleDeps): void {
  app.get(`${JOB}/logs`, needs('jobs:read'), async (request, reply) => {
    const { accountId } = callerOf(request)
    const job = await jobs.reader.find(accountId, jobIdOf(request))
    const fields = readFields(request.raw.url ?? '')
    const after = readNumber(fields.get('after'), 'after', Number.MAX_SAFE_INTEGER) ?? -1
    const limit = Math.max(1, readNumber(fields.get('limit'), 'limit', MAX_LINES) ?? DEFAULT_LINES)
    const isComplete = isTerminal(job.status)
    const log = isComplete ? await jobs.reader.log(accountId, job.id) : null
    const live = isHeld(job.status) ? await parts.liveRuns.read(job.id) : null
    const all = log === null ? (live?.lines ?? []) : toLogLines(log)
    const rest = all.filter(({ n }) => n > after)
    const lines = rest.slice(0, limit)
    const isCut = log?.truncated === true || (all[0]?.n ?? 0) > 0
    const next = rest.length > lines.length ? (lines.at(-1)?.n ?? null) : null
    return sendJson(reply, 200, { lines: lines.map(toLineView), next, is_cut: isCut, is_complete: isComplete })
  })
}

function readNumber(text: string | undefined, name: string, max: number): number | null {
  if (text === undefined) return null
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (value <= max) return value
  throw new ServiceError('invalid_request', `${name} must be an integer from 0 to ${max}`)
}
