/** Builds the operations on jobs, the workers and the periodic chores. */
import { type Clock, uptimeMs } from '../../../lib/clock.ts'
import { createUuidV7, newUuidV4 } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import type { Sealer } from '../../../lib/sealer.ts'
import { createIdleCollection, IDLE_CHECK_MS } from '../../../lib/threads/garbage.ts'
import { type Tracer, timed, traced } from '../../../lib/tracing/tracer.ts'
import type { Turns } from '../../../lib/waiting/turns.ts'
import type { JobsConfig } from '../../config/blocks/jobs-config.ts'
import type { Blobs } from '../../domain/assets/blob-store.ts'
import { DEFAULT_POOL } from '../../domain/deployments/deployment.ts'
import type { EngineDirectory } from '../../domain/engine/directory/engine-directory.ts'
import type { Fleet } from '../../domain/engine/fleet/fleet.ts'
import type { NodeModels } from '../../domain/engine/model-port.ts'
import { createRequeueLost } from '../../domain/environments/build-loop.ts'
import { createSweepBlobs } from '../../domain/environments/manage-blobs.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { EventBus } from '../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../domain/events/live-event.ts'
import { createBatches } from '../../domain/jobs/batches/batches.ts'
import { createSubmitBatch } from '../../domain/jobs/batches/submit-batch.ts'
import { createEngineDrain } from '../../domain/jobs/claim/engine-drain.ts'
import { createLaneKeeper, type LaneKeeper } from '../../domain/jobs/claim/lane-keeper.ts'
import { createStorageWatch } from '../../domain/jobs/claim/storage-watch.ts'
import { createTurnKeeper } from '../../domain/jobs/claim/turn-keeper.ts'
import { createWorker, type Worker } from '../../domain/jobs/claim/worker.ts'
import { createCancelJob } from '../../domain/jobs/end/cancel-job.ts'
import { combineObservers, type JobObserver } from '../../domain/jobs/observer.ts'
import { createQueue, type Queue } from '../../domain/jobs/queue/manage-queue.ts'
import { createJobReader, type JobReader } from '../../domain/jobs/read/job-reader.ts'
import { createListJobs } from '../../domain/jobs/read/list-jobs.ts'
import { createRunRecords } from '../../domain/jobs/read/recorded-jobs.ts'
import { createLiveRuns, createWatchJob } from '../../domain/jobs/read/watch-job.ts'
import { createReuse } from '../../domain/jobs/reuse/find-result.ts'
import { createTrySubmit, type TrySubmit } from '../../domain/jobs/submit/dry-run.ts'
import { createExtraDataKeeper, type ExtraDataKeeper } from '../../domain/jobs/submit/extra-data-keeper.ts'
import { createSubmit, type SubmitRequest } from '../../domain/jobs/submit/submit-job.ts'
import { createSubmitPrompt } from '../../domain/jobs/submit/submit-prompt.ts'
import { createEngineVerdicts, createRetryEstimate } from '../../domain/jobs/submit/submit-refusals.ts'
import { type Chore, createHousekeeping } from '../../domain/jobs/sweeps/housekeeping.ts'
import { createExpiry, createJobChores, createRecover } from '../../domain/jobs/sweeps/job-chores.ts'
import { createFindSpared } from '../../domain/jobs/sweeps/spared-engines.ts'
import type { Heartbeat } from '../../domain/service-nodes/heartbeat.ts'
import type { Leadership } from '../../domain/service-nodes/leadership.ts'
import type { Store } from '../../domain/store.ts'
import type { ToHook } from '../../domain/webhooks/job-hooks.ts'
import { keyIdOf } from '../../domain/workers/held-claims.ts'
import { createConvertFile } from '../../domain/workflows/convert/convert-file.ts'
import { createInspectWorkflow, createPrepareWorkflow } from '../../domain/workflows/prepare.ts'
import type { AssetActions } from '../asset-actions.ts'
import type { OpenedBus } from '../bus/open-bus.ts'
import type { AccountRules } from '../open-accounts.ts'
import type { OpenedModeration } from '../open-moderation.ts'
import type { OpenedBlobs } from '../storage/open-blobs.ts'

