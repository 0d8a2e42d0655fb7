import type { FastifyInstance } from 'fastify'
import type { EngineStatus } from '../../../domain/engine/fleet/engine-status.ts'
import { toEngineView } from '../engine-view.ts'
import { ADMIN_PATH, type AdminKit, idOf, send } from '../operation.ts'

export interface ResumeEngineDeps {
  readonly kit: AdminKit
  readonly resume: (engineId: string) => EngineStatus
}

/** Takes jobs again, out of quarantine too. */
export function resumeEngine(app: FastifyInstance, { kit, resume }: ResumeEngineDeps): void {
  app.post(`${ADMIN_PATH}/engines/:id/resume`, async (request, reply) => {
    const id = idOf(request)
    const status = resume(id)
    await kit.note(request, { action: 'engine.resume', subject: id, details: { state: status.state } })
    return send(reply, 200, toEngineView(status))
  })
}
