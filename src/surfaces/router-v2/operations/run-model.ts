/** Runs a model: the framework's door to what the hot path does. */
import type { FastifyInstance } from 'fastify'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { MODEL_ROUTE, type ModelParams } from '../paths.ts'
import type { OperationKit } from '../router-operation.ts'
import type { ServeRun } from '../serve-run.ts'

export interface RunModelDeps {
  readonly kit: OperationKit
  readonly serveRun: ServeRun
}

export function runModel(app: FastifyInstance, { kit, serveRun }: RunModelDeps): void {
  app.post<{ Params: ModelParams }>(MODEL_ROUTE, async (request, reply) => {
    const { caller } = kit.contextOf(request)
    const address = serviceAddressOf(request)
    reply.hijack()
    await serveRun(request.raw, reply.raw, { ...request.params, caller, address })
  })
}
