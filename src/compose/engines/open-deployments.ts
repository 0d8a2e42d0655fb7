/** Named deployments: their addresses, their workers, and the hook that is called when workers are needed or idle. */
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { createKeyedLock } from '../../../lib/waiting/semaphore.ts'
import { createCommandHook } from '../../adapters/hooks/pool-event-hooks.ts'
import type { DeploymentsConfig } from '../../config/blocks/jobs-config.ts'
import { DEFAULT_POOL, type Deployment } from '../../domain/deployments/deployment.ts'
import type { Deployments } from '../../domain/deployments/deployments.ts'
import { createLifecycle, type PoolWorkers } from '../../domain/deployments/lifecycle.ts'
import { type CallHook, createPoolHooks, type PoolHooks } from '../../domain/deployments/pool-hooks.ts'
import type { PoolSignals } from '../../domain/deployments/pool-signals.ts'
import { readCopyPool } from '../../domain/engine/copy-pool.ts'
import type { EventBus } from '../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../domain/events/live-event.ts'
import type { Worker } from '../../domain/jobs/claim/worker.ts'
import { type Chore, createHousekeeping } from '../../domain/jobs/sweeps/housekeeping.ts'
import type { Leadership } from '../../domain/service-nodes/leadership.ts'
import type { ServiceNode } from '../../domain/service-nodes/node-store.ts'
import type { Store } from '../../domain/store.ts'
import type { CreatePoolWorker, JobActions } from '../jobs/job-actions.ts'
import type { ServiceNodeParts } from '../process/service-node.ts'

interface DeploymentParts {
  readonly deployments: Deployments
  readonly store: Pick<Store, 'deployments'>
  readonly jobs: Pick<JobActions, 'createPoolWorker' | 'worker'>
  readonly bus: EventBus<LiveEvent>
  readonly drainTimeoutMs: number
  /** How many workers of a deployment this process is to have. */
  readonly workersHere: (deployment: Deployment) => number
  readonly poolSignals: PoolSignals
  /** Calls the configured pool hook; null: none is configured. */
  readonly tellPool: CallHook | null
  readonly node: ServiceNodeParts
  readonly clock: Clock
  readonly log: Log
}

export interface RunningPools extends AsyncDisposable {
  readonly workers: LocalPoolWorkers
  /** How many workers a pool has, those of other processes included. */
  countWorkers(pool: string): number
  /** Starts the lifecycle of the pools. Harmless when called twice. */
  start(): void
  drain(options: { readonly deadline: Date }): Promise<void>
}

const LOOK_MS = 1000
const POOL_HOOKS = 'pool-hooks'

export function openPools(config: DeploymentsConfig, parts: DeploymentParts): RunningPools {
  const { deployments, store, jobs, bus, drainTimeoutMs, workersHere, node, clock, log } = parts
  const workers = createLocalPoolWorkers({ createPoolWorker: jobs.createPoolWorker, commonWorker: jobs.worker })
  const signalOf = parts.poolSignals.find
  const call = config.hook?.kind === 'command' ? createCommandHook(config.hook.path) : parts.tellPool
  const hooks = call === null ? null : createPoolHooks({ call, signalOf, clock, log })
  const others = createOtherWorkers(node)
  const lifecycle = createLifecycle({
    deployments,
    store: store.deployments,
    workers,
    workersHere,
    workersElsewhere: others.count,
    // Not with the other chores: the process that leads those may have no hook configured.
    hooks: hooks === null ? null : whileLeading(hooks, node.contend(POOL_HOOKS)),
    clock,
    log,
    idleAfterMs: config.idleAfterMs,
    drainTimeoutMs,
  })
  // Each process looks after its own workers. The states of deployments move only from those that are expected, so that several
  // processes may move them; hooks are called by one of those that have them.
  const look: Chore = { name: 'look-after-pools', runs: 'each', everyMs: LOOK_MS, run: lookNow }
  async function lookNow(): Promise<void> {
    await others.refresh()
    await lifecycle.look()
  }
  const looking = createHousekeeping({ tasks: [look], log })
  const underway = new Set<Promise<void>>()
  let isEnding = false
  const inBackground = (act: () => Promise<void>) => {
    if (isEnding) return
    const done = act()
      .catch((error) => log.error({ err: error }, 'the lifecycle of the deployments failed'))
      .finally(() => underway.delete(done))
    underway.add(done)
  }
  const stopListening = bus.onWork((pool) => {
    if (pool !== undefined && pool !== DEFAULT_POOL && readCopyPool(pool) === null)
      inBackground(() => lifecycle.wake(pool))
  })
  return {
    workers,
    countWorkers: (pool) => workers.count(pool) + others.count(pool),
    start() {
      looking.start()
      deployments.onChange(({ state }) => {
        // An operator's change is acted on at once; a change by the lifecycle itself needs no further run.
        if (state !== 'ready') inBackground(lookNow)
      })
      inBackground(lookNow)
    },
    drain: (options) => workers.drain(options),
    async [Symbol.asyncDispose]() {
      isEnding = true
      stopListening()
      await Promise.all(underway)
      await looking[Symbol.asyncDispose]()
      await hooks?.[Symbol.asyncDispose]()
      await workers.drain({ deadline: clock.now() })
    },
  }
}

/** The workers of other processes, as those said at their latest beat. */
function createOtherWorkers({ heartbeat }: Pick<ServiceNodeParts, 'heartbeat'>) {
  let others: readonly Pick<ServiceNode, 'id' | 'about'>[] = []
  return {
    async refresh(): Promise<void> {
      others = (await heartbeat.findLive()).filter(({ id }) => id !== heartbeat.nodeId)
    },
    count: (pool: string) => others.reduce((sum, { about }) => sum + (about.workers[pool] ?? 0), 0),
  }
}

function whileLeading(hooks: PoolHooks, leadership: Leadership): PoolHooks {
  return {
    wanted: (load) => leadership.isHeld() && hooks.wanted(load),
    idle: (load) => leadership.isHeld() && hooks.idle(load),
    served: (pool) => hooks.served(pool),
    [Symbol.asyncDispose]: () => hooks[Symbol.asyncDispose](),
  }
}

/** The workers of the pools in this process. Starts and stops of one pool run one after the other, never at the same time. */
interface LocalPoolWorkers extends PoolWorkers {
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
