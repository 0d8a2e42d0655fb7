import type { FastifyInstance } from 'fastify'
import type { Fleet } from '../../../domain/engine/fleet.ts'
import { toEngineView } from '../engine-view.ts'
import { ADMIN_PATH, idOf, send } from '../operation.ts'

export function cordonEngine(app: FastifyInstance, { fleet }: { readonly fleet: Pick<Fleet, 'cordon'> }): void {
  app.post(`${ADMIN_PATH}/engines/:id/cordon`, (request, reply) =>
    send(reply, 200, toEngineView(fleet.cordon(idOf(request)))),
  )
}
