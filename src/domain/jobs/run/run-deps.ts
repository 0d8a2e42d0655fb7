/** What a run is given, and what it reports when it is over. */

import type { Readable } from 'node:stream'
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import type { Log } from '../../../../lib/log.ts'
import type { Tracer } from '../../../../lib/tracing/tracer.ts'
import type { Semaphore } from '../../../../lib/waiting/semaphore.ts'
import type { Turns } from '../../../../lib/waiting/turns.ts'
import type { BlobStore, ByteRange, PutOptions, StoredBlob } from '../../assets/blob-store.ts'
import type { EngineSlot } from '../../engine/fleet/engine-slot.ts'
import type { FindWeights } from '../../engine/weights/missing-weights.ts'
import type { EventBus } from '../../events/event-bus.ts'
import type { LiveEvent } from '../../events/live-event.ts'
import type { StorageWatch } from '../claim/storage-watch.ts'
import type { Job } from '../job.ts'
import type { JobStore, Lease, ReturnedLease, RunStore } from '../job-store.ts'
import type { JobObserver } from '../observer.ts'
import type { OutputCheck } from '../outputs/check-outputs.ts'
import type { ExtraDataKeeper } from '../submit/extra-data-keeper.ts'
import type { EngineVerdicts } from '../submit/submit-refusals.ts'
import type { CommitPace } from './committer.ts'
import type { NodeTimes } from './node-times.ts'

/**
 * What a run tells, and what it is told. Where another process takes its writes, that one tells of changes and of work as it takes
 * them, and these two are left out.
 */
export interface RunBus
  extends Pick<EventBus<LiveEvent>, 'publishLive' | 'onWork' | 'onChanged' | 'onGap'>,
    Partial<Pick<EventBus<LiveEvent>, 'publishChanged' | 'publishWork'>> {}

/** Stores an output before its job refers to it. Whose it is matters where the bytes go through another process. */
export type StoreOutput = (
  source: AsyncIterable<Uint8Array>,
  options: PutOptions & { readonly lease: Lease },
) => Promise<StoredBlob>

/** Where the files lie that graphs name. `lease`: of the run that reads one. */
export interface RunInputs extends Pick<BlobStore, 'localPath' | 'borrow'> {
  open(hash: string, range: ByteRange | undefined, lease: Lease): Promise<Readable>
}

/** Submits of this process that wait for an engine's check of their graph. */
interface RunVerdicts extends Pick<EngineVerdicts, 'hold' | 'asked' | 'settled' | 'refused'> {
  readonly withdraw: JobStore['withdraw']
}

interface RunOutputCheck extends Pick<OutputCheck, 'covers' | 'keyOf' | 'judge'> {
  /** The same as `storeBlob`, for bytes that get their record hours later. */
  readonly storeHeld: StoreOutput
}

export interface OutputRules {
  /** Files of the `temp` folder count as outputs too. */
  readonly previewOutputs: boolean
}

export interface RunLimits {
  readonly maxAttempts: number
  /** For a job of this account; null: no limit. */
  maxRunMs(accountId: string): number | null
  /** How long an interrupted engine may take to answer before it is given up. */
  readonly cancelGraceMs: number
  /** How long outputs may take after the engine has finished. */
  readonly maxIngestMs: number
  readonly maxOutputs: number
  readonly maxOutputBytes: number
}

export interface RunDeps {
  readonly store: Pick<RunStore, 'commit' | 'reserveOutputNumbers'>
  /** How long beyond its lease a run goes on while the store is away: whoever took its job meanwhile is told by the fence. */
  readonly outageGraceMs: number
  readonly storeBlob: StoreOutput
  /** Asks before outputs are handed out; left out: nobody is asked here. */
  readonly outputCheck?: RunOutputCheck
  /** Told of storage that is full; left out: nobody looks when it has room again. */
  readonly storageWatch?: Pick<StorageWatch, 'full'>
  /** How many bytes the account may still store. */
  readonly storageLeft?: (accountId: string) => Promise<number>
  readonly blobs: RunInputs
  readonly bus: RunBus
  readonly extraData: Pick<ExtraDataKeeper, 'take' | 'forget'>
  readonly clock: Clock
  readonly log: Log
  readonly newId: NewId
  readonly observer: JobObserver
  readonly limits: RunLimits
  readonly pace: CommitPace
  readonly outputRules: OutputRules
  readonly ingestLimit: Semaphore
  /** Throws ServiceError where the account may not run anything now, though its job was accepted; left out: everybody may. */
  readonly mustBeActive?: (accountId: string) => void
  readonly turns: Turns
  /** What nodes took in earlier runs; left out: progress counts them. */
  readonly nodeTimes?: NodeTimes
  /** Asks the store whether the lease still stands, and tells the run if a cancel came or the lease is lost. */
  checkLease(lease: Lease): Promise<void>
  /** The job goes back to the queue. */
  giveBack(lease: ReturnedLease): Promise<void>
  /** Absent: no submit waits for the engine's check of its graph. */
  readonly verdicts?: RunVerdicts
  /** Where weights are that a run did not find; absent: nobody here knows. */
  readonly findWeights?: FindWeights
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
  /** Called with the job as the store has it now, before the change is published. */
  readonly onStored?: (job: Job) => void
}

/** The engine that was chosen for a job. */
export interface AssignedEngine {
  readonly slot: EngineSlot
  /** The engine has computed everything: its slot is given on. */
  onComputed(): void
}

export interface RunEnd {
  readonly end: 'finished' | 'requeued' | 'discarded'
  /** The storage had no room for what the run made. */
  readonly isShortOfRoom: boolean
  /** The engine ignored the interrupt and may still be running. */
  readonly isStuck: boolean
  /** The code of the failure that the engine reported; null when there was none. */
  readonly failureCode: string | null
  readonly hasSucceeded: boolean
}
