/** The service as a whole: its contract, what it does at the moment, and what was changed through this API. */

import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import type { AuditStore } from '../../../domain/accounts/audit.ts'
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import type { DeploymentStore } from '../../../domain/deployments/deployment-store.ts'
import type { Deployments } from '../../../domain/deployments/deployments.ts'
import type { JobStore } from '../../../domain/jobs/job-store.ts'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import { ADMIN_PATH } from '../admin-operation.ts'
import { readBefore, readLimit, readParameters, toPage } from '../page-query.ts'

/** The contract, with the address at which this caller reached us. */
export function getOpenapi(app: FastifyInstance, { specFor }: { readonly specFor: (baseUrl: string) => string }): void {
  app.get(`${ADMIN_PATH}/openapi.json`, needs('operator'), (request, reply) =>
    sendJson(reply, 200, specFor(serviceAddressOf(request).origin)),
  )
}

export interface GetOverviewDeps {
  readonly kind: string
  readonly version: string
  readonly countJobs: JobStore['countByStatus']
  readonly loads: DeploymentStore['loads']
  readonly workersOf: (pool: string) => number
  readonly openStreams: () => number
  /** null: there is one account and no deployment. */
  readonly accounts: Pick<Accounts, 'list'> | null
  readonly deployments: Pick<Deployments, 'list'> | null
}

export function getOverview(app: FastifyInstance, deps: GetOverviewDeps): void {
  app.get(`${ADMIN_PATH}/overview`, needs('operator'), async (_request, reply) => {
    const { kind, version, workersOf } = deps
    const names = [DEFAULT_POOL, ...(deps.deployments?.list() ?? []).map(({ id }) => id)]
    const [jobs, loads] = await Promise.all([deps.countJobs(), deps.loads(names)])
    const pools = loads.map((load) => ({ ...load, workers: workersOf(load.pool) }))
    const accounts = deps.accounts?.list().length ?? 1
    return sendJson(reply, 200, { kind, version, jobs, pools, accounts, streams: deps.openStreams() })
  })
}

export function listAudit(app: FastifyInstance, { audit }: { readonly audit: AuditStore }): void {
  app.get(`${ADMIN_PATH}/audit`, needs('operator'), async (request, reply) => {
    const parameters = readParameters(request, ['limit', 'before', 'subject'])
    const [limit, before, subject] = [readLimit(parameters), readBefore(parameters), parameters.get('subject') ?? null]
    const found = await audit.list({ limit: limit + 1, before, subject })
    const { page, next } = toPage(found, limit)
    return sendJson(reply, 200, { records: page.map((record) => ({ ...record, at: record.at.toISOString() })), next })
  })
}
