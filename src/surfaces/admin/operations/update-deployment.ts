import type { FastifyInstance } from 'fastify'
import type { Deployments } from '../../../domain/deployments/deployments.ts'
import { ADMIN_PATH, type AdminKit, idOf, send } from '../admin-operation.ts'
import type { ShowDeployments } from '../deployment-view.ts'

export interface UpdateDeploymentDeps {
  readonly kit: AdminKit
  readonly deployments: Pick<Deployments, 'configure'>
  readonly show: ShowDeployments
}

interface DeploymentChangeBody {
  readonly workers?: number
  readonly idle_after_ms?: number | null
}

export function updateDeployment(app: FastifyInstance, { kit, deployments, show }: UpdateDeploymentDeps): void {
  app.patch(`${ADMIN_PATH}/deployments/:id`, async (request, reply) => {
    const id = idOf(request)
    const body = await kit.readBody<DeploymentChangeBody>(request, 'DeploymentChange')
    const { workers, idle_after_ms: idleAfterMs } = body
    const through = kit.audited(request, { action: 'deployment.update', subject: id, details: { ...body } })
    const change = { ...(workers !== undefined && { workers }), ...(idleAfterMs !== undefined && { idleAfterMs }) }
    const [view] = await show([await deployments.configure(id, change, through.deployments)])
    return send(reply, 200, view)
  })
}
