/**
 * The engines of the pool, for the operator: how each fares, what it can run, and the three things that can be asked of one.
 * `cordon` lets it finish what it runs, `drain` empties it, `resume` has it take work again, out of quarantine too.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { EngineStatus } from '../../../domain/engine/engine-status.ts'
import type { Fleet } from '../../../domain/engine/fleet.ts'

export interface EngineOperationsDeps {
  readonly fleet: Pick<Fleet, 'status' | 'find' | 'availability' | 'cordon' | 'resume'>
  readonly drain: (engineId: string) => EngineStatus
}

const PATH = '/admin/v1/engines'

export function engineOperations(app: FastifyInstance, { fleet, drain }: EngineOperationsDeps): void {
  app.get(PATH, (_request, reply) => send(reply, { engines: fleet.status().map(toEngineView) }))
  app.get(`${PATH}/catalog`, (_request, reply) => send(reply, toCatalogView(fleet.availability())))
  app.get(`${PATH}/:id`, (request, reply) => send(reply, toEngineView(fleet.find(idOf(request)))))
  const commands = { cordon: fleet.cordon.bind(fleet), drain, resume: fleet.resume.bind(fleet) }
  for (const [word, command] of Object.entries(commands)) {
    app.post(`${PATH}/:id/${word}`, (request, reply) => send(reply, toEngineView(command(idOf(request)))))
  }
}

function idOf(request: FastifyRequest): string {
  return (request.params as { id: string }).id
}

function send(reply: FastifyReply, body: object): FastifyReply {
  return reply.header('content-type', 'application/json').send(Buffer.from(JSON.stringify(body)))
}

export function toEngineView(status: EngineStatus) {
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

/** Per class and per file of weights, the engines that have it. */
function toCatalogView({ classes, weights }: ReturnType<Fleet['availability']>) {
  return { node_classes: Object.fromEntries(classes), weights: Object.fromEntries(weights) }
}
