/** One thing for many jobs of an account: what it would be about, its record, how far it is, and the archives of a download. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { OpenContent } from '../../../domain/assets/asset-content.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import type { BulkAction } from '../../../domain/jobs/bulk/bulk-action.ts'
import type { BulkActions } from '../../../domain/jobs/bulk/manage-bulk.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { readJsonObject } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { needs } from '../../kit/guards/routes.ts'
import {
  ITEM_PARAMETERS,
  readBulkWish,
  readItemQuery,
  readPart,
  toBulkItemView,
  toBulkView,
  toPreviewView,
} from '../../kit/jobs/bulk-view.ts'
import { sendJobsArchive } from '../../kit/jobs/outputs-archive.ts'
import { idOf, readParameters, sendJson } from '../../kit/request.ts'
import { codeOf } from '../jobs-errors.ts'
import type { ContextOf, ReachableJobs, RequestContext } from '../jobs-operation.ts'
import { API_PATH, type JobLinkStyle } from '../views/job-view.ts'

interface BulkDeps {
  readonly contextOf: ContextOf
  readonly check: ContractCheck
  readonly bulk: BulkActions
  readonly jobs: Pick<ReachableJobs, 'find'>
  readonly openContent: OpenContent
  readonly linkStyle: JobLinkStyle
}

const BULK = `${API_PATH}/bulk-actions`
const BULK_ACTION = `${BULK}/:id`
// Ten thousand ids.
const MAX_BODY_BYTES = 524_288

/** They are about all jobs of an account: an address that shows those of one deployment has none. */
function ownerOf({ contextOf }: BulkDeps, request: FastifyRequest): RequestContext {
  const context = contextOf(request)
  if (context.pool === null) return context
  throw new ServiceError('not_found', 'many jobs are dealt with at the address of the service, not of a deployment')
}

function toView({ linkStyle }: BulkDeps, action: BulkAction, { origin, mountPrefix }: RequestContext) {
  return toBulkView(action, `${linkStyle.isAbsolute ? origin : ''}${mountPrefix}${BULK}`, codeOf)
}

function createBulkAction(app: FastifyInstance, deps: BulkDeps): void {
  const { bulk, check } = deps
  app.post(BULK, needs('jobs:write'), async (request, reply) => {
    const context = ownerOf(deps, request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const body = await readJsonObject(request, { maxBytes: MAX_BODY_BYTES })
    const problem = check('BulkActionRequest', body, 'body')
    if (problem !== null) throw new ServiceError('invalid_field', problem.replace(/^body\./, ''))
    const wish = readBulkWish(body)
    const { accountId, keyId } = context
    if (wish.isDry) return sendJson(reply, 200, toPreviewView(wish.kind, await bulk.preview(accountId, wish)))
    const action = await bulk.create({ owner: accountId, keyId, actor: null }, wish, { idempotencyKey })
    return sendJson(reply, 201, toView(deps, action, context))
  })
}

function listBulkActions(app: FastifyInstance, deps: BulkDeps): void {
  app.get(BULK, needs('jobs:read'), async (request, reply) => {
    readParameters(request.raw.url ?? '', [])
    const context = ownerOf(deps, request)
    const found = await deps.bulk.list(context.accountId)
    return sendJson(reply, 200, { bulk_actions: found.map((action) => toView(deps, action, context)) })
  })
}

function getBulkAction(app: FastifyInstance, deps: BulkDeps): void {
  app.get(BULK_ACTION, needs('jobs:read'), async (request, reply) => {
    const context = ownerOf(deps, request)
    return sendJson(reply, 200, toView(deps, await deps.bulk.find(context.accountId, idOf(request)), context))
  })
}

/** Clients send no body; whatever body comes is ignored. */
function stopBulkAction(app: FastifyInstance, deps: BulkDeps): void {
  app.post(`${BULK_ACTION}/stop`, needs('jobs:write'), async (request, reply) => {
    const context = ownerOf(deps, request)
    return sendJson(reply, 200, toView(deps, await deps.bulk.stop(context.accountId, idOf(request)), context))
  })
}

function listBulkActionJobs(app: FastifyInstance, deps: BulkDeps): void {
  app.get(`${BULK_ACTION}/jobs`, needs('jobs:read'), async (request, reply) => {
    const { accountId } = ownerOf(deps, request)
    const query = readItemQuery(readParameters(request.raw.url ?? '', ITEM_PARAMETERS))
    const { items, next } = await deps.bulk.listItems(accountId, idOf(request), query)
    return sendJson(reply, 200, { jobs: items.map((item) => toBulkItemView(item, codeOf)), next })
  })
}

/** Jobs that are gone by now are left out. */
function getBulkActionOutputs(app: FastifyInstance, deps: BulkDeps): void {
  app.get(`${BULK_ACTION}/outputs.zip`, needs('jobs:read'), async (request, reply) => {
    const context = ownerOf(deps, request)
    const id = idOf(request)
    const part = readPart(readParameters(request.raw.url ?? '', ['part']))
    const jobs: Job[] = []
    for (const { jobId } of await deps.bulk.listPart(context.accountId, id, part)) {
      const job = await findOrNull(deps, context, jobId)
      if (job !== null) jobs.push(job)
    }
    return sendJobsArchive(reply, { jobs, name: `jobs-${id.slice(0, 8)}-${part}` }, deps.openContent)
  })
}

async function findOrNull({ jobs }: BulkDeps, context: RequestContext, jobId: string): Promise<Job | null> {
  try {
    return await jobs.find(context, jobId)
  } catch (error) {
    if (error instanceof ServiceError && error.refusal === 'not_found') return null
    throw error
  }
}

export const BULK_OPERATIONS = [
  ...[listBulkActions, createBulkAction, getBulkAction, stopBulkAction],
  ...[listBulkActionJobs, getBulkActionOutputs],
]