interface JobParts {
  readonly store: Store
  readonly blobs: Blobs
  readonly hasRoomFor: OpenedBlobs['hasRoomFor']
  readonly bus: EventBus<LiveEvent> & Pick<OpenedBus, 'health'>
  readonly fleet: Fleet
  readonly directory: EngineDirectory
  readonly refreshLists: () => Promise<void>
  readonly assets: AssetActions
  readonly sealer: Sealer | null
  readonly heartbeat: Pick<Heartbeat, 'nodeId' | 'steadyForMs' | 'isAlone'>
  /** Whether this process does the chores of the service. */
  readonly leadership: Leadership
  /** null: the local kind, where nothing is limited by account. */
  readonly rules: AccountRules | null
  /** Throws when a deployment accepts no jobs at present; absent: there are no deployments. */
  readonly mustTakeJobs?: (pool: string) => Promise<void>
  /** Where new jobs of a pool go now, after an update of its deployment; absent: there are no deployments. */
  readonly currentPool?: (pool: string) => string
  readonly refuseClosedPool?: (pool: string) => Promise<void>
  readonly mustRunModels: NodeModels['mustRun']
  /** Chores of other parts, which run beside those of jobs. */
  readonly chores: readonly Chore[]
  readonly observer: JobObserver
  readonly toHook: ToHook
  readonly moderation: Pick<OpenedModeration, 'runCheck' | 'outputCheck'>
  /** Whether workflows may name files by their address. */
  readonly takesUrls: boolean
  /** Slices long work on the main thread; all of it shares these slices. */
  readonly turns: Turns
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
  readonly clock: Clock
  readonly log: Log
}

const SECOND_MS = 1000
const MINUTE_MS = 60_000
// So many jobs that were dropped from memory are worth a collection.
const MANY_JOBS = 500
const SHARED_FRESH_MS = 2000
const TURN_LOOK_MS = 500
const LOST_BUILDS_MS = 5000

/** Workers of one pool, not started yet. */
export type CreatePoolWorker = (pool: string, workers: number) => Worker

export type JobActions = ReturnType<typeof createJobActions>

export function createJobActions(config: JobsConfig, parts: JobParts) {
  const { store, bus, fleet, directory, rules, turns, clock, log } = parts
  const estimate = createRetryEstimate(clock)
  const observer = combineObservers(parts.observer, estimate)
  // What another process ends makes room as well.
  bus.onChanged(({ move, isRemote }) => {
    if (move === 'ended' && isRemote === true) estimate.finished()
  })
  const extraData = createExtraDataKeeper({ sealer: parts.sealer })
  const reader = createJobReader({ store: store.jobs, bus, clock })
  const shared = { store: store.jobs, bus, clock, log, extraData, observer, turns }
  const verdicts = createEngineVerdicts()
  const storageWatch = createStorageWatch({ fleet, hasRoom: parts.hasRoomFor, log })
  const pools = createPoolWorkers(config, parts, { ...shared, reader, verdicts, storageWatch })
  const worker = pools.create(DEFAULT_POOL, config.workers)
  const findSpared = createFindSpared({
    registry: store.engines,
    isJoined: (engineId) => keyIdOf(engineId) !== null,
    clock,
  })
  const recover = createRecover({ ...shared, findSpared })
  const lanes = createLaneKeeper({ ...shared, directory, newId: newUuidV4 })
  const queue = createQueue({ store: store.queue, bus, clock })
  const chores = createChores(config, parts, { ...shared, queue, reader, recover, lanes, pools })
  const list = createListJobs(shared)
  const cancel = createCancelJob(shared)
  return {
    /** What those that serve joined workers share with the workers of this process. */
    runTerms: {
      extraData,
      observer,
      maxRunMs: toRunLimit(config.maxRunMs, rules),
      mustBeActive: rules?.mustBeActive,
      onStored: reader.learn,
    },
    engineDrain: createEngineDrain({ fleet, evict: pools.evict, timeoutMs: config.drainTimeoutMs, log }),
    ...createSubmits(config, parts, { ...shared, estimate, verdicts, pools, worker }),
    records: createRunRecords({ store: store.records, clock }),
    countJobs: (accountId: string) => store.accounts.findUse(accountId),
    reader,
    list,
    cancel,
    queue,
    batches: createBatches({ store: store.batches, cancel, list, clock }),
    convertFile: createConvertFile({
      catalog: (pool) => directory.catalog(pool ?? DEFAULT_POOL),
      random: Math.random,
      clock,
      turns,
    }),
    // Other processes write here too, and the finest of their notices may be left out.
    watching: createWatchJob({ reader, bus, log, ...(!store.isExclusive && { liveFreshMs: SHARED_FRESH_MS }) }),
    liveRuns: createLiveRuns({ bus, clock }),
    worker,
    storageWatch,
    createPoolWorker: pools.create,
    recover,
    lanes,
    housekeeping: createHousekeeping({ tasks: chores, leadership: parts.leadership, log }),
  }
}

