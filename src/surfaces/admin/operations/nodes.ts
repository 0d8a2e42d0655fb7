/** The processes of the service, and how many of them its pools need. */
import type { FastifyInstance } from 'fastify'
import type { PoolSignal, PoolSignals } from '../../../domain/deployments/pool-signals.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { ReportedNode, ReportNodes } from '../../../domain/service-nodes/node-report.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import { ADMIN_PATH, idOf } from '../admin-operation.ts'

export interface NodeParts {
  readonly reportNodes: ReportNodes
  readonly poolSignals: PoolSignals
}

export function listNodes(app: FastifyInstance, { reportNodes }: NodeParts): void {
  app.get(`${ADMIN_PATH}/nodes`, needs('operator'), async (_request, reply) =>
    sendJson(reply, 200, { nodes: (await reportNodes()).map(toNodeView) }),
  )
}

export function listPools(app: FastifyInstance, { poolSignals }: NodeParts): void {
  app.get(`${ADMIN_PATH}/pools`, needs('operator'), async (_request, reply) =>
    sendJson(reply, 200, { pools: (await poolSignals.list()).map(toPoolView) }),
  )
}

export function getPool(app: FastifyInstance, { poolSignals }: NodeParts): void {
  app.get(`${ADMIN_PATH}/pools/:id`, needs('operator'), async (request, reply) => {
    const signal = await poolSignals.find(idOf(request))
    if (signal === null) throw new ServiceError('not_found', 'there is no pool with this id')
    return sendJson(reply, 200, toPoolView(signal))
  })
}

function toNodeView({ id, state, about, startedAt, seenAt, jobs, calls, chores, engines }: ReportedNode) {
  return {
    id,
    state,
    role: about.role ?? 'all',
    version: about.version,
    host: about.host,
    url: about.url ?? null,
    started_at: startedAt.toISOString(),
    seen_at: seenAt.toISOString(),
    workers: about.workers,
    holds: { jobs, calls, chores, engines },
  }
}

function toPoolView({ pool, queued, running, workers, wantedWorkers, oldestWaitMs }: PoolSignal) {
  const wanted = { wanted_workers: wantedWorkers, oldest_wait_seconds: oldestWaitMs / 1000 }
  return { pool, queued, running, workers, ...wanted }
}
