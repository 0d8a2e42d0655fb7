import type { FastifyInstance } from 'fastify'
import type { Deployments } from '../../../domain/deployments/deployments.ts'
import { ADMIN_PATH, type AdminKit, idOf, send } from '../admin-operation.ts'
import type { ShowDeployments } from '../deployment-view.ts'

export interface StartDeploymentDeps {
  readonly kit: AdminKit
  readonly deployments: Pick<Deployments, 'start'>
  readonly show: ShowDeployments
}

export function startDeployment(app: FastifyInstance, { kit, deployments, show }: StartDeploymentDeps): void {
  app.post(`${ADMIN_PATH}/deployments/:id/start`, async (request, reply) => {
    const id = idOf(request)
    const through = kit.audited(request, { action: 'deployment.start', subject: id, details: {} })
    const [view] = await show([await deployments.start(id, through.deployments)])
    return send(reply, 200, view)
  })
}
