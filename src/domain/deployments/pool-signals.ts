/**
 * How many workers each pool needs, for autoscaling. It is read from the store alone, so that a process
 * without workers, in a service without workers, says it as well as any other.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { ServiceNode } from '../service-nodes/node-store.ts'
import { DEFAULT_POOL, type Deployment, type DeploymentState } from './deployment.ts'
import type { DeploymentStore, PoolDemand, PoolLoad } from './deployment-store.ts'

export interface PoolSignal extends PoolLoad {
  /** Jobs that all living processes together can run at once. */
  readonly workers: number
  /** Jobs that run, and those that could by the limits of their accounts. */
  readonly wantedWorkers: number
  /** For how long the oldest waiting job has waited; 0 when none waits. */
  readonly oldestWaitMs: number
}

interface SignalDeps {
  readonly store: Pick<DeploymentStore, 'demands'>
  /** null: there are no deployments. */
  readonly deployments: { list(): readonly Pick<Deployment, 'id' | 'state'>[] } | null
  /** The processes that live now. */
  readonly findLive: () => Promise<readonly Pick<ServiceNode, 'about'>[]>
  readonly clock: Clock
}

export interface PoolSignals {
  /** Of the common pool and of every deployment. */
  list(): Promise<readonly PoolSignal[]>
  /** null: there is no such pool. */
  find(pool: string): Promise<PoolSignal | null>
}

type AskedPool = Pick<Deployment, 'id' | 'state'>

const COMMON: AskedPool = { id: DEFAULT_POOL, state: 'ready' }

const WANTED: Readonly<Record<DeploymentState, (demand: PoolDemand) => number>> = {
  // It becomes ready with its first worker.
  provisioning: ({ running, runnable }) => Math.max(1, running + runnable),
  ready: ({ running, runnable }) => running + runnable,
  draining: ({ running, runnable }) => running + runnable,
  // What waits there waits for an operator.
  stopped: ({ running }) => running,
}

export function createPoolSignals({ store, deployments, findLive, clock }: SignalDeps): PoolSignals {
  const pools = () => [COMMON, ...(deployments?.list() ?? [])]

  async function read(asked: readonly AskedPool[]): Promise<PoolSignal[]> {
    const [demands, live] = await Promise.all([store.demands(asked.map(({ id }) => id)), findLive()])
    const nowMs = clock.now().getTime()
    return demands.map((demand, index) => {
      const { pool, queued, running, oldestQueuedAt } = demand
      return {
        pool,
        queued,
        running,
        workers: live.reduce((sum, { about }) => sum + (about.workers[pool] ?? 0), 0),
        wantedWorkers: WANTED[(asked[index] ?? COMMON).state](demand),
        oldestWaitMs: oldestQueuedAt === null ? 0 : Math.max(0, nowMs - oldestQueuedAt.getTime()),
      }
    })
  }

  return {
    list: () => read(pools()),
    async find(pool) {
      const asked = pools().find(({ id }) => id === pool)
      return asked === undefined ? null : ((await read([asked]))[0] ?? null)
    },
  }
}
