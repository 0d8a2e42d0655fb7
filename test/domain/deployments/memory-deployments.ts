/** Deployments in memory with workers that come when a test says so. */

import { silentLog } from '../../../lib/log.ts'
import type { Deployment } from '../../../src/domain/deployments/deployment.ts'
import type { DeploymentStore, PoolLoad } from '../../../src/domain/deployments/deployment-store.ts'
import { openDeployments } from '../../../src/domain/deployments/deployments.ts'
import { createLifecycle, type PoolWorkers } from '../../../src/domain/deployments/lifecycle.ts'
import type { PoolHooks } from '../../../src/domain/deployments/pool-hooks.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'

export function createMemoryStore() {
  const rows = new Map<string, Deployment>()
  const versions = new Map<string, number>()
  let version = 0
  const put = (deployment: Deployment) => {
    rows.set(deployment.id, deployment)
    versions.set(deployment.id, ++version)
  }
  const load = new Map<string, Omit<PoolLoad, 'pool'>>()
  const loadOf = (pool: string): PoolLoad => ({ pool, queued: 0, running: 0, ...load.get(pool) })
  const store: DeploymentStore = {
    async create(deployment) {
      if (rows.has(deployment.id)) return false
      put(deployment)
      return true
    },
    async move({ id, from, to, at, onlyWhenEmpty = false }) {
      const row = rows.get(id)
      const { queued, running } = loadOf(id)
      if (row === undefined || !from.includes(row.state) || (onlyWhenEmpty && queued + running > 0)) return null
      const moved = { ...row, state: to, changedAt: at }
      put(moved)
      return moved
    },
    async configure({ id, workers, idleAfterMs, at }) {
      const row = rows.get(id)
      if (row === undefined) return null
      const changed = { ...row, workers, idleAfterMs, changedAt: at }
      put(changed)
      return changed
    },
    list: async () => [...rows.values()],
    changedAfter: async (after, limit) =>
      [...rows.values()]
        .map((deployment) => ({ deployment, version: versions.get(deployment.id) ?? 0 }))
        .filter((entry) => entry.version > after)
        .sort((a, b) => a.version - b.version)
        .slice(0, limit),
    loads: async (pools) => pools.map(loadOf),
    count: async (pools) => pools.map(loadOf),
    demands: async (pools) =>
      pools.map((pool) => ({ ...loadOf(pool), runnable: loadOf(pool).queued, oldestQueuedAt: null })),
  }
  return { store, load }
}

export async function createLifecycleRig(options: { readonly withHooks?: boolean } = {}) {
  const clock = createFixedClock()
  const { store, load } = createMemoryStore()
  const deployments = await openDeployments({ store, clock })
  const there = new Map<string, number>()
  /** Workers of other processes. */
  const elsewhere = new Map<string, number>()
  const told: string[] = []
  /** Workers come at once unless this says otherwise. */
  const switches = { comeAtOnce: true }
  const workers: PoolWorkers = {
    async start(pool, count) {
      if (!there.has(pool)) told.push(`start ${pool} ${count}`)
      if (switches.comeAtOnce) there.set(pool, count)
    },
    async stop(pool) {
      told.push(`stop ${pool}`)
      there.delete(pool)
    },
    count: (pool) => there.get(pool) ?? 0,
  }
  const hooks: PoolHooks = {
    wanted: ({ pool, queued }) => told.push(`wanted ${pool} ${queued}`),
    idle: ({ pool }) => told.push(`idle ${pool}`),
    served: () => {},
    async [Symbol.asyncDispose]() {},
  }
  const lifecycle = createLifecycle({
    ...{ deployments, store, workers, clock, log: silentLog, idleAfterMs: 60_000, drainTimeoutMs: 1000 },
    workersElsewhere: (pool) => elsewhere.get(pool) ?? 0,
    hooks: options.withHooks === true ? hooks : null,
  })
  /** What has happened since the last time. */
  const news = () => told.splice(0)
  return { clock, deployments, lifecycle, load, there, elsewhere, switches, news }
}
