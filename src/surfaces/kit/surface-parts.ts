/**
 * What a surface that may be left out is given. Such a surface is found by its folder (see optional-surfaces.ts), so what it
 * can use must be described outside of it. Everything is narrow: functions of the domain, never an adapter.
 */

import type { Readable, Writable } from 'node:stream'
import type { NodeCatalog } from '../../../engine/graph/node-catalog.ts'
import type { Clock, Ticker } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { Micros } from '../../../lib/text/usd.ts'
import type { Turns } from '../../../lib/waiting/turns.ts'
import type { AccountUse } from '../../domain/accounts/account-store.ts'
import type { Caller } from '../../domain/accounts/caller.ts'
import type { OwnKeys } from '../../domain/accounts/keys/own-keys.ts'
import type { SignIn } from '../../domain/accounts/sign-in.ts'
import type { UserFiles } from '../../domain/accounts/user-files.ts'
import type { OpenContent } from '../../domain/assets/asset-content.ts'
import type { BlobStore } from '../../domain/assets/blob-store.ts'
import type { AddToLibrary } from '../../domain/assets/library/add-to-library.ts'
import type { FileImports } from '../../domain/assets/library/import-files.ts'
import type { Library } from '../../domain/assets/library/library.ts'
import type { NamedFiles } from '../../domain/assets/named-files.ts'
import type { Pictures } from '../../domain/assets/pictures.ts'
import type { SignContentUrl } from '../../domain/assets/signed-url.ts'
import type { PoolPrice } from '../../domain/credits/prices.ts'
import type { ReportUsage } from '../../domain/credits/usage-report.ts'
import type { DeploymentStore } from '../../domain/deployments/deployment-store.ts'
import type { ReleasedDeployments } from '../../domain/deployments/released/released-deployments.ts'
import type { ListCompute } from '../../domain/deployments/released/releases.ts'
import type { Reach } from '../../domain/endpoints/reach.ts'
import type { RunEndpoint } from '../../domain/endpoints/run-endpoint.ts'
import type { Shares } from '../../domain/endpoints/shares/manage-shares.ts'
import type { SharedRuns } from '../../domain/endpoints/shares/shared-runs.ts'
import type { WaitForRun } from '../../domain/endpoints/wait-for-run.ts'
import type { ListedEngine } from '../../domain/engine/directory/engine-directory.ts'
import type { EngineStatus } from '../../domain/engine/fleet/engine-status.ts'
import type { ManageBlobs } from '../../domain/environments/manage-blobs.ts'
import type { ManageBuilds } from '../../domain/environments/manage-builds.ts'
import type { ResolveReferences } from '../../domain/environments/resolve.ts'
import type { EventBus } from '../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../domain/events/live-event.ts'
import type { CancelJob } from '../../domain/jobs/end/cancel-job.ts'
import type { Queue } from '../../domain/jobs/queue/manage-queue.ts'
import type { GpuUseStore, ReportGpuUse } from '../../domain/jobs/read/gpu-report.ts'
import type { JobReader } from '../../domain/jobs/read/job-reader.ts'
import type { ListJobs } from '../../domain/jobs/read/list-jobs.ts'
import type { RunRecords } from '../../domain/jobs/read/recorded-jobs.ts'
import type { LiveRuns, WatchJob } from '../../domain/jobs/read/watch-job.ts'
import type { ChooseJobId } from '../../domain/jobs/submit/chosen-id.ts'
import type { JobOrigin } from '../../domain/jobs/submit/job-origin.ts'
import type { RerunJob } from '../../domain/jobs/submit/rerun-job.ts'
import type { Submit } from '../../domain/jobs/submit/submit-job.ts'
import type { SubmitPrompt } from '../../domain/jobs/submit/submit-prompt.ts'
import type { SummaryStore } from '../../domain/jobs/summaries/summary-store.ts'
import type { EstimateWait } from '../../domain/jobs/waits/wait-estimates.ts'
import type { Access } from '../../domain/models/access/model-access.ts'
import type { CallStore } from '../../domain/models/calls/call-store.ts'
import type { RunModel } from '../../domain/models/calls/run-call.ts'
import type { Model } from '../../domain/models/catalog/model.ts'
import type { PartnerNodes } from '../../domain/models/partner/partner-nodes.ts'
import type { PartnerUploads } from '../../domain/models/partner/partner-uploads.ts'
import type { RunTokens } from '../../domain/models/partner/run-tokens.ts'
import type { TellAs } from '../../domain/webhooks/webhook.ts'
import type { AccountConnections } from './connections/account-connections.ts'
import type { PoolOf } from './guards/addresses.ts'
import type { Gate } from './guards/gate.ts'
import type { Surface } from './surface.ts'

