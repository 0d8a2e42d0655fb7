/** The workers of the pools in this process. Starts and stops of one pool run one after the other, never at the same time. */

import { createKeyedLock } from '../../../lib/waiting/keyed-lock.ts'
import { DEFAULT_POOL } from '../../domain/deployments/deployment.ts'
import type { PoolWorkers } from '../../domain/deployments/lifecycle.ts'
import type { Worker } from '../../domain/jobs/claim/worker.ts'
import type { CreatePoolWorker } from '../jobs/job-actions.ts'

export interface LocalPoolWorkers extends PoolWorkers {
  /** How many there are, by pool, those of the common pool included. */
  counts(): Readonly<Record<string, number>>
  /** How many jobs they run. */
  running(): number
  /** Ends all of them; none can be started afterwards. */
  drain(options: { readonly deadline: Date }): Promise<void>
}

interface LocalPoolWorkersDeps {
  readonly createPoolWorker: CreatePoolWorker
  /** The workers of the common pool, which run as long as the process. */
  readonly commonWorker: Pick<Worker, 'stats'>
}

export function createLocalPoolWorkers({ createPoolWorker, commonWorker }: LocalPoolWorkersDeps): LocalPoolWorkers {
  const started = new Map<string, Worker>()
  const locks = createKeyedLock()
  let isDraining = false

  /** A changed number of workers takes effect once no job runs, so that no run is interrupted for it. */
  function isAsWanted(pool: string, workers: number): boolean {
    const stats = started.get(pool)?.stats()
    return isDraining || (stats !== undefined && (stats.workers === workers || stats.running > 0))
  }

  function count(pool: string): number {
    const stats = pool === DEFAULT_POOL ? commonWorker.stats() : started.get(pool)?.stats()
    return stats === undefined || stats.isDraining ? 0 : stats.workers
  }

  async function start(pool: string, workers: number): Promise<void> {
    if (isAsWanted(pool, workers)) return
    await stop(pool, new Date(0))
    const worker = createPoolWorker(pool, workers)
    worker.start()
    started.set(pool, worker)
  }

  async function stop(pool: string, deadline: Date): Promise<void> {
    const worker = started.get(pool)
    started.delete(pool)
    await worker?.drain({ deadline })
  }

  return {
    async start(pool, workers) {
      if (!isAsWanted(pool, workers)) await locks.run(pool, () => start(pool, workers))
    },
    stop: (pool, { deadline }) => locks.run(pool, () => stop(pool, deadline)),
    count,
    counts: () => Object.fromEntries([DEFAULT_POOL, ...started.keys()].map((pool) => [pool, count(pool)])),
    running: () => [...started.values()].reduce((sum, worker) => sum + worker.stats().running, 0),
    async drain({ deadline }) {
      isDraining = true
      const pools = new Set([...started.keys(), ...locks.held()])
      await Promise.all([...pools].map((pool) => locks.run(pool, () => stop(pool, deadline))))
    },
  }
}
