import type { FastifyInstance } from 'fastify'
import type { EngineStatus } from '../../../domain/engine/fleet/engine-status.ts'
import { toEngineView } from '../engine-view.ts'
import { ADMIN_PATH, type AdminKit, idOf, send } from '../operation.ts'

export interface CordonEngineDeps {
  readonly kit: AdminKit
  readonly cordon: (engineId: string) => EngineStatus
}

/** Takes no more jobs and finishes what it runs. */
export function cordonEngine(app: FastifyInstance, { kit, cordon }: CordonEngineDeps): void {
  app.post(`${ADMIN_PATH}/engines/:id/cordon`, async (request, reply) => {
    const id = idOf(request)
    const status = cordon(id)
    await kit.note(request, { action: 'engine.cordon', subject: id, details: { state: status.state } })
    return send(reply, 200, toEngineView(status))
  })
}