export interface SurfaceParts {
  readonly deploy: DeployParts
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
    readonly rerun: RerunJob
    readonly submitPrompt: SubmitPrompt
    readonly chooseId: ChooseJobId
    readonly cancel: CancelJob
    readonly queue: Pick<Queue, 'pausesOf'>
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
  readonly library: LibraryParts
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
  readonly chat: ChatParts
  readonly endpoints: EndpointParts
  readonly builds: BuilderParts
  readonly limits: {
    readonly maxBodyBytes: number
    readonly maxUploadBytes: number
  }
}

export type CreateSurface = (parts: SurfaceParts) => Surface

/** The files of an account as a library. */
interface LibraryParts {
  readonly library: Library
  readonly add: AddToLibrary
  readonly imports: Pick<FileImports, 'look' | 'begin' | 'take' | 'find' | 'cancel' | 'onMoved'>
  /** Ids that callers choose for their files. */
  readonly chooseId: ChooseJobId
}

// What the console is given beside the parts of every optional surface: who is signed in, and what this service offers.

/** What the page shows of the account that is signed in. */
export interface AccountStanding {
  readonly id: string
  readonly name: string
  /** null: the local kind has none. */
  readonly tier: string | null
  /** False: its subscription is not active, and whatever it submits is refused. */
  readonly mayRun: boolean
  readonly running: number
  readonly queued: number
  /** null: as many as there are workers. */
  readonly maxRunning: number | null
  readonly maxQueued: number
  /** What a job of the common pool costs; null: nothing. */
  readonly jobPrice: PoolPrice | null
  /** null: the account is not metered. */
  readonly credit: { readonly available: Micros; readonly held: Micros } | null
}

/** By class and by weights file, the engines that have it. */
export interface EngineAvailability {
  readonly classes: ReadonlyMap<string, readonly string[]>
  readonly weights: ReadonlyMap<string, readonly string[]>
}

export interface ModelParts {
  readonly access: Pick<Access, 'catalogFor' | 'whyNot'>
  readonly calls: Pick<CallStore, 'list'>
}

export interface ConsoleParts {
  readonly kind: 'local' | 'cloud' | 'serverless'
  readonly signIn: SignIn
  /** Whoever may use the service is its operator: the local kind without an admin token. */
  readonly isEveryoneOperator: boolean
  readonly hasAdmin: boolean
  readonly hasRouter: boolean
  readonly mayBuild: (accountId: string) => boolean
  readonly mayDeploy: (accountId: string) => boolean
  readonly standingOf: (caller: Caller) => Promise<AccountStanding>
  readonly reportUsage: ReportUsage
  readonly reportGpuUse: ReportGpuUse
  readonly gpuOfJob: GpuUseStore['ofJob']
  /** null: the local kind, which has none. */
  readonly keys: OwnKeys | null
  readonly models: ModelParts
  readonly summaries: Pick<SummaryStore, 'suggest' | 'search' | 'findMany' | 'findDetails' | 'findOutputs' | 'count'>
  readonly estimateWait: EstimateWait
  readonly watchJob: WatchJob
  readonly openContent: OpenContent
  readonly liveRuns: Pick<LiveRuns, 'read' | 'follow'>
  /** Those that may run jobs of a pool. */
  readonly engines: (pool: string) => readonly ListedEngine[]
  readonly availability: () => EngineAvailability
  readonly cursorSecret: Uint8Array
  /** Hosts other than ours that addresses of outputs lead to. */
  readonly contentOrigins: readonly string[]
}

