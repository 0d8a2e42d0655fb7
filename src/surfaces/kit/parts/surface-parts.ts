/**
 * What a surface that may be left out is given. Such a surface is found by its folder (see optional-surfaces.ts), so what it
 * can use must be described outside of it. Everything is narrow: functions of the domain, never an adapter.
 */

import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { Turns } from '../../../../lib/waiting/turns.ts'
import type { AccountUse } from '../../../domain/accounts/account-store.ts'
import type { UserFiles } from '../../../domain/accounts/user-files.ts'
import type { NamedFiles } from '../../../domain/assets/named-files.ts'
import type { Pictures } from '../../../domain/assets/pictures.ts'
import type { SignContentUrl } from '../../../domain/assets/signed-url.ts'
import type { EventBus } from '../../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../../domain/events/live-event.ts'
import type { CancelJob } from '../../../domain/jobs/end/cancel-job.ts'
import type { JobReader } from '../../../domain/jobs/read/job-reader.ts'
import type { ListJobs } from '../../../domain/jobs/read/list-jobs.ts'
import type { RunRecords } from '../../../domain/jobs/read/recorded-jobs.ts'
import type { ChooseJobId } from '../../../domain/jobs/submit/chosen-id.ts'
import type { Submit } from '../../../domain/jobs/submit/submit-job.ts'
import type { SubmitPrompt } from '../../../domain/jobs/submit/submit-prompt.ts'
import type { AccountConnections } from '../connections/account-connections.ts'
import type { PoolOf } from '../guards/deployment-address.ts'
import type { Gate } from '../guards/gate.ts'
import type { Surface } from '../surface.ts'
import type { ConsoleParts } from './console-parts.ts'
import type { PartnerParts } from './partner-parts.ts'

export interface SurfaceParts {
  readonly gate: Gate
  /** Name parts of headers and fields, first the canonical one. */
  readonly brands: readonly string[]
  readonly clock: Clock
  /** For long work, so that it does not hold other requests up. */
  readonly turns: Turns
  readonly log: Log
  /** Every caller is the one implicit account, as on the local kind: clients are distinguished by the client id that they send. */
  readonly isOneAccountForAll: boolean
  /** The surface stands beside ComfyUI's editor, on a listener where no program but that page is expected. */
  readonly isForEditor: boolean
  /** Addresses of scripts that ComfyUI's editor loads besides its own. */
  readonly editorScripts: readonly string[]
  /** Of the service. */
  readonly version: string
  readonly bus: EventBus<LiveEvent>
  readonly poolOf: PoolOf
  /** What the engines of a pool can run; left out or null: those of the common pool. */
  readonly catalog: (pool?: string | null) => NodeCatalog
  /** Asks the engines what they can run, unless that was asked a moment ago; never rejects. */
  readonly refreshLists: () => Promise<void>
  readonly jobs: {
    readonly submit: Submit
    readonly submitPrompt: SubmitPrompt
    readonly chooseId: ChooseJobId
    readonly cancel: CancelJob
    readonly reader: Pick<JobReader, 'find' | 'workflow' | 'log'>
    readonly list: ListJobs
    /** How many jobs of the account run and wait; null: the store does not know the account. */
    countJobs(accountId: string): Promise<AccountUse | null>
    /** What a run told its readers, and the account's jobs in the order of their queue. */
    readonly records: RunRecords
  }
  /** Whether the account runs as many jobs as it may at a time. */
  readonly isAtLimit: (accountId: string) => Promise<boolean>
  readonly assets: NamedFiles
  readonly pictures: Pictures
  readonly userFiles: UserFiles
  readonly content: {
    /** An address of bytes that needs no credential; null where there is none, and bytes are served instead. */
    readonly sign: SignContentUrl | null
    /** Bytes may be served from our own routes: the local kind, where no other host stores them. */
    readonly servesBytes: boolean
  }
  /** Bounds what an account holds open, on this surface and on all others together. */
  readonly accountConnections: AccountConnections
  readonly console: ConsoleParts
  readonly partner: PartnerParts
  readonly limits: {
    readonly maxBodyBytes: number
    readonly maxUploadBytes: number
  }
}

export type CreateSurface = (parts: SurfaceParts) => Surface
