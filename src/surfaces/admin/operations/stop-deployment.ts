import type { FastifyInstance } from 'fastify'
import type { Deployments } from '../../../domain/deployments/deployments.ts'
import { ADMIN_PATH, type AdminKit, idOf, send } from '../admin-operation.ts'
import type { ShowDeployments } from '../deployment-view.ts'

export interface StopDeploymentDeps {
  readonly kit: AdminKit
  readonly deployments: Pick<Deployments, 'stop'>
  readonly show: ShowDeployments
}

export function stopDeployment(app: FastifyInstance, { kit, deployments, show }: StopDeploymentDeps): void {
  app.post(`${ADMIN_PATH}/deployments/:id/stop`, async (request, reply) => {
    const id = idOf(request)
    const { now = false } = await kit.readBody<{ now?: boolean }>(request, 'DeploymentStop')
    const through = kit.audited(request, { action: 'deployment.stop', subject: id, details: { now } })
    const [view] = await show([await deployments.stop(id, { now }, through.deployments)])
    return send(reply, 200, view)
  })
}
