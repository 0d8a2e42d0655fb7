/** The Jobs API v2 as one surface: its operations, its guards beyond the common ones, its envelope, its streams. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Clock } from '../../../lib/clock.ts'
import { createTurns, type Turns } from '../../../lib/waiting/turns.ts'
import { systemTicker, type Ticker } from '../../../lib/waiting/uptime.ts'
import type { ListedWeight } from '../../domain/engine/weights/weight-files.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Batches } from '../../domain/jobs/batches/batches.ts'
import type { SubmitBatch } from '../../domain/jobs/batches/submit-batch.ts'
import type { CancelJob } from '../../domain/jobs/end/cancel-job.ts'
import type { JobReader } from '../../domain/jobs/read/job-reader.ts'
import type { ListJobs } from '../../domain/jobs/read/list-jobs.ts'
import type { WatchJob } from '../../domain/jobs/read/watch-job.ts'
import type { TrySubmit } from '../../domain/jobs/submit/dry-run.ts'
import type { Submit } from '../../domain/jobs/submit/submit-job.ts'
import type { Webhooks } from '../../domain/webhooks/manage-webhooks.ts'
import type { ConvertFile } from '../../domain/workflows/convert/convert-file.ts'
import type { AccountConnections } from '../kit/connections/account-connections.ts'
import type { Contract } from '../kit/contracts/contract.ts'
import { refuseShadowedMethods } from '../kit/contracts/path-methods.ts'
import { createTimeCursors } from '../kit/cursor.ts'
import { mustNameNoDeployment, type PoolOf } from '../kit/guards/deployment-address.ts'
import type { Gate } from '../kit/guards/gate.ts'
import { sendError, serviceAddressOf } from '../kit/guards/guard-hooks.ts'
import type { OperatorGuard } from '../kit/guards/operator-guard.ts'
import { createRouteGuard } from '../kit/guards/rights.ts'
import { type AnswerError, mount, type Surface } from '../kit/surface.ts'
import { createEventHub, type EventHub } from './events/event-hub.ts'
import { createHotPath } from './jobs-hot-path.ts'
import type { RequestContext } from './jobs-operation.ts'
import { getHealth, getOpenapi } from './operations/about.ts'
import { ASSETS_BY_ID, type AssetsByIdDeps } from './operations/assets-by-id.ts'
import {
  type AssetsWithoutUploadDeps,
  assetFromHash,
  assetFromPath,
  headAssetByHash,
} from './operations/assets-without-upload.ts'
import { BATCHES_BY_ID } from './operations/batches-by-id.ts'
import { convertWorkflow } from './operations/convert-workflow.ts'
import { DIRECT_UPLOADS, type DirectUploadDeps } from './operations/direct-uploads.ts'
import { listJobs } from './operations/job-list.ts'
import { JOBS_BY_ID } from './operations/jobs-by-id.ts'
import { type PostAssetsDeps, postAssets } from './operations/post-assets.ts'
import { postBatch } from './operations/post-batch.ts'
import { postJobs } from './operations/post-jobs.ts'
import { getUploadProtocol, RESUMABLE_UPLOADS, type ResumableUploadDeps } from './operations/resumable-uploads.ts'
import { validateJob } from './operations/validate-job.ts'
import { DELIVERY_OPERATIONS } from './operations/webhook-deliveries.ts'
import { WEBHOOK_OPERATIONS } from './operations/webhooks.ts'
import { WEIGHT_UPLOADS, type WeightUploadDeps } from './operations/weight-uploads.ts'
import { listWeights } from './operations/weights.ts'
import { createReachableJobs, type JobReach } from './reachable-jobs.ts'
import type { Forecast } from './views/dry-run-view.ts'
import { createJobBytes } from './views/job-bytes.ts'
import type { ContentLinks, JobLinkStyle } from './views/links.ts'

export interface JobsV2Options {
  readonly gate: Gate
  readonly spec: Contract
  readonly answerError: AnswerError
  readonly clock: Clock
  /** Shared with all other long work on this thread; left out: its own. */
  readonly turns?: Turns
  readonly ticker?: Ticker
  readonly maxBodyBytes: number
  /** Bounds what an account holds open, on this surface and on all others together. */
  readonly accountConnections: AccountConnections
  readonly cursorSecret: Uint8Array
  /** Where the bytes of assets are, for every answer that names them. */
  readonly contentLinks: ContentLinks
  /** Left out: links of jobs begin with a slash. */
  readonly linkStyle?: JobLinkStyle
  /** What the health route names as what runs the jobs; left out: nothing. */
  readonly upstream?: string | null
  /** Left out: no address names a deployment. */
  readonly poolOf?: PoolOf
  readonly jobs: {
    readonly submit: Submit
    readonly trySubmit: TrySubmit
    readonly submitBatch: SubmitBatch
    readonly batches: Batches
    readonly reader: Pick<JobReader, 'peek' | 'find' | 'workflow' | 'log'>
    readonly list: ListJobs
    readonly cancel: CancelJob
    readonly watchJob: WatchJob
    readonly convertFile: ConvertFile
  }
  readonly assets: AssetOperations
  readonly webhooks: Webhooks
  readonly weights: WeightParts
  readonly forecast: Forecast
}

