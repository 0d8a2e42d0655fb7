import type { Deployment, DeploymentState } from './deployment.ts'

/** What a pool has to do. */
export interface PoolLoad {
  readonly pool: string
  readonly queued: number
  /** Running and canceling. */
  readonly running: number
}

/** What a pool has to do, and how many workers it needs for that. */
export interface PoolDemand extends PoolLoad {
  /** How many of the waiting jobs could run now by the limits of their accounts. It stops at a bound. */
  readonly runnable: number
  /** When the oldest waiting job was submitted; null: none waits. Exact while up to 256 queues (of an account, for the same engines and priority) wait. */
  readonly oldestQueuedAt: Date | null
}

export interface DeploymentMove {
  readonly id: string
  readonly from: readonly DeploymentState[]
  readonly to: DeploymentState
  readonly at: Date
  /** Only while no job of its pool waits or runs. */
  readonly onlyWhenEmpty?: boolean
}

interface DeploymentSettings {
  readonly id: string
  readonly workers: number
  readonly idleAfterMs: number | null
  readonly at: Date
}

export interface VersionedDeployment {
  readonly deployment: Deployment
  /** Grows with every change of any deployment, in the order in which the changes become readable. */
  readonly version: number
}

export interface DeploymentStore {
  /** false: the id is taken. */
  create(deployment: Deployment): Promise<boolean>
  /** The deployment after the move; null when it is unknown, in another state, or not empty where it must be. */
  move(move: DeploymentMove): Promise<Deployment | null>
  /** null when it is unknown. */
  configure(settings: DeploymentSettings): Promise<Deployment | null>
  /** By id. */
  list(): Promise<readonly Deployment[]>
  /** Deployments whose version is above `version`, in the order of their changes. */
  changedAfter(version: number, limit: number): Promise<readonly VersionedDeployment[]>
  /** Whether there is something to do, for looks every second. Counts stop at a bound: the exact size of a backlog does not matter to them. */
  loads(pools: readonly string[]): Promise<readonly PoolLoad[]>
  /** Every job is counted, for whoever is shown the figure: it costs as much as there wait. */
  count(pools: readonly string[]): Promise<readonly PoolLoad[]>
  /** Costs more than `count`: asked now and then, not by every look. */
  demands(pools: readonly string[]): Promise<readonly PoolDemand[]>
}
