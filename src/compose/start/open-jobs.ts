/** Jobs and those who run them: the operations, the workers of this process in every pool that it serves, and the chores. */
import type { Sealer } from '../../../lib/sealer.ts'
import type { Turns } from '../../../lib/waiting/turns.ts'
import type { DeploymentsConfig, JobsConfig } from '../../config/blocks/jobs-config.ts'
import type { Config } from '../../config/config.ts'
import { LOCAL_ACCOUNT_ID } from '../../domain/accounts/account.ts'
import { DEFAULT_POOL, type Deployment } from '../../domain/deployments/deployment.ts'
import { createPoolSignals, type PoolSignals } from '../../domain/deployments/pool-signals.ts'
import type { CommandEngine } from '../../domain/engine/directory/engine-commands.ts'
import type { NodeModels } from '../../domain/engine/model-port.ts'
import type { JobObserver } from '../../domain/jobs/observer.ts'
import { createServiceSeries, SERIES_STEP_MS, type ServiceSeries } from '../../domain/jobs/read/service-series.ts'
import type { Chore } from '../../domain/jobs/sweeps/housekeeping.ts'
import { keyIdOf } from '../../domain/workers/held-claims.ts'
import type { AssetActions } from '../asset-actions.ts'
import type { OpenedBus } from '../bus/open-bus.ts'
import { openPools, type RunningPools } from '../engines/open-deployments.ts'
import type { OpenedDirectory } from '../engines/open-directory.ts'
import { createJobActions, type JobActions } from '../jobs/job-actions.ts'
import type { OpenedModeration } from '../open-moderation.ts'
import type { OpenedWebhooks } from '../open-webhooks.ts'
import { PARTS_OF } from '../roles.ts'
import { createStoreChores } from '../storage/open-store.ts'
import type { Base, Callers } from './open-base.ts'

interface JobPhaseParts {
  readonly base: Base
  readonly callers: Callers
  readonly engines: OpenedDirectory
  readonly bus: OpenedBus
  readonly assets: AssetActions
  readonly sealer: Sealer | null
  readonly observer: JobObserver
  readonly webhooks: OpenedWebhooks
  readonly moderation: OpenedModeration
  readonly mustRunModels: NodeModels['mustRun']
  readonly turns: Turns
  readonly opening: AsyncDisposableStack
}

export interface OpenedJobs {
  readonly jobs: JobActions
  readonly commandEngine: CommandEngine
  readonly poolSignals: PoolSignals
  /** Filled only where there are surfaces to ask for it. */
  readonly series: ServiceSeries
  /** null: the local kind, which has the common pool alone. */
  readonly pools: RunningPools | null
  /** Begins to claim jobs. */
  start(): void
}

export async function openJobs(config: Config, parts: JobPhaseParts): Promise<OpenedJobs> {
  const { base, callers, engines, bus, opening } = parts
  const { deployments } = callers
  const series = openSeries(base)
  const jobs = createJobs(config, parts, PARTS_OF[config.role].surfaces ? [toSeriesChore(series)] : [])
  opening.defer(() => jobs.reader.stop())
  opening.use(jobs.watching)
  opening.use(jobs.liveRuns)
  await prepareStore(config, { ...base, jobs })
  opening.use(jobs.storageWatch)
  opening.use(jobs.worker)
  opening.use(jobs.engineDrain)
  opening.use(jobs.housekeeping)
  const poolSignals = createPoolSignals({
    store: base.store.deployments,
    deployments,
    findLive: base.node.heartbeat.findLive,
    clock: base.clock,
  })
  const opens = PARTS_OF[config.role]
  const pools =
    deployments === null
      ? null
      : opening.use(
          openPools(config.deployments ?? COPIES_ALONE, {
            ...{ ...base, deployments, jobs, bus, poolSignals },
            tellPool: parts.webhooks.tellPool,
            drainTimeoutMs: config.jobs.drainTimeoutMs,
            workersHere: (deployment) => (opens.engines ? countWorkers(config.jobs, deployment) : 0),
          }),
        )
  const runsCommonPool = opens.engines && config.jobs.workers > 0 && isServed(config.jobs, DEFAULT_POOL)
  const countAll = () => ({
    ...pools?.workers.counts(),
    [DEFAULT_POOL]: runsCommonPool && !jobs.worker.stats().isDraining ? config.jobs.workers : 0,
  })
  base.figures.workers = countAll
  return {
    jobs,
    commandEngine: toCommandEngine(engines, jobs),
    poolSignals,
    series,
    pools,
    start() {
      if (runsCommonPool) jobs.worker.start()
      pools?.start()
    },
  }
}