interface WeightParts extends Omit<WeightUploadDeps, 'check' | 'weights'> {
  /** The weights of the engines that may run jobs of a pool. */
  readonly listOf: (pool: string) => readonly ListedWeight[]
  readonly manager: WeightUploadDeps['weights']
  /** Who may put files on engines, and remove them. */
  readonly guard: OperatorGuard
}

/** What the operations on assets need between them. */
type AssetOperations = Omit<
  PostAssetsDeps & AssetsWithoutUploadDeps & DirectUploadDeps & ResumableUploadDeps & AssetsByIdDeps,
  'contextOf' | 'contentLinks'
>

export interface JobsV2Surface extends Surface {
  openStreams: EventHub['openStreams']
}

const ASSET_OPERATIONS = [
  ...[postAssets, assetFromHash, assetFromPath, headAssetByHash],
  ...DIRECT_UPLOADS,
  ...RESUMABLE_UPLOADS,
  ...ASSETS_BY_ID,
]

export function createJobsV2(options: JobsV2Options): JobsV2Surface {
  const { gate, spec, answerError, jobs, contentLinks } = options
  const { poolOf = mustNameNoDeployment } = options
  const reachable = createReachableJobs(jobs)
  const { linkStyle = { isAbsolute: false }, turns = createTurns() } = options
  const jobBytes = createJobBytes({ contentLinks, linkStyle, clock: options.clock })
  const hub = createEventHub({
    turns,
    watchJob: jobs.watchJob,
    accountConnections: options.accountConnections,
    isWelcome: gate.isWelcome,
    onCredentialsChanged: gate.onCredentialsChanged,
    contentLinks,
    ticker: options.ticker ?? systemTicker,
  })

  const guard = createRouteGuard<JobReach & Pick<RequestContext, 'scopes' | 'keyId'>>({
    async account(request) {
      const { accountId, scopes, keyId } = await gate.authenticate(request.raw, 'bearer')
      return { accountId, scopes, keyId, pool: poolOf(serviceAddressOf(request), accountId) }
    },
    async operator(request) {
      if (serviceAddressOf(request).deploymentId !== null)
        throw new ServiceError('not_found', 'weights are changed at the address of the service, not of a deployment')
      await options.weights.guard(request.raw)
    },
  })

  function contextOf(request: FastifyRequest): RequestContext {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return { ...guard.knownOf(request), requestId: request.id, origin, mountPrefix }
  }

  function registerAll(app: FastifyInstance): void {
    guard.protect(app)
    getHealth(app, { upstream: options.upstream ?? null })
    getUploadProtocol(app, { maxBytes: options.assets.maxUploadBytes })
    const submits = { contextOf, check: spec.check, maxBodyBytes: options.maxBodyBytes }
    postJobs(app, { ...submits, jobBytes, submit: jobs.submit })
    postBatch(app, { ...submits, turns, linkStyle, submitBatch: jobs.submitBatch })
    const { batches } = jobs
    const ofBatches = { contextOf, batches, linkStyle, openContent: options.assets.openContent }
    for (const register of BATCHES_BY_ID) register(app, ofBatches)
    validateJob(app, { ...submits, trySubmit: jobs.trySubmit, forecast: options.forecast })
    convertWorkflow(app, { contextOf, convertFile: jobs.convertFile, maxBodyBytes: options.maxBodyBytes })
    listJobs(app, { contextOf, jobBytes, turns, list: jobs.list, cursors: createTimeCursors(options.cursorSecret) })
    const byId = { contextOf, jobs: reachable, jobBytes, turns, gate, hub }
    for (const register of JOBS_BY_ID) register(app, byId)
    const webhooks = { contextOf, webhooks: options.webhooks, check: spec.check }
    for (const register of [...DELIVERY_OPERATIONS, ...WEBHOOK_OPERATIONS]) register(app, webhooks)
    listWeights(app, { contextOf, weightsOf: options.weights.listOf, cursorSecret: options.cursorSecret })
    getOpenapi(app, { contextOf, documentFor: spec.textFor })
    const assets = { contextOf, contentLinks, ...options.assets }
    for (const register of ASSET_OPERATIONS) register(app, assets)
    // Weights are everybody's, so changing them is the right of whoever runs the service, not of an account.
    const { manager, note } = options.weights
    for (const register of WEIGHT_UPLOADS) register(app, { weights: manager, note, check: spec.check })
    refuseShadowedMethods(app, spec, 'any_scope')
  }

  return {
    name: 'jobs-v2',
    register(app) {
      app.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
      mount(app, gate.mountPrefix, registerAll)
    },
    hotRoutes: [createHotPath({ gate, peek: reachable.peek, poolOf, jobBytes, hub, answerError })],
    allowedMethods: (path) =>
      path.startsWith(gate.mountPrefix) ? spec.methodsOf(path.slice(gate.mountPrefix.length)) : [],
    drain: hub.close,
    openStreams: hub.openStreams,
  }
}
