/**
 * A worker on a machine that reaches neither the database nor the storage of its service: engines here, everything else over HTTPS
 * at whichever node of the service answers. It ends its runs, or gives them back, as any worker does.
 */
import { hostname } from 'node:os'
import { newUuidV4 } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Tracer } from '../../lib/tracing/tracer.ts'
import { settlesWithin } from '../../lib/waiting/sleep.ts'
import { createTurns } from '../../lib/waiting/turns.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/config-error.ts'
import type { JoinConfig } from '../config/join-config.ts'
import type { Secret } from '../config/secrets.ts'
import { createEngineDirectory, type EngineDirectory } from '../domain/engine/directory/engine-directory.ts'
import { EnginePublisher } from '../domain/engine/directory/engine-publisher.ts'
import { createFleet, type Fleet } from '../domain/engine/fleet/fleet.ts'
import { createEngineLeases } from '../domain/engine/fleet/fleet-engine.ts'
import { ServiceError } from '../domain/errors.ts'
import { createEngineDrain, type EngineDrain } from '../domain/jobs/claim/engine-drain.ts'
import { createStorageWatch } from '../domain/jobs/claim/storage-watch.ts'
import { createWorker, type Worker } from '../domain/jobs/claim/worker.ts'
import type { WorkerDeps } from '../domain/jobs/claim/worker-options.ts'
import type { Claim } from '../domain/jobs/job-store.ts'
import { readStoredGraph } from '../domain/jobs/run/run-steps.ts'
import { openHeartbeat } from '../domain/service-nodes/heartbeat.ts'
import { createLaneTable } from '../domain/workflows/needs.ts'
import { createLocalPoolWorkers } from './engines/open-deployments.ts'
import { type FleetOverrides, openEngineList } from './engines/open-engines.ts'
import { type JoinedReleases, type JoinReleasesParts, openJoinReleases } from './join/join-releases.ts'
import { type JoinedService, type JoinParts, openJoin } from './join/open-join.ts'
import { type Metrics, openMetrics } from './metrics/open-metrics.ts'
import { openTracing } from './open-tracing.ts'

// What was given out and not taken back goes back to the queue with its lease.
const TAKE_BACK_MS = 5000

interface JoinedWorkerOptions extends Pick<JoinParts, 'key' | 'versions' | 'signal'> {
  readonly log: Log
  readonly version: string
  /** For the collector of traces, as JSON; left out or null: none. */
  readonly traceHeaders?: Secret<string> | null
  readonly overrides?: FleetOverrides
  /** Left out: every pool that the key names. */
  readonly pools?: readonly string[]
  /** Whether it makes releases and serves them; left out: no. */
  readonly builds?: Pick<JoinReleasesParts, 'secrets' | 'builder'>
}

export interface JoinedWorker extends AsyncDisposable {
  /** Made at its start; together with the id of its key it names this process. */
  readonly instanceId: string
  readonly pools: readonly string[]
  readonly fleet: Fleet
  running(): number
  readonly metrics: Pick<Metrics, 'contentType' | 'render'>
  /** Its service takes what it says, and it does not drain. */
  isReady(): boolean
  /** Asks for no new work, lets runs finish within the configured time and gives the rest back. */
  drain(): Promise<void>
  /** Resolves with the reason when the service will never take this worker again. */
  readonly refused: Promise<Error>
}

