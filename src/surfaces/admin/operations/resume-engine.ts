import type { FastifyInstance } from 'fastify'
import type { Fleet } from '../../../domain/engine/fleet.ts'
import { toEngineView } from '../engine-view.ts'
import { ADMIN_PATH, idOf, send } from '../operation.ts'

export function resumeEngine(app: FastifyInstance, { fleet }: { readonly fleet: Pick<Fleet, 'resume'> }): void {
  app.post(`${ADMIN_PATH}/engines/:id/resume`, (request, reply) =>
    send(reply, 200, toEngineView(fleet.resume(idOf(request)))),
  )
}
