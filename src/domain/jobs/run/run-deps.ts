/** What a run is given, and what it reports when it is over. */

import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import type { Log } from '../../../../lib/log.ts'
import type { Semaphore } from '../../../../lib/waiting/semaphore.ts'
import type { Turns } from '../../../../lib/waiting/turns.ts'
import type { BlobStore, StoreBlob } from '../../assets/blob-store.ts'
import type { EngineSlot } from '../../engine/fleet/engine-slot.ts'
import type { EventBus } from '../../events/event-bus.ts'
import type { LiveEvent } from '../../events/live-event.ts'
import type { Job } from '../job.ts'
import type { JobStore, Lease, ReturnedLease } from '../job-store.ts'
import type { JobObserver } from '../observer.ts'
import type { OutputRules } from '../outputs/output-draft.ts'
import type { EngineVerdicts } from '../submit/engine-verdicts.ts'
import type { ExtraDataKeeper } from '../submit/extra-data-keeper.ts'
import type { CommitPace } from './committer.ts'

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
  readonly store: Pick<JobStore, 'commit' | 'withdraw' | 'reserveOutputNumbers'>
  /** How long beyond its lease a run goes on while the store is away: whoever took its job meanwhile is told by the fence. */
  readonly outageGraceMs: number
  readonly storeBlob: StoreBlob
  /** How many bytes the account may still store. */
  readonly storageLeft?: (accountId: string) => Promise<number>
  readonly blobs: Pick<BlobStore, 'open' | 'localPath' | 'borrow'>
  readonly bus: EventBus<LiveEvent>
  readonly extraData: ExtraDataKeeper
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
  /** Asks the store whether the lease still stands, and tells the run if a cancel came or the lease is lost. */
  checkLease(lease: Lease): Promise<void>
  /** The job goes back to the queue. */
  giveBack(lease: ReturnedLease): Promise<void>
  /** Absent: no submit waits for the engine's check of its graph. */
  readonly verdicts?: EngineVerdicts
  /** Called with the job as the store has it now, before the change is published. */
  readonly onStored?: (job: Job) => void
}

/** The engine that was chosen for a job. */
export interface AssignedEngine {
  readonly slot: EngineSlot
  /** Whether another engine could take the job over. */
  hasOther(): boolean
}

export interface RunEnd {
  readonly end: 'finished' | 'requeued' | 'discarded'
  /** The storage had no room for what the run made. */
  readonly isShortOfRoom: boolean
  /** The engine ignored the interrupt and may still be running. */
  readonly isStuck: boolean
  /** The code of the failure that the engine reported; null when there was none. */
  readonly failureCode: string | null
}
