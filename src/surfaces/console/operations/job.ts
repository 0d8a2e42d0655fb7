/** What can be read of one job. A job that is not this account's looks exactly like one that does not exist. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isUuid } from '../../../../lib/ids.ts'
import type { Caller } from '../../../domain/accounts/caller.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { noSuchJob } from '../../../domain/jobs/read/job-reader.ts'
import type { RecordedJob } from '../../../domain/jobs/read/recorded-jobs.ts'
import type { LiveRun } from '../../../domain/jobs/read/watch-job.ts'
import { type LogLine, toLogLines } from '../../../domain/jobs/run/record/log-lines.ts'
import { type NodeSpan, toNodeSpan } from '../../../domain/jobs/run/record/run-record.ts'
import { shownLayout } from '../../../domain/jobs/submit/job-origin.ts'
import { toFailureSignature } from '../../../domain/jobs/summaries/failure-signature.ts'
import { type JobDetails, NO_FILTER } from '../../../domain/jobs/summaries/summary-store.ts'
import { isTerminal, type JobStatus } from '../../../domain/jobs/transitions.ts'
import { needs, serviceAddressOf } from '../../kit/guards/routes.ts'
import { readFields } from '../../kit/jobs/job-pages.ts'
import {
  countSlots,
  type NodeFacts,
  readNodes,
  toDetailView,
  toErrorView,
  toSummaryView,
  toWaitView,
} from '../../kit/jobs/job-view.ts'
import { sendJson } from '../../kit/request.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'

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
  const { callerOf, console: parts, clock, jobs } = deps
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
    const [wait, othersAlike, more] = await Promise.all([
      details.summary.status === 'queued' ? explainWait(caller, details) : null,
      countAlike(job),
      toDetailView(details, record, { assets: deps.assets, mountPrefix, gpuOfJob: parts.gpuOfJob }),
    ])
    const raw = `${mountPrefix}/api/v2/jobs/${jobId}`
    return sendJson(reply, 200, {
      ...toSummaryView(details.summary),
      ...more,
      trace_id: details.origin.trace?.traceId ?? null,
      wait,
      error: toErrorView(job, othersAlike),
      links: { raw, workflow: `${raw}/workflow`, log: `${raw}/logs` },
    })
  })

  async function explainWait(caller: Caller, details: JobDetails) {
    const { id: jobId, pool } = details.summary
    const standing = await parts.standingOf(caller)
    const pauses = await jobs.queue.pausesOf(caller.accountId, pool)
    const facts = { standing, pauses, engines: parts.engines(pool), availability: parts.availability() }
    const maxSlots = countSlots(details, facts)
    const estimateSeconds = await parts.estimateWait({ accountId: caller.accountId, pool, jobId, maxSlots })
    return toWaitView(details, { ...facts, estimateSeconds, showsUnable: parts.kind === 'local', now: clock.now() })
  }

  /** How many other jobs of this week failed for the same reason; null: more than are counted. */
  async function countAlike({ accountId, createdAt, error }: Job): Promise<number | null> {
    if (error === null) return null
    const now = clock.now()
    const since = new Date(now.getTime() - WEEK_MS)
    const filter = { ...NO_FILTER, code: error.code, failure: toFailureSignature(error), since }
    const counts = await parts.summaries.count(accountId, filter, now)
    return counts === null ? null : Math.max(0, counts.failed - (createdAt >= since ? 1 : 0))
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

export function getJobLayout(app: FastifyInstance, deps: ConsoleDeps): void {
  const { callerOf, console: parts, clock } = deps
  app.get(`${JOB}/layout`, needs('jobs:read'), async (request, reply) => {
    // An address without an id is refused before anything is asked.
    const jobId = jobIdOf(request)
    const [record, details] = await Promise.all([
      findRecord(deps, request),
      parts.summaries.findDetails(callerOf(request).accountId, jobId, clock.now()),
    ])
    if (details === null) throw noSuchJob()
    const layout = shownLayout(record.submission, details.origin)
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

export function toLineView({ n, at, nodeId, text }: LogLine) {
  return { n, at: at?.toISOString() ?? null, node: nodeId, text }
}

// The nodes of a job: what each is, when it ran, and how it stands.

const MAX_NODES = 10_000

interface ShownRun {
  readonly spans: readonly NodeSpan[]
  readonly isCut: boolean
}

function toShownRun({ run }: Pick<RecordedJob, 'run'>, live: LiveRun | null): ShownRun {
  if (live !== null) return { spans: live.nodes, isCut: live.isCut }
  return { spans: (run?.spans ?? []).map(toNodeSpan), isCut: run?.areSpansCut === true }
}

function toNodesView(job: Job, nodes: ReadonlyMap<string, NodeFacts>, shown: ShownRun) {
  const spans = new Map(shown.spans.map((span) => [span.nodeId, span]))
  const outputs = new Map<string, number>()
  for (const { nodeId } of job.outputs) outputs.set(nodeId, (outputs.get(nodeId) ?? 0) + 1)
  const views = [...nodes].slice(0, MAX_NODES).map(([id, { classType, title }]) => {
    const span = spans.get(id) ?? null
    return {
      ...{ id, class_type: classType, title },
      state: stateOf(job, id, span),
      started_at: toTime(span?.startedAtMs),
      ended_at: toTime(span === null ? null : endOf(job, span)),
      step: span?.step ?? null,
      steps: span?.steps ?? null,
      outputs: outputs.get(id) ?? 0,
    }
  })
  return { nodes: views, is_cut: shown.isCut || nodes.size > MAX_NODES }
}

export function stateOf(job: Pick<Job, 'status' | 'error'>, nodeId: string, span: NodeSpan | null): string {
  const hasEnded = isTerminal(job.status)
  if (hasEnded && job.error?.nodeId === nodeId) return 'failed'
  if (span === null) return hasEnded ? 'skipped' : 'waiting'
  if (span.startedAtMs === null) return 'cached'
  if (span.endedAtMs !== null) return 'done'
  if (!hasEnded) return 'running'
  return job.status === 'succeeded' ? 'done' : 'interrupted'
}

/** A node at work when its job ended, ended with it: engines report no separate end for it. */
export function endOf(job: Pick<Job, 'status' | 'completedAt'>, span: NodeSpan): number | null {
  if (span.endedAtMs !== null || span.startedAtMs === null) return span.endedAtMs
  return isTerminal(job.status) ? (job.completedAt?.getTime() ?? null) : null
}

export function toTime(ms: number | null | undefined): string | null {
  return ms == null ? null : new Date(ms).toISOString()
}