export async function startJoinedWorker(
  config: Config,
  join: JoinConfig,
  options: JoinedWorkerOptions,
): Promise<JoinedWorker> {
  const { version } = options
  await using opening = new AsyncDisposableStack()
  const { traceHeaders: headers = null } = options
  const { tracer, log } = opening.use(await openTracing(config.traces, { headers, version, log: options.log }))
  const service = opening.use(await openJoin(join, { ...options, tracer }))
  const pools = choosePools(service.hello.pools, options.pools)
  const releases = await openReleases(config, { service, options, log, opening })
  const { clock, engines } = service
  const about = () => ({
    ...{ version, host: hostname() },
    workers: Object.fromEntries(pools.map((pool) => [pool, config.jobs.workers])),
    ...(releases !== null && { machine: releases.report() }),
  })
  const heartbeat = opening.use(
    await openHeartbeat({ store: engines.nodes, nodeId: service.instanceId, about, clock, log }),
  )
  heartbeat.onBeat(service.sampleClock)
  // Processes that watch its jobs must know which one publishes their live events.
  service.bus.onLiveNode(() => void heartbeat.beat())
  const fleetParts = { service, heartbeat, options: { ...options, log }, tracer, opening }
  const { fleet, directory, publish } = await openFleet(config, fleetParts)
  // It calls no model by itself, so no refusal of one is ever counted here.
  const metrics = openMetrics({ version, role: 'worker', errorTypeOf: (refusal) => refusal })
  const jobs = service.openJobs({
    describe: (engineId) => fleet.describe(engineId),
    onClaimed: createLearnLane(directory),
  })
  const storageWatch = opening.use(createStorageWatch({ fleet, hasRoom: service.hasRoomFor, log }))
  const createPoolWorker = (pool: string, count = config.jobs.workers) =>
    createWorker({
      ...toWorkerDeps(config, { service, fleet }),
      ...{ storageWatch, store: jobs, observer: metrics.observer, pool, workers: count, tracer, log },
    })
  const workers = pools.map((pool) => createPoolWorker(pool))
  const copyWorkers = createCopyWorkers({ createPoolWorker, endPool: (pool) => jobs.endPool(pool) })
  opening.defer(() => stopAll(0))
  opening.use(followWishes(engines, { fleet, workers, timeoutMs: config.jobs.drainTimeoutMs, log }))
  opening.defer(fleet.onChange(() => jobs.offersChanged((pool) => fleet.offers(pool))))

  let isStopping = false
  async function stopAll(withinMs: number): Promise<void> {
    isStopping = true
    releases?.withdraw()
    const deadline = new Date(clock.now().getTime() + withinMs)
    // Questions that wait are taken back meanwhile; a service that does not answer must not hold up the end.
    const ended = jobs.end()
    await Promise.all([...workers, copyWorkers].map((worker) => worker.drain({ deadline })))
    await settlesWithin(ended, TAKE_BACK_MS)
  }

  const countRunning = () =>
    workers.reduce((sum: number, worker: Worker) => sum + worker.stats().running, copyWorkers.running())
  metrics.watch({
    ...{ nodeId: service.instanceId, runningHere: countRunning, engines: () => fleet.status() },
    // It serves no stream and has no store.
    ...{ service: null, isLeading: () => false, openStreams: () => 0, storeHealth: null },
    groupCommit: () => ({ batches: 0, operations: 0 }),
  })
  await publish()
  heartbeat.start()
  for (const worker of workers) worker.start()
  if (releases !== null) opening.use(releases.start({ fleet, heartbeat, workers: copyWorkers, tracer }))
  const running = opening.move()
  return {
    instanceId: service.instanceId,
    pools,
    fleet,
    refused: service.refused,
    running: countRunning,
    metrics,
    isReady: () => !isStopping && heartbeat.steadyForMs() > 0,
    drain: () => stopAll(config.jobs.drainTimeoutMs),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

interface ReleaseParts extends Pick<FleetParts, 'service' | 'options' | 'opening'> {
  readonly log: Log
}

async function openReleases(config: Config, parts: ReleaseParts): Promise<JoinedReleases | null> {
  const { service, options, log, opening } = parts
  const { builder } = config
  if (options.builds === undefined || builder === null) return null
  return opening.use(await openJoinReleases(config, { builder }, { ...options.builds, ...options, service, log }))
}

interface CopyWorkerParts {
  readonly createPoolWorker: (pool: string, workers: number) => Worker
  /** Takes back what waits at the service. */
  readonly endPool: (pool: string) => Promise<void>
}

/** Those who take the jobs of copies; they come and go. */
function createCopyWorkers({ createPoolWorker, endPool }: CopyWorkerParts) {
  const none = () => ({ workers: 0, running: 0, isDraining: false })
  const local = createLocalPoolWorkers({ createPoolWorker, commonWorker: { stats: none } })
  return {
    ...local,
    async stop(pool: string, options: { readonly deadline: Date }): Promise<void> {
      await Promise.all([endPool(pool), local.stop(pool, options)])
    },
  }
}

interface WishParts {
  readonly fleet: Fleet
  readonly workers: readonly Worker[]
  readonly timeoutMs: number
  readonly log: Log
}

/** What operators of the service want of the engines here. */
function followWishes(engines: JoinedService['engines'], { fleet, workers, ...rest }: WishParts): EngineDrain {
  const evict = async (engineId: string) => void (await Promise.all(workers.map((worker) => worker.evict(engineId))))
  const engineDrain = createEngineDrain({ fleet, evict, ...rest })
  engines.onWish((engineId, will) => {
    if (!fleet.status().some(({ id }) => id === engineId)) return
    if (will === 'draining') engineDrain.drain(engineId)
    else if (will === 'cordoned') fleet.cordon(engineId)
    else fleet.resume(engineId)
  })
  return engineDrain
}

/** Throws ConfigError for a pool that the key does not name. */
function choosePools(allowed: readonly string[], wanted: readonly string[] = allowed): readonly string[] {
  const foreign = wanted.find((pool) => !allowed.includes(pool))
  if (foreign === undefined) return wanted
  throw new ConfigError(
    `the key of this worker may take no jobs of the pool ${foreign}; it names ${allowed.join(', ')}`,
  )
}

interface FleetParts {
  readonly service: JoinedService
  readonly heartbeat: Awaited<ReturnType<typeof openHeartbeat>>
  readonly options: JoinedWorkerOptions
  readonly tracer: Tracer | undefined
  readonly opening: AsyncDisposableStack
}

async function openFleet(config: Config, { service, heartbeat, options, tracer, opening }: FleetParts) {
  const { clock, engines: remote, hello, runModel } = service
  const { log, overrides = {} } = options
  const leases = createEngineLeases(clock)
  const lanes = createLaneTable()
  // Prompts of this service on a shared ComfyUI server bear its name, and then that of the process.
  const ownerId = `${hello.service_id}-${hello.key_id}`
  const node = { heartbeat }
  await using listed =
    overrides.engines === undefined
      ? await openEngineList(config, { clock, log, tracer, node, overrides, runModel, ownerId, leases })
      : null
  const fleet = createFleet(overrides.engines ?? listed?.engines ?? [], {
    ...{ clock, log, lanes, hasLanes: true, isDriven: leases.isDriven, recycleLimits: config.fleet.recycle },
    ...(overrides.quarantineMs !== undefined && { quarantineMs: overrides.quarantineMs }),
    isServedElsewhere: (lane) => service.held.hasOther(lane),
  })
  const publisher = new EnginePublisher({ registry: remote.registry, fleet, leases, heartbeat, clock, log })
  heartbeat.onBeat(() => publisher.publish())
  opening.use(fleet)
  opening.use(publisher)
  await listed?.untilHeard()
  listed?.keep()
  const directory = createEngineDirectory({ fleet, lanes, nodeId: heartbeat.nodeId })
  return { fleet, directory, publish: () => publisher.publish() }
}

/** What a job needs is learnt from its graph when it comes: which weights its engine has loaded afterwards follows from that. */
function createLearnLane(directory: Pick<EngineDirectory, 'learnLane'>) {
  const turns = createTurns()
  return async function learnLane({ needs, workflow, job }: Claim): Promise<void> {
    if (needs !== '') directory.learnLane(needs, await readStoredGraph(workflow, turns), job.pool)
  }
}

/** Runs outlast a restart of the service, also one that migrates: whoever has them by then tells by the fence. */
const SERVICE_AWAY_MS = 600_000

interface WorkerParts {
  readonly service: JoinedService
  readonly fleet: Fleet
}

function toWorkerDeps(config: Config, { service, fleet }: WorkerParts): Omit<WorkerDeps, 'store' | 'pool' | 'log'> {
  const { held, files, clock, bus, hello } = service
  return {
    ...{ bus, clock, blobs: files.blobs, storeBlob: files.storeOutput, newId: newUuidV4 },
    fleet: {
      claimExclusively: (worker, claim) => fleet.claimExclusively(worker, claim),
      offers: (pool) => fleet.offers(pool),
      adoptable: () => [],
      // A claim waits at the service with what was offered: a slot is offered when nothing can go wrong with its last run any more.
      take: (engineId, job) => ({ ...fleet.take(engineId, job), vacate() {} }),
      nextRoomMs: () => fleet.nextRoomMs(),
      forget: (jobId) => fleet.forget(jobId),
      onChange: (listener) => fleet.onChange(listener),
    },
    workers: config.jobs.workers,
    leaseMs: hello.lease_ms,
    outageGraceMs: SERVICE_AWAY_MS,
    previewOutputs: config.jobs.previewOutputs,
    cancelGraceMs: config.jobs.cancelGraceMs,
    extraData: {
      take: (jobId) => held.credentialsOf(jobId),
      forget: (jobId) => held.forgetCredentials(jobId),
    },
    storageLeft: async (accountId) =>
      held.mustFindAccount(accountId).terms.storageLeftBytes ?? Number.POSITIVE_INFINITY,
    maxRunMs(accountId) {
      const limits = [config.jobs.maxRunMs, held.mustFindAccount(accountId).terms.maxRunMs]
      const bounded = limits.filter((limit) => limit !== null)
      return bounded.length === 0 ? null : Math.min(...bounded)
    },
    mustBeActive(accountId) {
      const { refusal } = held.mustFindAccount(accountId).terms
      if (refusal !== null) throw new ServiceError(refusal.refusal, refusal.message)
    },
  }
}
