import type { FastifyInstance } from 'fastify'
import type { Deployments } from '../../../domain/deployments/deployments.ts'
import { ADMIN_PATH, send } from '../admin-operation.ts'
import type { ShowDeployments } from '../deployment-view.ts'

export interface ListDeploymentsDeps {
  readonly deployments: Pick<Deployments, 'list'>
  readonly show: ShowDeployments
}

export function listDeployments(app: FastifyInstance, { deployments, show }: ListDeploymentsDeps): void {
  app.get(`${ADMIN_PATH}/deployments`, async (_request, reply) =>
    send(reply, 200, { deployments: await show(deployments.list()) }),
  )
}
