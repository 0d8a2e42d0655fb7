import type { FastifyInstance } from 'fastify'
import type { Fleet } from '../../../domain/engine/fleet/fleet.ts'
import { toEngineView } from '../engine-view.ts'
import { ADMIN_PATH, idOf, send } from '../operation.ts'

export function getEngine(app: FastifyInstance, { fleet }: { readonly fleet: Pick<Fleet, 'find'> }): void {
  app.get(`${ADMIN_PATH}/engines/:id`, (request, reply) => send(reply, 200, toEngineView(fleet.find(idOf(request)))))
}
