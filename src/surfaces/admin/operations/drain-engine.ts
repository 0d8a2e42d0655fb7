import type { FastifyInstance } from 'fastify'
import type { EngineStatus } from '../../../domain/engine/fleet/engine-status.ts'
import { toEngineView } from '../engine-view.ts'
import { ADMIN_PATH, type AdminKit, idOf, send } from '../operation.ts'

export interface DrainEngineDeps {
  readonly kit: AdminKit
  readonly drain: (engineId: string) => EngineStatus
}

/** Takes no more jobs; what it runs gets the time of a drain and is then given to others. */
export function drainEngine(app: FastifyInstance, { kit, drain }: DrainEngineDeps): void {
  app.post(`${ADMIN_PATH}/engines/:id/drain`, async (request, reply) => {
    const id = idOf(request)
    const status = drain(id)
    await kit.note(request, { action: 'engine.drain', subject: id, details: { state: status.state } })
    return send(reply, 200, toEngineView(status))
  })
}
