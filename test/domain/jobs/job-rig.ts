/** The whole of domain/jobs over the real store, the real blobs and the fake engine, in a folder of its own. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readGraph } from '../../../engine/graph/graph-json.ts'
import { type Clock, systemClock } from '../../../lib/clock.ts'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { createUuidV7, newUuidV4 } from '../../../lib/ids.ts'
import { type JsonObject, type JsonValue, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { silentLog } from '../../../lib/log.ts'
import { createSealer } from '../../../lib/sealer.ts'
import { openFsBlobs } from '../../../src/adapters/blobs/fs/fs-blobs.ts'
import { createLocalBus } from '../../../src/adapters/bus/local.ts'
import { openSqliteStore, type SqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { LOCAL_ACCOUNT_ID } from '../../../src/domain/accounts/account.ts'
import { createStoreBlob, type StoreBlob } from '../../../src/domain/assets/blob-store.ts'
import { createEngineDirectory } from '../../../src/domain/engine/directory/engine-directory.ts'
import { createFleet, type FleetOptions } from '../../../src/domain/engine/fleet/fleet.ts'
import { type FleetEngine, toResidentEngine } from '../../../src/domain/engine/fleet/fleet-engine.ts'
import type { EventBus } from '../../../src/domain/events/event-bus.ts'
import type { LiveEvent } from '../../../src/domain/events/live-event.ts'
import { createLaneKeeper } from '../../../src/domain/jobs/claim/lane-keeper.ts'
import { createWorker } from '../../../src/domain/jobs/claim/worker.ts'
import type { WorkerDeps } from '../../../src/domain/jobs/claim/worker-options.ts'
import { createCancelJob } from '../../../src/domain/jobs/end/cancel-job.ts'
import type { Job } from '../../../src/domain/jobs/job.ts'
import type { CommitOutcome, JobStore, RunChange } from '../../../src/domain/jobs/job-store.ts'
import { combineObservers, type JobObserver } from '../../../src/domain/jobs/observer.ts'
import { createJobReader } from '../../../src/domain/jobs/read/job-reader.ts'
import { createListJobs } from '../../../src/domain/jobs/read/list-jobs.ts'
import { createWatchJob } from '../../../src/domain/jobs/read/watch-job.ts'
import { createExtraDataKeeper } from '../../../src/domain/jobs/submit/extra-data-keeper.ts'
import { createSubmit, type SubmitRequest } from '../../../src/domain/jobs/submit/submit-job.ts'
import { createExpiry, createRecover } from '../../../src/domain/jobs/sweeps/job-chores.ts'
import { createLaneTable } from '../../../src/domain/workflows/needs.ts'
import { createFakeEngine, type FakeEngine } from '../../support/engines/fake-engine.ts'
import type { FakeFleetEngine } from '../../support/engines/fake-fleet-engine.ts'

export interface RigOptions {
  readonly directory?: string
  readonly clock?: Clock
  readonly secretKey?: Uint8Array
  readonly engine?: FakeEngine
  readonly maxQueued?: number
  readonly maxRunning?: number
  /** Makes the engine one whose process is ours: this replaces it by a fresh one. */
  readonly recycle?: (reason: string) => Promise<void>
  /** A fleet instead of the one engine; jobs then wait in lanes. */
  readonly engines?: readonly FakeFleetEngine[]
  readonly fleet?: Partial<Omit<FleetOptions, 'lanes'>>
  readonly lanes?: { readonly maxLanes: number }
  readonly worker?: Partial<WorkerDeps>
  readonly observer?: Partial<JobObserver>
  readonly storeBlob?: (real: StoreBlob) => StoreBlob
  /** One process's end of a bus that several share. */
  readonly bus?: EventBus<LiveEvent>
  /** Stands between the domain and the store. */
  readonly wrapStore?: (store: JobStore) => JobStore
}

/** What a claim asks for that takes whatever waits. */
export const ANYTHING = { engines: [{ engineId: 'other', lanes: null }], maxOvertakes: 0 } as const

function toSupervised(engine: FleetEngine, recycle: (reason: string) => Promise<void>): FleetEngine {
  const { isResident: _, ...rest } = engine
  const listeners = new Set<() => void>()
  let incarnation = 1
  return {
    ...rest,
    health: () => ({ ...engine.health(), incarnation }),
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async recycle(reason) {
      await recycle(reason)
      incarnation += 1
      for (const listener of listeners) listener()
    },
  }
}

export const ACCOUNT = LOCAL_ACCOUNT_ID
export const RETENTION_MS = 7 * 86_400_000

export type Rig = Awaited<ReturnType<typeof openRig>>

