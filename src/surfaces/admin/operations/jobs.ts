/** Jobs of all accounts: found, looked at and canceled as their owners could. Only a running service has these: workers must be told. */
import type { FastifyInstance } from 'fastify'
import { isJsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { NamedFiles } from '../../../domain/assets/named-files.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import type { CancelJob } from '../../../domain/jobs/end/cancel-job.ts'
import type { JobStore } from '../../../domain/jobs/job-store.ts'
import type { Queue } from '../../../domain/jobs/queue/manage-queue.ts'
import type { RunRecords } from '../../../domain/jobs/read/recorded-jobs.ts'
import type { JobDetails, JobSummary, SummaryStore } from '../../../domain/jobs/summaries/summary-store.ts'
import { readJsonBody } from '../../kit/bodies/json-body.ts'
import { needs, serviceAddressOf, wrongMethod } from '../../kit/guards/routes.ts'
import { createCancelMany, readCancelWish } from '../../kit/jobs/cancel-many.ts'
import { createReadPage, readFields } from '../../kit/jobs/job-pages.ts'
import { countSlots, toDetailView, toErrorView, toSummaryView, toWaitView } from '../../kit/jobs/job-view.ts'
import { idOf, sendJson } from '../../kit/request.ts'
import type { ConsoleParts } from '../../kit/surface-parts.ts'
import { ADMIN_PATH, type AdminKit } from '../admin-operation.ts'
import { mustFindOwner } from './queue.ts'

export interface JobOperationDeps
  extends Pick<ConsoleParts, 'standingOf' | 'engines' | 'availability' | 'estimateWait' | 'cursorSecret' | 'gpuOfJob'> {
  readonly kit: AdminKit
  readonly jobs: Pick<JobStore, 'findOwner'>
  readonly summaries: Pick<SummaryStore, 'search' | 'findMany' | 'findDetails' | 'count'>
  readonly records: Pick<RunRecords, 'find'>
  readonly assets: Pick<NamedFiles, 'findManyByHash'>
  readonly cancel: CancelJob
  readonly queue: Pick<Queue, 'pausesOf'>
}

const JOBS = `${ADMIN_PATH}/jobs`
// Each of them has its line in the audit.
const MAX_CANCELED = 1000
const MAX_BODY_BYTES = 1_048_576
const MAX_ID_LENGTH = 200

/** A job in short, and whose it is. */
export function toOwnedView(summary: JobSummary) {
  return { ...toSummaryView(summary), account_id: summary.accountId }
}

export function listJobs(app: FastifyInstance, deps: JobOperationDeps): void {
  const readPage = createReadPage({ ...deps, clock: deps.kit.clock })
  app.get(JOBS, needs('operator'), async (request, reply) => {
    const fields = readFields(request.raw.url ?? '')
    const accountId = readAccount(fields.get('account') || null)
    return sendJson(reply, 200, await readPage(accountId, fields, { toView: toOwnedView, others: ['account'] }))
  })
}

function readAccount(value: JsonValue): string | null {
  const isId = value === null || (typeof value === 'string' && value.length <= MAX_ID_LENGTH && !value.includes('\0'))
  if (!isId) throw invalidField('account', `must be the id of an account, of at most ${MAX_ID_LENGTH} characters`)
  return value as string | null
}

/** What an engine runs and ran. */
export function listEngineJobs(app: FastifyInstance, deps: JobOperationDeps): void {
  const readPage = createReadPage({ ...deps, clock: deps.kit.clock })
  app.get(`${ADMIN_PATH}/engines/:id/jobs`, needs('operator'), async (request, reply) => {
    const fields = new Map([...readFields(request.raw.url ?? ''), ['engine', idOf(request)]])
    return sendJson(reply, 200, await readPage(null, fields, { toView: toOwnedView }))
  })
}

/** As its owner sees it, with every engine of its pool: to an operator those that cannot run it say what to add. */
export function getJob(app: FastifyInstance, deps: JobOperationDeps): void {
  app.get(`${JOBS}/:id`, needs('operator'), async (request, reply) => {
    const [id, accountId] = [idOf(request), await mustFindOwner(deps, request)]
    const [details, record] = await Promise.all([
      deps.summaries.findDetails(accountId, id, deps.kit.clock.now()),
      deps.records.find(accountId, id),
    ])
    if (details === null || record === null) throw new ServiceError('not_found', 'there is no job with this id')
    const { summary } = details
    const { mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, {
      ...toOwnedView(summary),
      ...(await toDetailView(details, record, { assets: deps.assets, mountPrefix, gpuOfJob: deps.gpuOfJob })),
      wait: summary.status === 'queued' ? await explainWait(deps, details) : null,
      error: toErrorView(record.job, null),
    })
  })
}

async function explainWait(deps: JobOperationDeps, details: JobDetails) {
  const { accountId, id: jobId, pool } = details.summary
  const standing = await deps.standingOf({ accountId, keyId: null, scopes: null, endpoints: null })
  const pauses = await deps.queue.pausesOf(accountId, pool)
  const facts = { standing, pauses, engines: deps.engines(pool), availability: deps.availability() }
  const estimateSeconds = await deps.estimateWait({ accountId, pool, jobId, maxSlots: countSlots(details, facts) })
  return toWaitView(details, { ...facts, estimateSeconds, showsUnable: true, now: deps.kit.clock.now() })
}

export function cancelJob(app: FastifyInstance, { kit, jobs, cancel }: JobOperationDeps): void {
  app.post(`${JOBS}/:id/cancel`, needs('operator'), async (request, reply) => {
    const [id, accountId] = [idOf(request), await mustFindOwner({ jobs }, request)]
    const through = kit.audited(request, { action: 'job.cancel', subject: id, details: { account_id: accountId } })
    const { status } = await cancel(accountId, id, { through: through.cancels })
    return sendJson(reply, 200, { id, account_id: accountId, status })
  })
}

/** Of one account or of all. Every job that is canceled has an audit line of its own, written together with its cancel. */
export function cancelJobs(app: FastifyInstance, deps: JobOperationDeps): void {
  const { kit, cancel } = deps
  const cancelMany = createCancelMany({ summaries: deps.summaries, clock: kit.clock, maxCanceled: MAX_CANCELED })
  // Would be taken for a job of this name.
  for (const method of ['GET', 'PATCH'])
    app.route({
      ...{ method, url: `${JOBS}/cancel`, ...needs('operator') },
      handler(request, reply) {
        reply.header('allow', 'POST')
        throw wrongMethod(request.method, ['POST'])
      },
    })
  app.post(`${JOBS}/cancel`, needs('operator'), async (request, reply) => {
    const body = await readJsonBody(request, { maxBytes: MAX_BODY_BYTES })
    const wish = readCancelWish(body)
    const account = readAccount(isJsonObject(body) ? (body['account'] ?? null) : null)
    const outcome = await cancelMany(account, wish, ({ id, accountId }, { isOnlyQueued }) => {
      const change = { action: 'job.cancel', subject: id, details: { account_id: accountId, of_many: true } }
      return cancel(accountId, id, { through: kit.audited(request, change).cancels, isOnlyQueued })
    })
    return sendJson(reply, 200, outcome)
  })
}
