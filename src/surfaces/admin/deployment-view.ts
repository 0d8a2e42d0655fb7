/** A deployment in the words of the wire, with what its pool has to do. */
import type { Deployment } from '../../domain/deployments/deployment.ts'
import type { DeploymentStore, PoolLoad } from '../../domain/deployments/deployment-store.ts'

export interface DeploymentViewDeps {
  readonly loads: DeploymentStore['loads']
  readonly workersOf: (pool: string) => number
  /** null: deployments are reached by path only. */
  readonly domain: string | null
  readonly mountPrefix: string
}

export type ShowDeployments = (deployments: readonly Deployment[]) => Promise<object[]>

export function createShowDeployments({ loads, workersOf, domain, mountPrefix }: DeploymentViewDeps): ShowDeployments {
  function toView(deployment: Deployment, load: PoolLoad | undefined): object {
    const { id, accountId, state, workers, idleAfterMs, createdAt, changedAt } = deployment
    return {
      id,
      account_id: accountId,
      state,
      workers,
      idle_after_ms: idleAfterMs,
      created_at: createdAt.toISOString(),
      changed_at: changedAt.toISOString(),
      use: { queued: load?.queued ?? 0, running: load?.running ?? 0, workers: workersOf(id) },
      path: `${mountPrefix}/deployment/${id}`,
      host: domain === null ? null : `${id}.run.${domain}`,
    }
  }
  return async (deployments) => {
    const counted = await loads(deployments.map(({ id }) => id))
    const byPool = new Map(counted.map((load) => [load.pool, load]))
    return deployments.map((deployment) => toView(deployment, byPool.get(deployment.id)))
  }
}
