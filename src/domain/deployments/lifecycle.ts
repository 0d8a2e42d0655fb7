/**
 * Keeps as many workers as each deployment asks for: starts them while it is provisioning, wakes them when jobs wait, stops
 * them after an idle time and when a draining deployment is empty. It looks now and then and when something changes; looking
 * twice is harmless. `hooks` tell whoever brings machines up and down.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { DEFAULT_POOL, type Deployment, type DeploymentState } from './deployment.ts'
import type { DeploymentStore, PoolLoad } from './deployment-store.ts'
import type { Deployments } from './deployments.ts'
import type { PoolHooks } from './pool-hooks.ts'

/** The workers of pools, as deployments need them. Implemented where jobs are run. */
export interface PoolWorkers {
  /** Resolves once they can take jobs. Harmless for a pool whose workers are there. */
  start(pool: string, workers: number): Promise<void>
  /** Runs under way may finish until the deadline; what is left goes back to the queue. */
  stop(pool: string, options: { readonly deadline: Date }): Promise<void>
  /** Workers that could take a job of this pool now. */
  count(pool: string): number
}

interface LifecycleDeps {
  readonly deployments: Deployments
  readonly store: Pick<DeploymentStore, 'loads'>
  readonly workers: PoolWorkers
  /** How many workers this process is to have for a deployment; left out: as many as it asks for. */
  readonly workersHere?: (deployment: Deployment) => number
  /** Workers of this pool in other processes; left out: there are none. */
  readonly workersElsewhere?: (pool: string) => number
  readonly hooks: PoolHooks | null
  readonly clock: Clock
  readonly log: Log
  /** For deployments without an idle time of their own. */
  readonly idleAfterMs: number
  /** How long runs may take to finish when a deployment is stopped at once. */
  readonly drainTimeoutMs: number
}

interface Lifecycle {
  /** One look at everything. */
  look(): Promise<void>
  /** A job came for this pool: its workers are brought up without waiting for the next look. */
  wake(pool: string): Promise<void>
}

export function createLifecycle(deps: LifecycleDeps): Lifecycle {
  const { deployments, store, workers, hooks, log } = deps
  const { act, hasNone } = createPoolMoves(deps)

  /** The workers of the default pool are started and stopped elsewhere; only the hooks are told about them. */
  function watchCommonPool(load: PoolLoad): void {
    if (load.queued > 0 && hasNone(DEFAULT_POOL)) hooks?.wanted(load)
    else if (load.queued + load.running > 0) hooks?.served(DEFAULT_POOL)
  }

  async function actOn(deployment: Deployment, load: PoolLoad): Promise<void> {
    try {
      await act[deployment.state](deployment, load)
    } catch (error) {
      log.error(
        { err: error, deployment: deployment.id },
        'the workers of a deployment could not be started or stopped; the next look tries again',
      )
    }
  }

  return {
    async look() {
      await deployments.refresh()
      const all = deployments.list()
      const live = all.filter(({ id, state }) => state !== 'stopped' || workers.count(id) > 0)
      const pools = hooks === null ? [] : [DEFAULT_POOL]
      const loads = await store.loads([...pools, ...live.map(({ id }) => id)])
      const byPool = new Map(loads.map((load) => [load.pool, load]))
      const common = byPool.get(DEFAULT_POOL)
      if (common !== undefined) watchCommonPool(common)
      const nothing = (pool: string): PoolLoad => ({ pool, queued: 0, running: 0 })
      await Promise.all(
        live.map((deployment) => actOn(deployment, byPool.get(deployment.id) ?? nothing(deployment.id))),
      )
    },
    async wake(pool) {
      const deployment = deployments.find(pool)
      if (deployment?.state === 'ready') await actOn(deployment, { pool, queued: 1, running: 0 })
    },
  }
}

/** What is done for a deployment in each of its states. */
function createPoolMoves(deps: LifecycleDeps) {
  const { deployments, workers, workersElsewhere = () => 0, hooks, clock } = deps
  const { workersHere = ({ workers: asked }) => asked } = deps
  const hasNone = (pool: string) => workers.count(pool) + workersElsewhere(pool) === 0
  /** Since when a pool has had nothing to do. */
  const idleSince = new Map<string, number>()

  const act: Readonly<Record<DeploymentState, (deployment: Deployment, load: PoolLoad) => Promise<void>>> = {
    async provisioning(deployment) {
      const { id } = deployment
      const wanted = workersHere(deployment)
      if (wanted > 0) await workers.start(id, wanted)
      if (hasNone(id)) hooks?.wanted({ pool: id, queued: 0, running: 0 })
      else await deployments.move({ id, from: ['provisioning'], to: 'ready' })
    },
    async ready(deployment, load) {
      if (load.queued > 0) await bringUp(deployment, load)
      else if (isIdle(deployment, load)) await sleepNow(deployment)
    },
    async draining(deployment, load) {
      if (load.queued > 0) await bringUp(deployment, load)
      if (load.queued + load.running > 0) return
      const { id } = deployment
      const moved = await deployments.move({ id, from: ['draining'], to: 'stopped', onlyWhenEmpty: true })
      if (moved !== null) await act.stopped(moved, load)
    },
    async stopped({ id }) {
      idleSince.delete(id)
      if (workers.count(id) === 0) return
      await workers.stop(id, { deadline: new Date(clock.now().getTime() + deps.drainTimeoutMs) })
    },
  }

  async function bringUp(deployment: Deployment, load: PoolLoad): Promise<void> {
    const { id } = deployment
    const wanted = workersHere(deployment)
    idleSince.delete(id)
    if (wanted > 0) await workers.start(id, wanted)
    if (hasNone(id)) hooks?.wanted(load)
    else hooks?.served(id)
  }

  function isIdle({ id, idleAfterMs }: Deployment, { queued, running }: PoolLoad): boolean {
    if (queued + running > 0) {
      idleSince.delete(id)
      return false
    }
    const now = clock.now().getTime()
    const since = idleSince.get(id) ?? now
    idleSince.set(id, since)
    return now - since >= (idleAfterMs ?? deps.idleAfterMs)
  }

  async function sleepNow({ id }: Deployment): Promise<void> {
    hooks?.idle({ pool: id, queued: 0, running: 0 })
    if (workers.count(id) > 0) await workers.stop(id, { deadline: clock.now() })
  }

  return { act, hasNone }
}
