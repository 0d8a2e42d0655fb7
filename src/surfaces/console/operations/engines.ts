import type { FastifyInstance } from 'fastify'
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import type { ListedEngine } from '../../../domain/engine/directory/engine-directory.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'

/** Figures alone: which engines there are is the operator's business. */
export function getEngines(app: FastifyInstance, { console: parts }: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/engines`, needs('jobs:read'), (_request, reply) => {
    const engines = parts.engines(DEFAULT_POOL).filter(({ state }) => state !== 'standby')
    const taking = engines.filter(({ state }) => state === 'ready')
    const starting = engines.filter(({ state }) => state === 'starting').length
    const busy = taking.filter(({ running, concurrency }) => running >= concurrency).length
    return sendJson(reply, 200, {
      ...{ ready: taking.length - busy, busy, starting, away: engines.length - taking.length - starting },
      running: sum(engines, ({ running }) => running),
      slots: sum(taking, ({ concurrency }) => concurrency),
    })
  })
}

function sum(engines: readonly ListedEngine[], of: (engine: ListedEngine) => number): number {
  return engines.reduce((total, engine) => total + of(engine), 0)
}
