/** The protocol itself: its contract, and what this node speaks. */
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../../../lib/clock.ts'
import type { BaseImage } from '../../../domain/environments/builder.ts'
import { readTarget } from '../../../domain/environments/definition.ts'
import { MAX_CATALOG_BYTES } from '../../../domain/workers/guest-catalog.ts'
import type { EngineFields } from '../../../domain/workers/wire/engine-wire.ts'
import { type MachineFields, readMachine } from '../../../domain/workers/wire/machine-wire.ts'
import { readBodyBytes } from '../../kit/bodies/json-body.ts'
import { needs, serviceAddressOf } from '../../kit/guards/routes.ts'
import { sendJson } from '../../kit/request.ts'
import { UpgradeRequired, WORKER_PATH, type WorkerKit } from '../worker-operation.ts'

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
    const { keyId, pools, hasBuilds } = kit.workerOf(request)
    const { leaseMs, maxWaitMs, pieceBytes } = kit.gateway.terms
    return sendJson(reply, 200, {
      service_id: serviceId,
      version,
      protocol_versions: protocolVersions,
      key_id: keyId,
      pools: [...pools],
      builds: hasBuilds,
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

/** The worker's process, its engines and what they can run. */
interface EngineDeps {
  readonly kit: WorkerKit
  readonly clock: Clock
}

interface BeatBody {
  readonly version: string
  readonly host: string
  readonly live_node: string | null
  readonly workers: Readonly<Record<string, number>>
  readonly machine?: MachineFields & { readonly base_images?: readonly BaseImageFields[] }
}

interface BaseImageFields extends Omit<BaseImage, 'targets' | 'isDefault'> {
  readonly targets: readonly string[]
  readonly is_default: boolean
}

function toBaseImage({ is_default: isDefault, targets, ...image }: BaseImageFields): BaseImage {
  return { ...image, targets: targets.map(readTarget), isDefault }
}

const CATALOG_MS = 120_000
// A machine may have many copies, each with why it failed.
const MAX_BEAT_BYTES = 4 * 1024 * 1024

export function publishEngines(app: FastifyInstance, { kit }: EngineDeps): void {
  app.put(`${WORKER_PATH}/engines`, needs('worker'), async (request, reply) => {
    const { engines } = await kit.readBody<{ readonly engines: readonly EngineFields[] }>(request, 'Engines')
    const { held, wishes } = await kit.gateway.engines.publish(kit.workerOf(request), kit.instanceOf(request), engines)
    return sendJson(reply, 200, { held, wishes })
  })
}

export function leaveService(app: FastifyInstance, { kit }: EngineDeps): void {
  app.delete(`${WORKER_PATH}/engines`, needs('worker'), async (request, reply) => {
    const [worker, instanceId] = [kit.workerOf(request), kit.instanceOf(request)]
    await kit.gateway.engines.leave(worker, instanceId)
    await kit.gateway.builds.leave(worker, instanceId)
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
    const body = await kit.readBody<BeatBody>(request, 'Beat', MAX_BEAT_BYTES)
    const { live_node: liveNode, machine: offered, ...about } = body
    const [worker, instanceId] = [kit.workerOf(request), kit.instanceOf(request)]
    const { base_images: baseImages, ...fields } = offered ?? {}
    const machine = offered === undefined ? null : readMachine(fields as MachineFields)
    const live = await kit.gateway.engines.beat(worker, { ...about, liveNode, machine, instanceId })
    const told = { live, time_ms: clock.now().getTime() }
    if (machine === null) return sendJson(reply, 200, told)
    if (baseImages !== undefined) await kit.gateway.builds.announce(worker, instanceId, baseImages.map(toBaseImage))
    const copies = await kit.gateway.releases.assigned(worker, instanceId)
    return sendJson(reply, 200, {
      ...told,
      copies: copies.map(({ pool, releaseId, gpuClass, engines }) => ({
        ...{ pool, release_id: releaseId, gpu_class: gpuClass, engines },
      })),
    })
  })
}