/** What the tools for agents are given when they are served over standard input and output instead of HTTP. */
export interface AgentConnection {
  /** The service that the tools work on. */
  readonly server: { readonly baseUrl: string; readonly token: string | null }
  readonly version: string
  /** Files below these may be uploaded by their path; none: no file of this machine may. */
  readonly folders: readonly string[]
  readonly pictures: Pictures
  readonly input: Readable
  readonly output: Writable
  readonly signal: AbortSignal
  readonly warn: (message: string) => void
}

export type ServeAgent = (connection: AgentConnection) => Promise<void>

/** What deployments on releases are given beside the parts of every optional surface. */
interface DeployParts {
  readonly released: ReleasedDeployments
  readonly listCompute: ListCompute
  readonly countPools: DeploymentStore['count']
  /** Those of a copy. */
  readonly engines: (pool: string) => readonly EngineStatus[]
  /** What an engine of a copy printed lately; null: none of this process. */
  readonly logOf: (pool: string) => { readonly text: string; readonly at: Date } | null
  /** null: deployments are reached by path only. */
  readonly domain: string | null
}

/** What other services' ways to call endpoints are given beside the parts of every optional surface. */
interface EndpointParts {
  readonly endpoints: Reach
  readonly runs: RunEndpoint
  readonly waits: Pick<WaitForRun, 'wait'>
  readonly watchJob: WatchJob
  /** What is kept of how a job was submitted; null: there is no such job. */
  readonly originOf: (accountId: string, jobId: string) => Promise<JobOrigin | null>
  /** What signs the messages about jobs that bring an address along. */
  readonly webhookSecret: (accountId: string) => Uint8Array
  /** Messages to addresses that came with this form are told so. */
  readonly tellAs: (form: string, tell: TellAs) => void
  readonly ticker: Pick<Ticker, 'after' | 'every'>
  /** Links to pages on which whoever has one runs an endpoint. */
  readonly shares: Pick<Shares, 'open'>
  readonly sharedRuns: SharedRuns
}

/** What builds are given beside the parts of every optional surface. */
interface BuilderParts {
  readonly builds: ManageBuilds
  readonly blobs: ManageBlobs
  readonly resolve: ResolveReferences
  /** A path under which the bytes of an uploaded file can be read without a credential. */
  readonly signRead: (blobId: string, expiresAt: Date) => string
}

/** What OpenAI's way to call models of the catalogue is given beside the parts of every optional surface. */
interface ChatParts {
  readonly access: Pick<Access, 'open' | 'choose' | 'catalogFor' | 'whyNot' | 'isCatalogued'>
  readonly runModel: RunModel
  /** What a result names by an address, ours or the provider's; null: it cannot be had. */
  readonly readMedia: (
    url: string,
    of: { readonly model: Model; readonly accountId: string; readonly isOwnKey: boolean },
  ) => Promise<Buffer | null>
  readonly blobs: Pick<BlobStore, 'open'>
  readonly maxBodyBytes: number
  /** How long a connection may be silent while its call runs. */
  readonly holdMs: number
}

/** What the paths of ComfyUI's partner nodes are given beside the parts of every optional surface. */
export interface PartnerParts {
  readonly nodes: PartnerNodes
  readonly runs: Pick<RunTokens, 'isToken' | 'open'>
  readonly uploads: PartnerUploads
  readonly blobs: Pick<BlobStore, 'open'>
  readonly maxBodyBytes: number
  /** How long a connection may be silent while its call runs. */
  readonly holdMs: number
}
