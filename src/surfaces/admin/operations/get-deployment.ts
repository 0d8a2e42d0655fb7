import type { FastifyInstance } from 'fastify'
import type { Deployments } from '../../../domain/deployments/deployments.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { ADMIN_PATH, idOf, send } from '../admin-operation.ts'
import type { ShowDeployments } from '../deployment-view.ts'

export interface GetDeploymentDeps {
  readonly deployments: Pick<Deployments, 'find'>
  readonly show: ShowDeployments
}

export function getDeployment(app: FastifyInstance, { deployments, show }: GetDeploymentDeps): void {
  app.get(`${ADMIN_PATH}/deployments/:id`, async (request, reply) => {
    const deployment = deployments.find(idOf(request))
    if (deployment === null) throw new ServiceError('not_found', 'there is no deployment with this id')
    const [view] = await show([deployment])
    return send(reply, 200, view)
  })
}