export async function openRig(options: RigOptions = {}) {
  const { clock = systemClock } = options
  const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'atelier-jobs-')))
  const opened = await openSqliteStore({ directory, clock, synchronous: 'NORMAL' })
  await opened.accounts.put({
    id: ACCOUNT,
    maxRunning: options.maxRunning ?? 100,
    maxQueued: options.maxQueued ?? 10_000,
  })
  const parts = await openParts(directory, opened, { ...options, clock })
  const rig = {
    ...parts,
    directory,
    store: opened,
    clock,
    submit: (workflow: JsonValue, fields: Partial<SubmitRequest> = {}) =>
      parts.submitJob({ ...PLAIN_REQUEST, workflow, ...fields }),
    /** Resolves with the first state of the job that fits. */
    until: (jobId: string, fits: (job: Job) => boolean) => untilJob(parts, jobId, fits),
    untilStatus: (jobId: string, status: Job['status']) => untilJob(parts, jobId, (job) => job.status === status),
    /** Like a process that dies: leases stay, memory is gone, the folder remains. */
    async crash() {
      await opened[Symbol.asyncDispose]()
      parts.engine.release()
      await parts.worker[Symbol.asyncDispose]()
    },
    async close() {
      parts.engine.release()
      for (const { fake } of options.engines ?? []) fake.release()
      await parts.worker[Symbol.asyncDispose]()
      parts.watching[Symbol.dispose]()
      await opened[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
  return rig
}

const PLAIN_REQUEST: SubmitRequest = {
  accountId: ACCOUNT,
  workflow: undefined,
  extraData: null,
  metadata: {},
  priority: 0,
  idempotencyKey: null,
}

async function openParts(directory: string, opened: SqliteStore, options: RigOptions & { readonly clock: Clock }) {
  const { clock } = options
  const log = silentLog
  const bus = options.bus ?? createLocalBus<LiveEvent>({ log })
  const commits: RunChange[] = []
  const jobs = recordCommits(options.wrapStore?.(opened.jobs) ?? opened.jobs, commits)
  const blobs = await openFsBlobs({ directory: join(directory, 'blobs'), blake3: await openBlake3(), log })
  const realStoreBlob = createStoreBlob({ assets: opened.assets, blobs, clock })
  const storeBlob = options.storeBlob?.(realStoreBlob) ?? realStoreBlob
  const engine = options.engine ?? createFakeEngine()
  const resident = toResidentEngine(engine, { id: 'fake', concurrency: options.worker?.workers ?? 1 })
  const member = options.recycle === undefined ? resident : toSupervised(resident, options.recycle)
  const hasLanes = options.engines !== undefined
  const laneTable = createLaneTable(options.lanes)
  const fleet = createFleet(options.engines ?? [member], {
    clock,
    log,
    hasLanes,
    lanes: laneTable,
    retryMs: 1,
    ...options.fleet,
  })
  const engines = createEngineDirectory({ fleet, lanes: laneTable, nodeId: 'rig' })
  const sealer = options.secretKey === undefined ? null : createSealer(options.secretKey)
  const extraData = createExtraDataKeeper({ sealer })
  const observer = combineObservers(options.observer ?? {})
  const shared = { store: jobs, bus, clock, extraData, observer, log }
  const reader = createJobReader(shared)
  const worker = createWorker({
    ...shared,
    onStored: reader.learn,
    fleet,
    storeBlob,
    blobs,
    newId: newUuidV4,
    pool: 'main',
    workers: fleet.concurrency,
    storageRetryMs: 1,
    pollEveryMs: 50,
    cancelGraceMs: 600_000,
    ...options.worker,
  })
  return {
    bus,
    blobs,
    engine,
    fleet,
    extraData,
    reader,
    commits,
    submitJob: createSubmit({
      ...shared,
      newJobId: createUuidV7(() => clock.now().getTime()),
      prepareWorkflow: async (_account, workflow) => ({
        text: stringifyLosslessJson(workflow as JsonObject),
        graph: readGraph(workflow as JsonObject),
        inputs: [],
        needs: engines.laneOf(readGraph(workflow as JsonObject), 'main'),
      }),
      pool: 'main',
      retentionMs: RETENTION_MS,
      retryAfterSeconds: () => 3,
      onRecording: () => worker.look(),
    }),
    cancelJob: createCancelJob(shared),
    listJobs: createListJobs(shared),
    recover: createRecover({ ...shared, findSpared: async () => [] }),
    expiry: createExpiry(shared),
    engines,
    lanes: createLaneKeeper({ ...shared, directory: engines, newId: newUuidV4 }),
    watching: createWatchJob({ reader, bus, log, tickMs: 20, queuedFreshMs: 40 }),
    worker,
  }
}

function recordCommits(store: JobStore, commits: RunChange[]): JobStore {
  return {
    ...store,
    commit(lease, change): Promise<CommitOutcome> {
      commits.push(change)
      return store.commit(lease, change)
    },
  }
}

function untilJob(
  { bus, reader }: Pick<Awaited<ReturnType<typeof openParts>>, 'bus' | 'reader'>,
  jobId: string,
  fits: (job: Job) => boolean,
): Promise<Job> {
  return new Promise((resolve, reject) => {
    const look = (version: number) =>
      reader.findSince(ACCOUNT, jobId, version).then((job) => {
        if (!fits(job)) return
        stop()
        resolve(job)
      }, fail)
    const fail = (error: unknown) => {
      stop()
      reject(error)
    }
    const stop = bus.onChanged((notice) => {
      if (notice.jobId === jobId) look(notice.version)
    })
    look(0)
  })
}

export function node(classType: string, inputs: JsonObject = {}): JsonObject {
  return { class_type: classType, inputs }
}

export const SAVE: JsonObject = { '9': node('FakeSave') }
export const GATED: JsonObject = { '1': node('FakeGate'), '9': node('FakeSave') }
export const HANG: JsonObject = { '1': node('FakeHang') }
