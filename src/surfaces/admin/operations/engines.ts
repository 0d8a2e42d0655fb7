/** What an operator can see and ask of the engines of the fleet. Only a running service has engines. */

import type { FastifyInstance } from 'fastify'
import type { CommandEngine } from '../../../domain/engine/directory/engine-commands.ts'
import type { EngineDirectory, ListedEngine } from '../../../domain/engine/directory/engine-directory.ts'
import type { EngineWill } from '../../../domain/engine/directory/engine-registry.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, readNumber, sendJson } from '../../kit/request.ts'
import { ADMIN_PATH, type AdminKit, readParameters } from '../admin-operation.ts'

export interface EngineParts {
  readonly engines: Pick<EngineDirectory, 'status' | 'find' | 'availability' | 'logOf'>
  readonly commandEngine: CommandEngine
  /** Asks the engines what they can run; never rejects. */
  readonly refreshLists: () => Promise<void>
}

type EngineOperationDeps = EngineParts & { readonly kit: AdminKit }

export function listEngines(app: FastifyInstance, { engines }: EngineOperationDeps): void {
  app.get(`${ADMIN_PATH}/engines`, needs('operator'), (_request, reply) =>
    sendJson(reply, 200, { engines: engines.status().map(toEngineView) }),
  )
}

export function getEngine(app: FastifyInstance, { engines }: EngineOperationDeps): void {
  app.get(`${ADMIN_PATH}/engines/:id`, needs('operator'), (request, reply) =>
    sendJson(reply, 200, toEngineView(engines.find(idOf(request)))),
  )
}

const AFTER = { fallback: 1, max: Number.MAX_SAFE_INTEGER }
const LOG_LINES = { fallback: 200, max: 1000 }

/** What it printed lately, from the line behind `after` on. */
export function getEngineLog(app: FastifyInstance, { engines }: EngineOperationDeps): void {
  app.get(`${ADMIN_PATH}/engines/:id/log`, needs('operator'), (request, reply) => {
    const parameters = readParameters(request, ['after', 'limit'])
    const limit = readNumber(parameters, 'limit', LOG_LINES)
    const after = parameters.has('after') ? readNumber(parameters, 'after', AFTER) : null
    const { id, drivenBy } = engines.find(idOf(request))
    const log = engines.logOf(id)
    const fresh = (log?.lines() ?? []).filter(({ n }) => after === null || n > after)
    const lines = after === null ? fresh.slice(-limit) : fresh.slice(0, limit)
    return sendJson(reply, 200, {
      driven_by: drivenBy,
      is_kept: log !== null,
      began_at: log?.beganAt.toISOString() ?? null,
      lines: lines.map(({ n, at, text }) => ({ n, at: at.toISOString(), text })),
    })
  })
}

/** Asks them first what they can run: files that were put on a server a moment ago are known afterwards. */
export function refreshEngines(app: FastifyInstance, { engines, refreshLists }: EngineOperationDeps): void {
  app.post(`${ADMIN_PATH}/engine-catalog/refresh`, needs('operator'), async (_request, reply) => {
    await refreshLists()
    return sendJson(reply, 200, { engines: engines.status().map(toEngineView) })
  })
}

/** Per class and per file of weights, the engines that have it. */
export function getEngineCatalog(app: FastifyInstance, { engines }: EngineOperationDeps): void {
  app.get(`${ADMIN_PATH}/engine-catalog`, needs('operator'), (_request, reply) => {
    const { classes, weights } = engines.availability()
    return sendJson(reply, 200, { node_classes: Object.fromEntries(classes), weights: Object.fromEntries(weights) })
  })
}

/** The engine takes no more jobs and finishes what it runs. */
export function cordonEngine(app: FastifyInstance, deps: EngineOperationDeps): void {
  addAction({ app, ...deps }, { verb: 'cordon', will: 'cordoned' })
}

/** The engine takes no more jobs; what it runs gets the time of a drain and is then given to others. */
export function drainEngine(app: FastifyInstance, deps: EngineOperationDeps): void {
  addAction({ app, ...deps }, { verb: 'drain', will: 'draining' })
}

/** The engine takes jobs again, out of quarantine too. */
export function resumeEngine(app: FastifyInstance, deps: EngineOperationDeps): void {
  addAction({ app, ...deps }, { verb: 'resume', will: 'open' })
}

interface EngineAction {
  readonly verb: 'cordon' | 'drain' | 'resume'
  readonly will: EngineWill
}

type ActionParts = EngineOperationDeps & { readonly app: FastifyInstance }

function addAction({ app, kit, commandEngine }: ActionParts, { verb, will }: EngineAction): void {
  app.post(`${ADMIN_PATH}/engines/:id/${verb}`, needs('operator'), async (request, reply) => {
    const id = idOf(request)
    const status = await commandEngine(id, will)
    await kit.note(request, { action: `engine.${verb}`, subject: id, details: { state: status.state } })
    return sendJson(reply, 200, toEngineView(status))
  })
}

function toEngineView(status: ListedEngine) {
  const { counts, lastError } = status
  return {
    id: status.id,
    state: status.state,
    reason: status.reason,
    driven_by: status.drivenBy,
    supervised: status.isSupervised,
    concurrency: status.concurrency,
    running: status.running,
    node_classes: status.nodeClasses,
    weights: status.weights,
    loaded_weights: status.loadedWeights,
    version: status.version,
    observed_release: status.observed,
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