/** What the operations on jobs have in common. */
interface SharedParts extends Pick<JobParts, 'bus' | 'clock' | 'log' | 'observer' | 'turns'> {
  readonly store: Store['jobs']
  readonly extraData: ExtraDataKeeper
}

interface WorkerParts extends SharedParts {
  readonly reader: JobReader
  readonly verdicts: ReturnType<typeof createEngineVerdicts>
  readonly storageWatch: ReturnType<typeof createStorageWatch>
}

/** The workers of this process, one for each pool that has been opened. */
function createPoolWorkers(config: JobsConfig, parts: JobParts, { reader, verdicts, ...shared }: WorkerParts) {
  const { store, bus, fleet, directory, rules } = parts
  const { outputCheck } = parts.moderation
  const pools = new Map<Worker, string>()
  const create: CreatePoolWorker = (pool, workers) => {
    const worker = createWorker({
      ...shared,
      tracer: parts.tracer,
      bus: toPoolBus(bus, pool),
      onStored: reader.learn,
      mustBeActive: rules?.mustBeActive,
      fleet,
      findWeights: (wanted) => directory.findWeights(wanted, pool),
      verdicts: { ...verdicts, withdraw: (lease, now) => store.jobs.withdraw(lease, now) },
      storeBlob: parts.assets.storeBlob,
      outputCheck: { ...outputCheck, storeHeld: parts.assets.storeHeld },
      blobs: parts.blobs,
      newId: newUuidV4,
      // Whoever sees the job knows which process runs it.
      workerId: parts.heartbeat.nodeId,
      pool,
      isWoken: () => bus.health()?.isHearing === true,
      workers,
      previewOutputs: config.previewOutputs,
      maxRunMs: toRunLimit(config.maxRunMs, rules),
      storageLeft: parts.assets.quota.leftFor,
      cancelGraceMs: config.cancelGraceMs,
    })
    for (const other of pools.keys()) if (other.stats().isDraining && other.stats().running === 0) pools.delete(other)
    pools.set(worker, pool)
    return worker
  }
  return {
    create,
    all: () => pools.keys(),
    look(pool: string): void {
      for (const [worker, of] of pools) if (of === pool) worker.look()
    },
    async evict(engineId: string): Promise<void> {
      await Promise.all([...pools.keys()].map((worker) => worker.evict(engineId)))
    },
  }
}

type PoolWorkers = ReturnType<typeof createPoolWorkers>

interface ChoreParts extends SharedParts {
  readonly reader: JobReader
  readonly recover: ReturnType<typeof createRecover>
  readonly lanes: LaneKeeper
  readonly pools: PoolWorkers
  readonly queue: Queue
}

function createChores(
  config: JobsConfig,
  parts: JobParts,
  { reader, recover, lanes, pools, queue, ...shared }: ChoreParts,
): Chore[] {
  const { store, fleet, bus, assets, heartbeat, clock, log } = parts
  const expiry = createExpiry({ ...shared, expiredGraceMs: config.expiredGraceMs })
  const turnKeeper = createTurnKeeper({ store: store.jobs, fleet, workers: pools.all, clock, log })
  const collectIdle = createIdleCollection()
  let hasLetGo = false
  async function sweepJobCache(): Promise<void> {
    if (reader.sweep() >= MANY_JOBS) hasLetGo = true
  }
  async function collectWhenIdle(): Promise<void> {
    if (collectIdle(hasLetGo)) hasLetGo = false
  }
  const { jobs, keys, batches, bulkActions, accounts, summaries, gpuUse } = store
  const sweepBlobs = createSweepBlobs({ store: store.buildBlobs, clock })
  const requeueLost = createRequeueLost({ queue: store.artifacts, clock })
  return [
    ...createJobChores({
      ...{ recover, expiry, keys, batches, bulkActions, jobs, accounts, summaries, gpuUse, heartbeat, clock, log },
      extraData: shared.extraData,
    }),
    { name: 'release-held', runs: 'once', everyMs: SECOND_MS, run: (signal) => queue.releaseDue(signal) },
    { name: 'keep-turns', runs: 'each', everyMs: TURN_LOOK_MS, run: () => turnKeeper.look() },
    ...(fleet.hasLanes ? createLaneChores(lanes, { heartbeat, bus }) : []),
    { name: 'collect-assets', runs: 'once', everyMs: MINUTE_MS, run: (signal) => assets.collect({ signal }) },
    { name: 'sweep-uploads', runs: 'once', everyMs: MINUTE_MS, run: (signal) => assets.sweepUploads({ signal }) },
    { name: 'sweep-imports', runs: 'once', everyMs: 60 * MINUTE_MS, run: () => assets.library.imports.sweep() },
    { name: 'requeue-lost-builds', runs: 'once', everyMs: LOST_BUILDS_MS, run: requeueLost },
    { name: 'sweep-build-blobs', runs: 'once', everyMs: 60 * MINUTE_MS, run: sweepBlobs },
    { name: 'sweep-job-cache', runs: 'each', everyMs: MINUTE_MS, run: sweepJobCache },
    { name: 'idle-collection', runs: 'each', everyMs: IDLE_CHECK_MS, run: collectWhenIdle },
    ...parts.chores,
  ]
}

