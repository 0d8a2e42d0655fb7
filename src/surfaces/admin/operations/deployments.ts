/** Deployments: pools of workers with an address of their own. Every answer shows what the pool has to do. */

import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import type { Deployment } from '../../../domain/deployments/deployment.ts'
import type { DeploymentStore, PoolLoad } from '../../../domain/deployments/deployment-store.ts'
import type { Deployments } from '../../../domain/deployments/deployments.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, sendJson } from '../../kit/request.ts'
import { ADMIN_PATH, type AdminKit } from '../admin-operation.ts'

interface DeploymentOperationDeps {
  readonly kit: AdminKit
  readonly accounts: Pick<Accounts, 'find'>
  readonly deployments: Deployments
  readonly show: ShowDeployments
  readonly defaultWorkers: number
}

interface NewDeploymentBody {
  readonly id: string
  readonly account_id?: string | null
  readonly workers?: number
  readonly idle_after_ms?: number | null
}

export function createDeployment(app: FastifyInstance, deps: DeploymentOperationDeps): void {
  const { kit, accounts, deployments, show, defaultWorkers } = deps
  app.post(`${ADMIN_PATH}/deployments`, needs('operator'), async (request, reply) => {
    const body = await kit.readBody<NewDeploymentBody>(request, 'NewDeployment')
    const { id, account_id: accountId = null, workers = defaultWorkers, idle_after_ms: idleAfterMs = null } = body
    if (accountId !== null && accounts.find(accountId) === null) throw invalidField('account_id', 'names no account')
    const through = kit.audited(request, { action: 'deployment.create', subject: id, details: { ...body } })
    const made = await deployments.create({ id, accountId, workers, idleAfterMs }, through.deployments)
    const [view] = await show([made])
    return sendJson(reply, 201, view)
  })
}

export function listDeployments(app: FastifyInstance, { deployments, show }: DeploymentOperationDeps): void {
  app.get(`${ADMIN_PATH}/deployments`, needs('operator'), async (_request, reply) =>
    sendJson(reply, 200, { deployments: await show(deployments.list()) }),
  )
}

export function getDeployment(app: FastifyInstance, { deployments, show }: DeploymentOperationDeps): void {
  app.get(`${ADMIN_PATH}/deployments/:id`, needs('operator'), async (request, reply) => {
    const deployment = deployments.find(idOf(request))
    if (deployment === null) throw new ServiceError('not_found', 'there is no deployment with this id')
    const [view] = await show([deployment])
    return sendJson(reply, 200, view)
  })
}

interface DeploymentChangeBody {
  readonly workers?: number
  readonly idle_after_ms?: number | null
}

export function updateDeployment(app: FastifyInstance, { kit, deployments, show }: DeploymentOperationDeps): void {
  app.patch(`${ADMIN_PATH}/deployments/:id`, needs('operator'), async (request, reply) => {
    const id = idOf(request)
    const body = await kit.readBody<DeploymentChangeBody>(request, 'DeploymentChange')
    const { workers, idle_after_ms: idleAfterMs } = body
    const through = kit.audited(request, { action: 'deployment.update', subject: id, details: { ...body } })
    const change = { ...(workers !== undefined && { workers }), ...(idleAfterMs !== undefined && { idleAfterMs }) }
    const [view] = await show([await deployments.configure(id, change, through.deployments)])
    return sendJson(reply, 200, view)
  })
}

export function startDeployment(app: FastifyInstance, { kit, deployments, show }: DeploymentOperationDeps): void {
  app.post(`${ADMIN_PATH}/deployments/:id/start`, needs('operator'), async (request, reply) => {
    const id = idOf(request)
    const through = kit.audited(request, { action: 'deployment.start', subject: id, details: {} })
    const [view] = await show([await deployments.start(id, through.deployments)])
    return sendJson(reply, 200, view)
  })
}

export function stopDeployment(app: FastifyInstance, { kit, deployments, show }: DeploymentOperationDeps): void {
  app.post(`${ADMIN_PATH}/deployments/:id/stop`, needs('operator'), async (request, reply) => {
    const id = idOf(request)
    const { now = false } = await kit.readBody<{ now?: boolean }>(request, 'DeploymentStop')
    const through = kit.audited(request, { action: 'deployment.stop', subject: id, details: { now } })
    const [view] = await show([await deployments.stop(id, { now }, through.deployments)])
    return sendJson(reply, 200, view)
  })
}

/** Deployments as the wire shows them, with the load of their pools. */
type ShowDeployments = (deployments: readonly Deployment[]) => Promise<object[]>

export interface DeploymentViewDeps {
  readonly countPools: DeploymentStore['count']
  readonly workersOf: (pool: string) => number
  /** null: deployments are reached by path only. */
  readonly domain: string | null
  readonly mountPrefix: string
}

export function createShowDeployments({
  countPools,
  workersOf,
  domain,
  mountPrefix,
}: DeploymentViewDeps): ShowDeployments {
  function toView(deployment: Deployment, load: PoolLoad | undefined): object {
    const { id, accountId, state, workers, idleAfterMs, createdAt, changedAt } = deployment
    return {
      id,
      account_id: accountId,
      state,
      workers,
      idle_after_ms: idleAfterMs,
      created_at: createdAt.toISOString(),
      changed_at: changedAt.toISOString(),
      use: { queued: load?.queued ?? 0, running: load?.running ?? 0, workers: workersOf(id) },
      path: `${mountPrefix}/deployment/${id}`,
      host: domain === null ? null : `${id}.run.${domain}`,
    }
  }
  return async (deployments) => {
    const counted = await countPools(deployments.map(({ id }) => id))
    const byPool = new Map(counted.map((load) => [load.pool, load]))
    return deployments.map((deployment) => toView(deployment, byPool.get(deployment.id)))
  }
}
