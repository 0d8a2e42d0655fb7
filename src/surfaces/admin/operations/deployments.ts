import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import type { Deployments } from '../../../domain/deployments/deployments.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { ADMIN_PATH, type AdminKit, send } from '../admin-operation.ts'
import type { ShowDeployments } from '../deployment-view.ts'

export interface CreateDeploymentDeps {
  readonly kit: AdminKit
  readonly accounts: Pick<Accounts, 'find'>
  readonly deployments: Pick<Deployments, 'create'>
  readonly show: ShowDeployments
  readonly defaultWorkers: number
}

interface NewDeploymentBody {
  readonly id: string
  readonly account_id?: string | null
  readonly workers?: number
  readonly idle_after_ms?: number | null
}

export function createDeployment(app: FastifyInstance, deps: CreateDeploymentDeps): void {
  const { kit, accounts, deployments, show, defaultWorkers } = deps
  app.post(`${ADMIN_PATH}/deployments`, async (request, reply) => {
    const body = await kit.readBody<NewDeploymentBody>(request, 'NewDeployment')
    const { id, account_id: accountId = null, workers = defaultWorkers, idle_after_ms: idleAfterMs = null } = body
    if (accountId !== null && accounts.find(accountId) === null) {
      throw new ServiceError('invalid_field', 'account_id names no account', { details: { field: 'account_id' } })
    }
    const through = kit.audited(request, { action: 'deployment.create', subject: id, details: { ...body } })
    const made = await deployments.create({ id, accountId, workers, idleAfterMs }, through.deployments)
    const [view] = await show([made])
    return send(reply, 201, view)
  })
}
