/**
 * The store as joined workers have it: claims that wait for work, leases, and what runs write. Whatever a worker names lies under
 * its own key, moments are the service's own, and changes are told to everybody here, as they are written.
 */
import { BoundedMap } from '../../../lib/bounded-map.ts'
import { type Clock, uptimeMs } from '../../../lib/clock.ts'
import { uuidFromText } from '../../../lib/ids.ts'
import { type JsonObject, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { createDoorbell } from '../../../lib/waiting/sleep.ts'
import type { AssetStore } from '../assets/asset-store.ts'
import type { EngineDirectory } from '../engine/directory/engine-directory.ts'
import type { DistantEngine } from '../engine/fleet/lane-offers.ts'
import { invalidField, isStoreAway, ServiceError } from '../errors.ts'
import type { EventBus } from '../events/event-bus.ts'
import { CREDIT_MS, MAX_OVERTAKES } from '../jobs/claim/worker-options.ts'
import type { Job, Output } from '../jobs/job.ts'
import type { Claim, CommitOutcome, JobStore, Lease, ReturnedLease, RunChange } from '../jobs/job-store.ts'
import type { JobObserver } from '../jobs/observer.ts'
import type { GpuUse } from '../jobs/run/gpu-use.ts'
import type { ExtraDataKeeper } from '../jobs/submit/extra-data-keeper.ts'
import { announceTouched } from '../jobs/sweeps/announce-touched.ts'
import { type JobStatus, statesBeforeEnd } from '../jobs/transitions.ts'
import { type CheckEndDeps, createCheckEnd } from './check-end.ts'
import {
  type HeldClaim,
  type HeldClaims,
  toEngineId,
  toEngineName,
  toLease,
  toLeaseId,
  toNodeId,
} from './held-claims.ts'
import type { OutputReceipts } from './output-receipts.ts'
import { type ClaimFields, type ClaimTerms, writeClaim } from './wire/claim-wire.ts'
import { type ChangeFields, readChange } from './wire/run-wire.ts'
import type { WorkerIdentity } from './worker-keys.ts'
import type { WorkerReleases } from './worker-releases.ts'

interface WorkerClaim {
  readonly pool: string
  readonly instanceId: string
  /** Made by the worker: asked again after a lost answer, the same one finds its job. */
  readonly leaseId: string
  readonly engines: readonly Omit<DistantEngine, 'catalog'>[]
  readonly waitMs: number
  /** Aborted when the worker is gone. */
  readonly signal: AbortSignal
}

export interface WorkerRuns {
  /** null: there was no work within the time. Throws forbidden for a pool that the key does not name. */
  claim(worker: WorkerIdentity, request: WorkerClaim): Promise<ClaimFields | null>
  /** Those that still stand. */
  renew(
    worker: WorkerIdentity,
    leases: readonly Lease[],
  ): Promise<readonly { readonly jobId: string; readonly status: JobStatus }[]>
  /** Throws forbidden for an output whose bytes were not stored under the lease, invalid_field for an end that no run may write. */
  commit(worker: WorkerIdentity, lease: Lease, change: ChangeFields): Promise<CommitOutcome>
  /** A lease whose claim was never answered may be named alone. */
  release(worker: WorkerIdentity, leases: readonly NamedLease[]): Promise<number>
  reserveOutputNumbers(worker: WorkerIdentity, lease: Lease, names: OutputNumbers): Promise<number>
}

export interface NamedLease extends Omit<ReturnedLease, 'jobId'> {
  readonly jobId: string | null
}

export interface OutputNumbers {
  readonly folder: string
  readonly prefix: string
  readonly count: number
}

export interface WorkerRunsDeps {
  readonly store: Pick<JobStore, 'claim' | 'findClaim' | 'renew' | 'commit' | 'release' | 'reserveOutputNumbers'>
  readonly held: HeldClaims
  readonly releases: Pick<WorkerReleases, 'mayServe'>
  readonly assets: Pick<AssetStore, 'find'>
  readonly receipts: Pick<OutputReceipts, 'mustHold'>
  readonly directory: Pick<EngineDirectory, 'offersOf' | 'isServedBeside' | 'noteRun'>
  readonly bus: Pick<EventBus<never>, 'publishChanged' | 'publishWork' | 'onWork' | 'onChanged'>
  readonly extraData: Pick<ExtraDataKeeper, 'take' | 'forget'>
  readonly observer: JobObserver
  readonly clock: Clock
  readonly leaseMs: number
  /** For a job of this account; null: no limit. */
  maxRunMs(accountId: string): number | null
  storageLeft(accountId: string): Promise<number>
  /** Throws ServiceError where the account may not run anything now. */
  readonly mustBeActive?: (accountId: string) => void
  /** Called with the job as the store has it now, before the change is published. */
  readonly onStored: (job: Job) => void
  /** Asks before outputs are handed out; null: nobody is asked. */
  readonly outputCheck: CheckEndDeps['outputCheck'] | null
}

// A notice may be lost, and lanes and engines are learnt within seconds.
const LOOK_MS = 2000
const MAX_EARLIER = 500
// Of an announcement that all processes hear, each worker makes its own moment.
const REMOTE_WORK_MS = 50

export function createWorkerRuns(deps: WorkerRunsDeps): WorkerRuns {
  const { store, held, bus, extraData, observer, clock, leaseMs } = deps

  async function giveBack(leases: readonly ReturnedLease[]): Promise<number> {
    const touched = await store.release(leases, clock.now())
    for (const { leaseId } of leases) held.forget(leaseId)
    announceTouched({ bus, extraData, observer }, touched, null)
    return touched.length
  }

  return {
    claim: createClaim(deps, giveBack),
    commit: createCommit(deps),
    renew(worker, leases) {
      const until = new Date(clock.now().getTime() + leaseMs)
      return store.renew(
        leases.map((lease) => toLease(worker, lease)),
        until,
      )
    },
    async release(worker, named) {
      const leases: ReturnedLease[] = []
      for (const lease of named) {
        const leaseId = toLeaseId(worker, lease.leaseId)
        const jobId = lease.jobId ?? (await store.findClaim(leaseId))?.job.id
        if (jobId !== undefined) leases.push({ ...lease, jobId, leaseId })
      }
      return giveBack(leases)
    },
    async reserveOutputNumbers(worker, lease, { folder, prefix, count }) {
      const { job } = await held.mustFind(toLease(worker, lease))
      return store.reserveOutputNumbers(job.accountId, folder, prefix, count)
    },
  }
}

type GiveBack = (leases: readonly ReturnedLease[]) => Promise<number>

function createClaim(deps: WorkerRunsDeps, giveBack: GiveBack): WorkerRuns['claim'] {
  const { held, directory, bus, extraData, observer, clock } = deps
  const wait = createWait(deps)

  /** Credentials of a job are a secret of its account: a machine elsewhere gets them only where the operator said so. */
  async function termsOf(worker: WorkerIdentity, instanceId: string, claim: Claim): Promise<ClaimTerms> {
    const { job, needs, needsExtraData, sealedExtraData } = claim
    const credentials = needsExtraData ? extraData.take(job.id, sealedExtraData) : null
    const areWithheld = credentials !== null && !worker.hasCredentials
    const left = await deps.storageLeft(job.accountId)
    return {
      needsCredentials: needsExtraData && !areWithheld,
      credentials: credentials === null || areWithheld ? null : stringifyLosslessJson(credentials as JsonObject),
      maxRunMs: deps.maxRunMs(job.accountId),
      storageLeftBytes: Number.isFinite(left) ? left : null,
      refusal: refusalOf(job.accountId),
      // What its own engines can do, it knows better.
      hasOther: directory.isServedBeside(toNodeId(worker, instanceId), needs),
      holdsOutputs: deps.outputCheck?.covers(job.metadata) === true,
    }
  }

  function refusalOf(accountId: string): ClaimTerms['refusal'] {
    try {
      deps.mustBeActive?.(accountId)
      return null
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      return { refusal: error.refusal, message: error.message }
    }
  }

  return async (worker, request) => {
    if (!(await deps.releases.mayServe(worker, request.instanceId, request.pool)))
      throw new ServiceError('forbidden', 'this key may take no jobs of this pool')
    const claim = await wait(worker, request)
    if (claim === null) return null
    // Whoever asked has gone: the job must not wait until its lease has run out.
    if (request.signal.aborted) {
      await giveBack([{ jobId: claim.job.id, leaseId: claim.leaseId }])
      return null
    }
    const { job } = claim
    held.learn(claim)
    deps.onStored(job)
    const startedAtMs = (job.startedAt ?? clock.now()).getTime()
    observer.started({ job, queueMs: Math.max(0, startedAtMs - job.createdAt.getTime()) })
    bus.publishChanged({ jobId: job.id, accountId: job.accountId, version: job.version, move: 'taken' })
    return writeClaim(claim, toEngineName(worker, claim.engineId), await termsOf(worker, request.instanceId, claim))
  }
}

/** Waits for a job; null: there was none within the time. */
function createWait({ store, directory, bus, clock, leaseMs }: WorkerRunsDeps) {
  /** By job id: what its newest claim told of earlier attempts. */
  const earlier = new BoundedMap<string, Pick<Claim, 'leaseId' | 'earlierOutputs'>>(MAX_EARLIER)

  async function claimOnce(worker: WorkerIdentity, request: WorkerClaim): Promise<Claim | null> {
    const engines = directory.offersOf(
      request.engines.map((engine) => ({ ...engine, id: toEngineId(worker, engine.id) })),
    )
    if (engines.length === 0) return null
    const now = clock.now()
    return store.claim({
      pool: request.pool,
      workerId: toNodeId(worker, request.instanceId),
      leaseId: toLeaseId(worker, request.leaseId),
      leaseUntil: new Date(now.getTime() + leaseMs),
      now,
      engines,
      maxOvertakes: MAX_OVERTAKES,
      creditMs: CREDIT_MS,
    })
  }

  /** What the lease got before, and nobody was told: its time begins anew, because only now somebody hears of it. */
  async function refind(leaseId: string): Promise<Claim | null> {
    const claim = await store.findClaim(leaseId)
    if (claim === null) return null
    const until = new Date(clock.now().getTime() + leaseMs)
    const held = await store.renew([{ jobId: claim.job.id, leaseId }], until)
    if (held.length === 0) return null
    const told = earlier.get(claim.job.id)
    return { ...claim, earlierOutputs: told?.leaseId === leaseId ? told.earlierOutputs : [] }
  }

  async function untilClaimed(worker: WorkerIdentity, request: WorkerClaim): Promise<Claim | null> {
    const { pool, waitMs, signal } = request
    const untilMs = uptimeMs() + waitMs
    const bell = createDoorbell()
    let soon: NodeJS.Timeout | null = null
    const stop = bus.onWork((of, isRemote) => {
      if (of !== undefined && of !== pool) return
      if (!isRemote) bell.ring()
      else soon ??= setTimeout(() => bell.ring(), Math.random() * REMOTE_WORK_MS)
    })
    try {
      while (!signal.aborted) {
        bell.forget()
        soon = null
        const claim = await claimOnce(worker, request)
        const leftMs = untilMs - uptimeMs()
        if (claim !== null || leftMs <= 0) return claim
        await bell.wait(Math.min(leftMs, LOOK_MS * (1 + Math.random())), signal)
      }
      return null
    } finally {
      stop()
      if (soon !== null) clearTimeout(soon)
    }
  }

  return async (worker: WorkerIdentity, request: WorkerClaim): Promise<Claim | null> => {
    const claim = (await refind(toLeaseId(worker, request.leaseId))) ?? (await untilClaimed(worker, request))
    // The store tells them once, and the answer may be lost.
    if (claim !== null && claim.earlierOutputs.length > 0) {
      const { leaseId, earlierOutputs } = claim
      earlier.set(claim.job.id, { leaseId, earlierOutputs })
    }
    return claim
  }
}

function createCommit(deps: WorkerRunsDeps): WorkerRuns['commit'] {
  const { store, held, receipts, directory, bus, extraData, observer, clock, outputCheck } = deps
  const checkEnd = outputCheck === null ? null : createCheckEnd({ ...deps, outputCheck })

  /**
   * A worker makes ids for its outputs, and might name a record of somebody else. So what is stored is made of its lease and its id:
   * the same for a repeated write, and nobody else's. Only outputs of earlier attempts keep the ids that they have.
   */
  async function withOwnIds(change: RunChange, { leaseId, jobId }: Lease, claim: HeldClaim | null): Promise<RunChange> {
    if (change.outputs === undefined) return change
    const outputs: Output[] = []
    for (const output of change.outputs) {
      const isRepeated = claim !== null && claim.job.attempt > 1 && (await isOf(claim.job, output.assetId))
      outputs.push({
        ...output,
        assetId: isRepeated ? output.assetId : uuidFromText(`${leaseId} ${jobId} ${output.assetId}`),
      })
    }
    return { ...change, outputs }
  }

  function tellUse({ job, engineId }: HeldClaim, gpu: GpuUse): void {
    observer.computed({ accountId: job.accountId, pool: job.pool, engineId, gpu })
  }

  async function isOf({ id, accountId }: Job, assetId: string): Promise<boolean> {
    return (await deps.assets.find(accountId, assetId, clock.now()))?.jobId === id
  }

  return async (worker, namedLease, fields) => {
    const lease = toLease(worker, namedLease)
    for (const { hash, size_bytes: sizeBytes, receipt } of fields.outputs ?? []) {
      receipts.mustHold(lease.leaseId, { hash, sizeBytes }, receipt)
    }
    if (fields.finish !== undefined) mustBeEnd(fields.finish)
    const now = clock.now()
    // A repeated end finds no job any more; then the store says what became of it.
    const claim = await held.mustFind(lease).catch((error: unknown) => {
      if (checkEnd !== null && isStoreAway(error)) throw error
      return null
    })
    const named = await withOwnIds(readChange(fields, now), lease, claim)
    const change = checkEnd === null ? named : await checkEnd(lease, claim, named)
    const outcome = await store.commit(lease, change)
    if (outcome.outcome === 'lost') {
      held.forget(lease.leaseId)
      return outcome
    }
    const job = outcome.job ?? claim?.job
    if (job === undefined) return outcome
    const { id: jobId, accountId } = job
    for (const { type, sizeBytes } of change.outputs ?? []) observer.outputStored({ jobId, type, sizeBytes })
    if (change.finish === undefined) {
      const isDetail = change.outputs === undefined
      bus.publishChanged({ jobId, accountId, version: outcome.version, ...(isDetail && { isDetail }) })
      return outcome
    }
    held.forget(lease.leaseId)
    extraData.forget(jobId)
    if (outcome.job !== undefined) deps.onStored(outcome.job)
    bus.publishChanged({ jobId, accountId, version: outcome.version, move: 'ended' })
    bus.publishWork()
    // It was counted when it was written.
    if (claim === null) return outcome
    const executionMs = job.startedAt === null ? null : now.getTime() - job.startedAt.getTime()
    const { status, error } = change.finish
    if (change.finish.gpu != null) tellUse(claim, change.finish.gpu)
    if (status === 'succeeded' && executionMs !== null) directory.noteRun(claim.needs, Math.max(0, executionMs))
    observer.finished({ jobId, accountId, status, code: error?.code ?? null, executionMs })
    return status === fields.finish?.status ? outcome : { ...outcome, error }
  }
}

/** The moves are those of the table, whatever a worker says; and a job has an error exactly when it failed. */
function mustBeEnd({ status, from, error }: NonNullable<ChangeFields['finish']>): void {
  const wrong = from.find((state) => !statesBeforeEnd(status).includes(state))
  if (wrong !== undefined)
    throw invalidField('change.finish.from', `names ${wrong}, from which no job becomes ${status}`)
  if (status === 'failed' && error === null) throw invalidField('change.finish.error', 'must say why the job failed')
  if (status !== 'failed' && error !== null)
    throw invalidField('change.finish.error', `must be null for a job that is ${status}`)
}