/** The local kind with releases: no other deployments than those. */
const COPIES_ALONE: DeploymentsConfig = { domain: null, hook: null, idleAfterMs: 300_000 }

function openSeries({ store, clock }: Base): ServiceSeries {
  return createServiceSeries({
    countJobs: () => store.jobs.countByStatus(),
    countEnded: (from, to) => store.summaries.countEnded(from, to),
    async spentBetween(from, to) {
      const { days } = await store.ledger.charges({ accountId: null, edges: [from, to], by: 'day', limit: 0 })
      return days[0]?.charged ?? 0
    },
    clock,
  })
}

/** Twice as often as there are values: no value is missed. */
function toSeriesChore(series: ServiceSeries): Chore {
  return { name: 'look-at-service', runs: 'each', everyMs: SERIES_STEP_MS / 2, run: () => series.look() }
}

function createJobs(
  config: Config,
  { base, callers, engines, ...parts }: JobPhaseParts,
  chores: readonly Chore[],
): JobActions {
  const { store, opened, node, tracer, clock, log } = base
  const { shared, workerKeys, deployments } = callers
  const { fleet, directory, refreshLists, chores: engineChores } = engines
  return createJobActions(config.jobs, {
    ...{ ...parts, store, fleet, directory, refreshLists, tracer, clock, log },
    blobs: opened.blobs,
    hasRoomFor: opened.hasRoomFor,
    toHook: parts.webhooks.toHook,
    takesUrls: config.inputUrls.isForJobs,
    heartbeat: node.heartbeat,
    leadership: node.leadership,
    rules: shared,
    ...(deployments !== null && {
      mustTakeJobs: (pool) => deployments.mustTakeJobs(pool),
      currentPool: (pool) => deployments.current(pool),
    }),
    async refuseClosedPool(pool) {
      await deployments?.refresh()
      await deployments?.mustTakeJobs(pool)
    },
    chores: [
      ...chores,
      ...engineChores,
      ...(shared?.chores ?? []),
      ...opened.chores,
      ...workerKeys.chores,
      ...parts.webhooks.chores,
      ...createStoreChores(store.upkeep, { clock, retentionMs: config.jobs.retentionMs }),
    ],
  })
}

interface PreparedParts extends Pick<Base, 'store' | 'clock'> {
  readonly jobs: JobActions
}

/** Creates the implicit account of the local kind, and recovers the jobs that an earlier process left unfinished. */
async function prepareStore(config: Config, { store, jobs, clock }: PreparedParts): Promise<void> {
  // Only a process that takes jobs knows how many may wait; the settings of a worker do not say.
  if (PARTS_OF[config.role].surfaces) {
    await store.accounts.put({
      id: LOCAL_ACCOUNT_ID,
      // The number of workers bounds what runs at a time, so the only account needs no limit of its own.
      maxRunning: 1_000_000,
      maxQueued: config.jobs.maxQueued,
    })
  }
  if (store.isExclusive) {
    // No other process has the store, so every lease in it is stale, but those of workers that joined: they bring their runs.
    const stale = (await store.jobs.findRuns({})).filter(({ engineId }) => keyIdOf(engineId) === null)
    await store.jobs.leave(stale, clock.now())
    await jobs.recover()
  }
  await jobs.lanes.start()
}

function toCommandEngine({ toCommand, fleet }: OpenedDirectory, jobs: JobActions): CommandEngine {
  return toCommand((engineId, will) => {
    if (will === 'draining') jobs.engineDrain.drain(engineId)
    else if (will === 'cordoned') fleet.cordon(engineId)
    else fleet.resume(engineId)
  })
}

/** Which pools this process runs jobs of, and with how many workers. */
type PoolsConfig = Pick<JobsConfig, 'pools' | 'workers'>

function isServed({ pools }: PoolsConfig, pool: string): boolean {
  return pools === null || pools.includes(pool)
}

/** A deployment that asks for no workers is run by the processes that were told to run it, as much as each can. */
function countWorkers({ pools, workers }: PoolsConfig, deployment: Pick<Deployment, 'id' | 'workers'>): number {
  if (pools === null) return deployment.workers
  if (!pools.includes(deployment.id)) return 0
  return deployment.workers > 0 ? deployment.workers : workers
}
