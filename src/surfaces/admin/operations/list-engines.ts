import type { FastifyInstance } from 'fastify'
import type { Fleet } from '../../../domain/engine/fleet/fleet.ts'
import { toEngineView } from '../engine-view.ts'
import { ADMIN_PATH, send } from '../operation.ts'

export function listEngines(app: FastifyInstance, { fleet }: { readonly fleet: Pick<Fleet, 'status'> }): void {
  app.get(`${ADMIN_PATH}/engines`, (_request, reply) => send(reply, 200, { engines: fleet.status().map(toEngineView) }))
}