interface SubmitParts extends SharedParts {
  readonly estimate: ReturnType<typeof createRetryEstimate>
  readonly verdicts: ReturnType<typeof createEngineVerdicts>
  readonly pools: PoolWorkers
  readonly worker: Worker
}

/** The ways in which jobs come in. */
function createSubmits(
  config: JobsConfig,
  parts: JobParts,
  { estimate, verdicts, pools, worker, ...shared }: SubmitParts,
) {
  const { store, fleet, directory, rules, turns, tracer, clock } = parts
  const workflows = {
    catalog: directory.catalog,
    assets: store.assets,
    turns,
    clock,
    nodeRules: rules?.nodeRules,
    ...(parts.takesUrls && { takeUrls: parts.assets.takeGivenFiles }),
    ...(fleet.hasLanes && { placement: directory, refreshLists: parts.refreshLists }),
  }
  const inspectWorkflow = createInspectWorkflow(workflows)
  const { runCheck, outputCheck } = parts.moderation
  const admission = {
    admit: rules?.admit,
    pool: DEFAULT_POOL,
    mustTakeJobs: parts.mustTakeJobs,
    mustRunModels: parts.mustRunModels,
    toHook: parts.toHook,
    checkedBy: outputCheck.keyOf,
    retryAfterSeconds: estimate.retryAfterSeconds,
    // Beside other processes, whatever still reaches this one is taken: another one runs it.
    isClosing: () => store.isExclusive && worker.stats().isDraining,
  }
  const reuse = openReuse(config, parts)
  const newJobId = createUuidV7(() => clock.now().getTime())
  const recording = {
    ...shared,
    ...admission,
    reuse,
    newJobId,
    ...(runCheck !== null && { checkJob: runCheck.job }),
    prepareWorkflow: timed(tracer, 'workflow.prepare', createPrepareWorkflow(workflows)),
    ...(tracer !== undefined && { currentTrace: () => tracer.active()?.context ?? null }),
    refuseClosedPool: parts.refuseClosedPool,
    retentionMs: config.retentionMs,
    onRecording: pools.look,
  }
  const recordJob = {
    submit: timed(tracer, 'job.record', (job, claim) => store.jobs.submit(job, claim)),
    answerAgain: timed(tracer, 'job.reuse', (job, again, claim) => store.jobs.answerAgain(job, again, claim)),
  } satisfies Pick<Store['jobs'], 'submit' | 'answerAgain'>
  const engineCheck = fleet.hasLanes && {
    engineCheck: { verdicts, roomFor: (lane: string, pool: string) => fleet.roomFor(lane, pool) },
  }
  const submit = traced(
    tracer,
    'job.submit',
    followUpdates(createSubmit({ ...recording, store: recordJob, ...engineCheck }), parts.currentPool),
  )
  const tryThere = createTrySubmit({
    ...{ ...admission, ...workflows, reuse, inspectWorkflow },
    ...{ keys: store.keys, ledger: store.ledger, accounts: store.accounts },
    ...{ runLimits: store.runLimits, retentionMs: config.retentionMs },
    limitsOf: (accountId) => {
      const limits = rules?.limitsOf(accountId) ?? null
      return { maxRunning: limits?.concurrentJobs ?? null, maxQueued: limits?.queuedJobs ?? config.maxQueued }
    },
  })
  const forBatches = { store: store.batches, keys: store.keys, newBatchId: newJobId }
  return {
    submit,
    trySubmit: tryCurrent(tryThere, parts.currentPool),
    submitPrompt: createSubmitPrompt({
      ...{ inspectWorkflow, submit, turns, catalog: workflows.catalog, pool: DEFAULT_POOL },
      ...(fleet.hasLanes && { placement: directory }),
    }),
    submitBatch: traced(
      tracer,
      'batch.submit',
      followUpdates(createSubmitBatch({ ...recording, ...forBatches }), parts.currentPool),
    ),
  }
}

/** Looks at the copy that a submit would be sent to. */
function tryCurrent(tryThere: TrySubmit, currentPool: JobParts['currentPool']): TrySubmit {
  return (request, found) => {
    const pool = request.pool ?? null
    return tryThere({ ...request, pool: pool === null ? null : (currentPool?.(pool) ?? pool) }, found)
  }
}

