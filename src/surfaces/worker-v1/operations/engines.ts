/** The worker's process, its engines and what they can run. */
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../../../lib/clock.ts'
import { MAX_CATALOG_BYTES } from '../../../domain/workers/guest-catalog.ts'
import type { EngineFields } from '../../../domain/workers/wire/engine-wire.ts'
import { readBodyBytes } from '../../kit/bodies/json-body.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import { WORKER_PATH, type WorkerKit } from '../worker-operation.ts'

interface EngineDeps {
  readonly kit: WorkerKit
  readonly clock: Clock
}

interface BeatBody {
  readonly version: string
  readonly host: string
  readonly live_node: string | null
  readonly workers: Readonly<Record<string, number>>
}

const CATALOG_MS = 120_000

export function publishEngines(app: FastifyInstance, { kit }: EngineDeps): void {
  app.put(`${WORKER_PATH}/engines`, needs('worker'), async (request, reply) => {
    const { engines } = await kit.readBody<{ readonly engines: readonly EngineFields[] }>(request, 'Engines')
    const { held, wishes } = await kit.gateway.engines.publish(kit.workerOf(request), kit.instanceOf(request), engines)
    return sendJson(reply, 200, { held, wishes })
  })
}

export function leaveService(app: FastifyInstance, { kit }: EngineDeps): void {
  app.delete(`${WORKER_PATH}/engines`, needs('worker'), async (request, reply) => {
    await kit.gateway.engines.leave(kit.workerOf(request), kit.instanceOf(request))
    return reply.code(204).send()
  })
}

export function putCatalog(app: FastifyInstance, { kit }: EngineDeps): void {
  app.put(`${WORKER_PATH}/catalogs/:hash`, needs('worker'), async (request, reply) => {
    const bytes = await readBodyBytes(request.raw, { maxBytes: MAX_CATALOG_BYTES, deadlineMs: CATALOG_MS })
    const { hash } = request.params as { readonly hash: string }
    await kit.gateway.engines.putCatalog(kit.workerOf(request), hash, bytes)
    return reply.code(204).send()
  })
}

export function beatWorker(app: FastifyInstance, { kit, clock }: EngineDeps): void {
  app.post(`${WORKER_PATH}/beats`, needs('worker'), async (request, reply) => {
    const { live_node: liveNode, ...about } = await kit.readBody<BeatBody>(request, 'Beat')
    const beat = { ...about, liveNode, instanceId: kit.instanceOf(request) }
    const live = await kit.gateway.engines.beat(kit.workerOf(request), beat)
    return sendJson(reply, 200, { live, time_ms: clock.now().getTime() })
  })
}
