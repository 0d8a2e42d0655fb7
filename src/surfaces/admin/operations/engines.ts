/** What an operator can see and ask of the engines of the fleet. Only a running service has engines. */

import type { FastifyInstance } from 'fastify'
import type { EngineStatus } from '../../../domain/engine/fleet/engine-status.ts'
import type { Fleet } from '../../../domain/engine/fleet/fleet.ts'
import { sendJson } from '../../kit/send-json.ts'
import { ADMIN_PATH, type AdminKit, idOf } from '../admin-operation.ts'

export interface EngineParts {
  readonly fleet: Pick<Fleet, 'status' | 'find' | 'availability' | 'cordon' | 'resume'>
  readonly drain: (engineId: string) => EngineStatus
}

type EngineOperationDeps = EngineParts & { readonly kit: AdminKit }

export function listEngines(app: FastifyInstance, { fleet }: EngineOperationDeps): void {
  app.get(`${ADMIN_PATH}/engines`, (_request, reply) =>
    sendJson(reply, 200, { engines: fleet.status().map(toEngineView) }),
  )
}

export function getEngine(app: FastifyInstance, { fleet }: EngineOperationDeps): void {
  app.get(`${ADMIN_PATH}/engines/:id`, (request, reply) =>
    sendJson(reply, 200, toEngineView(fleet.find(idOf(request)))),
  )
}

/** Per class and per file of weights, the engines that have it. */
export function getEngineCatalog(app: FastifyInstance, { fleet }: EngineOperationDeps): void {
  app.get(`${ADMIN_PATH}/engine-catalog`, (_request, reply) => {
    const { classes, weights } = fleet.availability()
    return sendJson(reply, 200, { node_classes: Object.fromEntries(classes), weights: Object.fromEntries(weights) })
  })
}

/** The engine takes no more jobs and finishes what it runs. */
export function cordonEngine(app: FastifyInstance, { kit, fleet }: EngineOperationDeps): void {
  addAction({ app, kit }, { verb: 'cordon', act: (engineId) => fleet.cordon(engineId) })
}

/** The engine takes no more jobs; what it runs gets the time of a drain and is then given to others. */
export function drainEngine(app: FastifyInstance, { kit, drain }: EngineOperationDeps): void {
  addAction({ app, kit }, { verb: 'drain', act: drain })
}

/** The engine takes jobs again, out of quarantine too. */
export function resumeEngine(app: FastifyInstance, { kit, fleet }: EngineOperationDeps): void {
  addAction({ app, kit }, { verb: 'resume', act: (engineId) => fleet.resume(engineId) })
}

interface EngineAction {
  readonly verb: 'cordon' | 'drain' | 'resume'
  readonly act: (engineId: string) => EngineStatus
}

function addAction({ app, kit }: { app: FastifyInstance; kit: AdminKit }, { verb, act }: EngineAction): void {
  app.post(`${ADMIN_PATH}/engines/:id/${verb}`, async (request, reply) => {
    const id = idOf(request)
    const status = act(id)
    await kit.note(request, { action: `engine.${verb}`, subject: id, details: { state: status.state } })
    return sendJson(reply, 200, toEngineView(status))
  })
}

function toEngineView(status: EngineStatus) {
  const { counts, lastError } = status
  return {
    id: status.id,
    state: status.state,
    reason: status.reason,
    supervised: status.isSupervised,
    concurrency: status.concurrency,
    running: status.running,
    node_classes: status.nodeClasses,
    weights: status.weights,
    loaded_weights: status.loadedWeights,
    version: status.version,
    reconnects: status.reconnects,
    memory_bytes: status.memoryBytes,
    started_at: status.startedAt?.toISOString() ?? null,
    last_error: lastError === null ? null : { message: lastError.message, at: lastError.at.toISOString() },
    jobs: counts.jobs,
    failures: counts.failures,
    losses: counts.losses,
    weight_switches: counts.switches,
    recycles: counts.recycles,
  }
}
