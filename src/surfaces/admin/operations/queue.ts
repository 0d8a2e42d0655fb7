/** The queue in the hands of an operator: the service, a pool or an account is paused and resumed, and jobs that wait are moved. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isUuid } from '../../../../lib/ids.ts'
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import type { JobStore } from '../../../domain/jobs/job-store.ts'
import type { Queue } from '../../../domain/jobs/queue/manage-queue.ts'
import type { PauseKey } from '../../../domain/jobs/queue/queue-store.ts'
import { needs } from '../../kit/guards/routes.ts'
import { toWaitingChange } from '../../kit/jobs/queue-changes.ts'
import { idOf, sendJson } from '../../kit/request.ts'
import { ADMIN_PATH, type AdminKit } from '../admin-operation.ts'

export interface QueueOperationDeps {
  readonly kit: AdminKit
  readonly jobs: Pick<JobStore, 'findOwner'>
  readonly queue: Queue
  readonly hasAccount: (accountId: string) => Promise<boolean>
  readonly hasPool: (pool: string) => boolean
}

const QUEUE = `${ADMIN_PATH}/queue`

interface PauseBody {
  readonly scope: 'service' | 'pool' | 'account'
  readonly name?: string
  readonly reason?: string | null
}

function toKey({ scope, name }: PauseBody): PauseKey {
  if ((scope === 'service') !== (name === undefined))
    throw invalidField('name', scope === 'service' ? 'must be left out for the service' : `must name the ${scope}`)
  return { scope, name: name ?? '' }
}

/** A pause of what does not exist would be found when it is missed. */
async function mustExist({ hasAccount, hasPool }: QueueOperationDeps, { scope, name }: PauseKey): Promise<void> {
  if (scope === 'account' && !(await hasAccount(name))) throw invalidField('name', 'names no account')
  if (scope === 'pool' && !hasPool(name))
    throw invalidField('name', 'names no pool: default, or the id of a deployment')
}

async function toList(queue: Queue) {
  const pauses = (await queue.list()).map(({ scope, name, reason, pausedAt }) => {
    return { scope, name: scope === 'service' ? null : name, reason, paused_at: pausedAt.toISOString() }
  })
  return { pauses }
}

export function getQueue(app: FastifyInstance, { queue }: QueueOperationDeps): void {
  app.get(QUEUE, needs('operator'), async (_request, reply) => sendJson(reply, 200, await toList(queue)))
}

export function pauseQueue(app: FastifyInstance, deps: QueueOperationDeps): void {
  const { kit, queue } = deps
  app.post(`${QUEUE}/pause`, needs('operator'), async (request, reply) => {
    const body = await kit.readBody<PauseBody>(request, 'NewPause')
    const key = toKey(body)
    await mustExist(deps, key)
    const reason = body.reason ?? null
    const change = { action: 'queue.pause', subject: subjectOf(key), details: { reason } }
    await queue.pause(key, reason, kit.audited(request, change).queue)
    return sendJson(reply, 200, await toList(queue))
  })
}

export function resumeQueue(app: FastifyInstance, { kit, queue }: QueueOperationDeps): void {
  app.post(`${QUEUE}/resume`, needs('operator'), async (request, reply) => {
    const key = toKey(await kit.readBody<PauseBody>(request, 'PauseKey'))
    const change = { action: 'queue.resume', subject: subjectOf(key), details: {} }
    const { queue: through } = kit.audited(request, change)
    await queue.resume(key, through)
    if (key.scope === 'account') await queue.resume({ ...key, scope: 'own' }, through)
    return sendJson(reply, 200, await toList(queue))
  })
}

function subjectOf({ scope, name }: PauseKey): string {
  return scope === 'service' ? scope : `${scope}:${name}`
}

export function changeJob(app: FastifyInstance, { kit, jobs, queue }: QueueOperationDeps): void {
  app.patch(`${ADMIN_PATH}/jobs/:id`, needs('operator'), async (request, reply) => {
    const [id, accountId] = [idOf(request), await mustFindOwner({ jobs }, request)]
    const body = await kit.readBody<JsonObject>(request, 'JobChange')
    const through = kit.audited(request, {
      action: 'job.move',
      subject: id,
      details: { account_id: accountId, ...body },
    })
    const job = await queue.change(accountId, id, toWaitingChange(body), through.queue)
    return sendJson(reply, 200, {
      ...{ id, account_id: accountId, status: job.status, priority: job.priority },
      queue_position: job.queuePosition,
      not_before: job.notBefore?.toISOString() ?? null,
    })
  })
}

export async function mustFindOwner(
  { jobs }: Pick<QueueOperationDeps, 'jobs'>,
  request: FastifyRequest,
): Promise<string> {
  const id = idOf(request)
  const accountId = isUuid(id) ? await jobs.findOwner(id) : null
  if (accountId === null) throw new ServiceError('not_found', 'there is no job with this id')
  return accountId
}
