/** The protocol itself: its contract, and what this node speaks. */
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../../../lib/clock.ts'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import { UpgradeRequired } from '../worker-errors.ts'
import { WORKER_PATH, type WorkerKit } from '../worker-operation.ts'

interface ServiceDeps {
  readonly kit: WorkerKit
  readonly specFor: (baseUrl: string) => string
  readonly serviceId: string
  readonly version: string
  readonly protocolVersions: readonly number[]
  readonly clock: Clock
}

export function getWorkerOpenapi(app: FastifyInstance, { specFor }: ServiceDeps): void {
  app.get(`${WORKER_PATH}/openapi.json`, needs('worker'), (request, reply) => {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, specFor(origin + mountPrefix))
  })
}

export function getHello(app: FastifyInstance, deps: ServiceDeps): void {
  const { kit, serviceId, version, protocolVersions, clock } = deps
  app.get(`${WORKER_PATH}/hello`, needs('worker'), (request, reply) => {
    const { keyId, pools } = kit.workerOf(request)
    const { leaseMs, maxWaitMs, pieceBytes } = kit.gateway.terms
    return sendJson(reply, 200, {
      service_id: serviceId,
      version,
      protocol_versions: protocolVersions,
      key_id: keyId,
      pools: [...pools],
      lease_ms: leaseMs,
      max_wait_ms: maxWaitMs,
      piece_bytes: pieceBytes,
      time_ms: clock.now().getTime(),
    })
  })
}

/** The WebSocket itself is opened before any route is looked for. */
export function openLive(app: FastifyInstance): void {
  app.get(`${WORKER_PATH}/live`, needs('worker'), () => {
    throw new UpgradeRequired('upgrade_required', 'this address is a WebSocket')
  })
}
