import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import type { DeploymentStore } from '../../../domain/deployments/deployment-store.ts'
import type { Deployments } from '../../../domain/deployments/deployments.ts'
import type { JobStore } from '../../../domain/jobs/job-store.ts'
import { ADMIN_PATH, send } from '../admin-operation.ts'

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
  app.get(`${ADMIN_PATH}/overview`, async (_request, reply) => {
    const { kind, version, workersOf } = deps
    const names = [DEFAULT_POOL, ...(deps.deployments?.list() ?? []).map(({ id }) => id)]
    const [jobs, loads] = await Promise.all([deps.countJobs(), deps.loads(names)])
    const pools = loads.map((load) => ({ ...load, workers: workersOf(load.pool) }))
    const accounts = deps.accounts?.list().length ?? 1
    return send(reply, 200, { kind, version, jobs, pools, accounts, streams: deps.openStreams() })
  })
}
