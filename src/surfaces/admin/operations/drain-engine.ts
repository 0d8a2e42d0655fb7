import type { FastifyInstance } from 'fastify'
import type { EngineStatus } from '../../../domain/engine/engine-status.ts'
import { toEngineView } from '../engine-view.ts'
import { ADMIN_PATH, idOf, send } from '../operation.ts'

export interface DrainEngineDeps {
  /** Answers at once; the emptying goes on by itself. */
  readonly drain: (engineId: string) => EngineStatus
}

export function drainEngine(app: FastifyInstance, { drain }: DrainEngineDeps): void {
  app.post(`${ADMIN_PATH}/engines/:id/drain`, (request, reply) => send(reply, 200, toEngineView(drain(idOf(request)))))
}