const MAX_UPDATES = 5

/**
 * Sends what comes to a deployment on a release to the copy that serves. An update may land between the look at the deployment and the
 * record of the job; nothing is recorded then, and it is sent to the next copy, if it may run there.
 */
function followUpdates<Request extends Pick<SubmitRequest, 'pool' | 'mustRunOn'>, Answer>(
  send: (request: Request) => Promise<Answer>,
  currentPool: JobParts['currentPool'],
): (request: Request) => Promise<Answer> {
  if (currentPool === undefined) return send
  return async (request) => {
    const { pool: asked } = request
    if (asked == null) return send(request)
    for (let updates = 0; ; updates++) {
      const pool = currentPool(asked)
      request.mustRunOn?.(pool)
      try {
        return await send({ ...request, pool })
      } catch (error) {
        const isRefused = error instanceof ServiceError && error.refusal === 'deployment_not_ready'
        if (!isRefused || currentPool(asked) === pool || updates === MAX_UPDATES) throw error
      }
    }
  }
}

function openReuse(config: JobsConfig, { store, blobs, directory, rules, clock }: JobParts) {
  return createReuse({
    store: store.jobs,
    blobs,
    catalog: directory.catalog,
    isCatalogOpen: directory.isCatalogOpen,
    modeOf: (accountId) => (rules?.limitsOf(accountId).reuseResults === true ? 'exact' : config.reuse),
    newId: newUuidV4,
    clock,
  })
}

function toRunLimit(maxRunMs: number | null, rules: AccountRules | null): (accountId: string) => number | null {
  return (accountId) => {
    const seconds = rules?.limitsOf(accountId).runSeconds ?? null
    if (seconds === null) return maxRunMs
    return Math.min(seconds * 1000, maxRunMs ?? Number.POSITIVE_INFINITY)
  }
}

// The chores of a fleet: lanes of jobs that came in elsewhere are learnt, and jobs that no engine can run any more are ended.

// Beside others, jobs of a kind that is new here wait for as long before this process can claim them.
const LEARN_MS = { alone: 5000, besideOthers: 1000 }
// While nothing was queued elsewhere, as far as notices tell, there is nothing to learn.
const LEARN_ANYWAY_MS = 10_000

interface LaneChoreDeps {
  readonly heartbeat: Pick<Heartbeat, 'isAlone'>
  readonly bus: Pick<EventBus<LiveEvent>, 'onChanged' | 'onGap'> & Pick<OpenedBus, 'health'>
}

function createLaneChores({ learn, endStranded }: LaneKeeper, { heartbeat, bus }: LaneChoreDeps): Chore[] {
  const { isAlone } = heartbeat
  const everyMs = isAlone ? LEARN_MS.alone : LEARN_MS.besideOthers
  let isNews = true
  let learntAtMs = Number.NEGATIVE_INFINITY
  bus.onChanged(({ move, isRemote }) => {
    if (isRemote === true && (move === 'queued' || move === 'returned')) isNews = true
  })
  bus.onGap(() => {
    isNews = true
  })

  async function learnNews(): Promise<void> {
    const isDue = uptimeMs() - learntAtMs >= LEARN_ANYWAY_MS
    if (!isNews && !isDue && bus.health()?.isHearing === true) return
    isNews = false
    learntAtMs = uptimeMs()
    if (await learn()) isNews = true
  }

  return [
    // Each process claims by what it knows of the lanes.
    { name: 'learn-lanes', runs: 'each', everyMs, run: learnNews },
    { name: 'end-stranded', runs: 'once', everyMs: 10_000, run: endStranded },
  ]
}

const REMOTE_WORK_MS = 50

/**
 * A worker is woken only for jobs of its own pool; otherwise every submit would wake the workers of every deployment. What another
 * process announces is looked at a moment later, at a time of its own in each process: most likely it is taken there, and many
 * announcements become one look.
 */
function toPoolBus(bus: EventBus<LiveEvent>, pool: string): EventBus<LiveEvent> {
  return {
    ...bus,
    onWork(listener) {
      let soon: NodeJS.Timeout | null = null
      const stop = bus.onWork((of, isRemote) => {
        if (of !== undefined && of !== pool) return
        if (!isRemote) return listener(of, false)
        soon ??= setTimeout(() => {
          soon = null
          listener(of, true)
        }, Math.random() * REMOTE_WORK_MS)
      })
      return () => {
        stop()
        if (soon !== null) clearTimeout(soon)
      }
    },
  }
}
