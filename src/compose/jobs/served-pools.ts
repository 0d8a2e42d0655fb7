/** Which pools this process runs jobs of, and with how many workers. */
import type { JobsConfig } from '../../config/blocks/jobs-config.ts'
import type { Deployment } from '../../domain/deployments/deployment.ts'

type PoolsConfig = Pick<JobsConfig, 'pools' | 'workers'>

export function isServed({ pools }: PoolsConfig, pool: string): boolean {
  return pools === null || pools.includes(pool)
}

/** A deployment that asks for no workers is run by the processes that were told to run it, as much as each can. */
export function countWorkers({ pools, workers }: PoolsConfig, deployment: Pick<Deployment, 'id' | 'workers'>): number {
  if (pools === null) return deployment.workers
  if (!pools.includes(deployment.id)) return 0
  return deployment.workers > 0 ? deployment.workers : workers
}
