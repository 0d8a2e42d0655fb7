/** The Jobs API v2 as one surface: its operations, its guards beyond the common ones, its envelope, its streams. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Clock, systemTicker, type Ticker } from '../../../lib/clock.ts'
import { createTurns, type Turns } from '../../../lib/waiting/turns.ts'
import type { Budgets } from '../../domain/credits/budgets/manage-budgets.ts'
import type { ReadStatement } from '../../domain/credits/statement.ts'
import type { ReportEndpointUsage } from '../../domain/endpoints/endpoint-usage.ts'
import type { WaitForRun } from '../../domain/endpoints/wait-for-run.ts'
import type { ListedWeight } from '../../domain/engine/weights/weight-files.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Batches } from '../../domain/jobs/batches/batches.ts'
import type { SubmitBatch } from '../../domain/jobs/batches/submit-batch.ts'
import type { BulkActions } from '../../domain/jobs/bulk/manage-bulk.ts'
import type { CancelJob } from '../../domain/jobs/end/cancel-job.ts'
import type { Queue } from '../../domain/jobs/queue/manage-queue.ts'
import type { JobReader } from '../../domain/jobs/read/job-reader.ts'
import type { ListJobs } from '../../domain/jobs/read/list-jobs.ts'
import type { WatchJob } from '../../domain/jobs/read/watch-job.ts'
import type { TrySubmit } from '../../domain/jobs/submit/dry-run.ts'
import type { Submit } from '../../domain/jobs/submit/submit-job.ts'
import type { ProviderKeys } from '../../domain/models/access/manage-provider-keys.ts'
import type { Schedules } from '../../domain/schedules/manage-schedules.ts'
import type { Webhooks } from '../../domain/webhooks/manage-webhooks.ts'
import type { ConvertFile } from '../../domain/workflows/convert/convert-file.ts'
import type { AccountConnections } from '../kit/connections/account-connections.ts'
import { type Contract, type LoadOptions, openContract } from '../kit/contracts/contract.ts'
import { createTimeCursors } from '../kit/cursor.ts'
import { mustNameNoDeployment, type PoolOf } from '../kit/guards/addresses.ts'
import type { Gate } from '../kit/guards/gate.ts'
import type { OperatorGuard } from '../kit/guards/operator-guard.ts'
import { createRouteGuard, needs, refuseShadowedMethods, sendError, serviceAddressOf } from '../kit/guards/routes.ts'
import { sendJson } from '../kit/request.ts'
import { type AnswerError, mount, type Surface } from '../kit/surface.ts'
import { EventHub } from './events/event-hub.ts'
import { type ContextOf, createReachableJobs, type JobReach, type RequestContext } from './jobs-operation.ts'
import {
  ASSETS_BY_ID,
  type AssetsByIdDeps,
  type AssetsWithoutUploadDeps,
  assetFromHash,
  assetFromPath,
  headAssetByHash,
  type PostAssetsDeps,
  postAssets,
} from './operations/assets.ts'
import { BATCHES_BY_ID, postBatch } from './operations/batches.ts'
import { BUDGET_OPERATIONS } from './operations/budgets.ts'
import { BULK_OPERATIONS } from './operations/bulk-actions.ts'
import { convertWorkflow } from './operations/convert-workflow.ts'
import { DIRECT_UPLOADS, type DirectUploadDeps } from './operations/direct-uploads.ts'
import { ENDPOINT_RUN_OPERATIONS, type EndpointRunDeps } from './operations/endpoint-runs.ts'
import { ENDPOINT_SHARE_OPERATIONS, type EndpointShareDeps } from './operations/endpoint-shares.ts'
import { getEndpointUsage } from './operations/endpoint-usage.ts'
import { ENDPOINT_OPERATIONS, type EndpointDeps } from './operations/endpoints.ts'
import { listJobs } from './operations/job-list.ts'
import { createHotPath, JOBS_BY_ID } from './operations/jobs-by-id.ts'
import { PROVIDER_KEY_OPERATIONS } from './operations/provider-keys.ts'
import { QUEUE_OPERATIONS } from './operations/queue.ts'
import { getUploadProtocol, RESUMABLE_UPLOADS, type ResumableUploadDeps } from './operations/resumable-uploads.ts'
import { SCHEDULE_OPERATIONS } from './operations/schedules.ts'
import { type Forecast, postJobs, validateJob } from './operations/submit.ts'
import { DELIVERY_OPERATIONS, WEBHOOK_OPERATIONS } from './operations/webhooks.ts'
import { listWeights, WEIGHT_UPLOADS, type WeightUploadDeps } from './operations/weights.ts'
import { API_PATH, type ContentLinks, createJobBytes, type JobLinkStyle } from './views/job-view.ts'

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
    readonly queue: Queue
    readonly watchJob: WatchJob
    readonly convertFile: ConvertFile
  }
  readonly schedules: Schedules
  readonly bulk: BulkActions
  readonly assets: AssetOperations
  readonly webhooks: Webhooks
  readonly providerKeys: ProviderKeys
  readonly budgets: Budgets
  readonly readStatement: ReadStatement
  readonly endpoints: EndpointParts
  readonly weights: WeightParts
  readonly forecast: Forecast
}

type EndpointParts = Pick<EndpointDeps, 'endpoints' | 'missingOf' | 'servedRelease'> &
  Pick<EndpointRunDeps, 'runs' | 'originOf'> &
  Pick<EndpointShareDeps, 'shares'> & {
    readonly waits: WaitForRun
    readonly reportUsage: ReportEndpointUsage
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
  openStreams(): number
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
  const hub = new EventHub({
    turns,
    watchJob: jobs.watchJob,
    accountConnections: options.accountConnections,
    isWelcome: gate.isWelcome,
    onCredentialsChanged: gate.onCredentialsChanged,
    contentLinks,
    ticker: options.ticker ?? systemTicker,
  })

  const guard = createRouteGuard<JobReach & Pick<RequestContext, 'scopes' | 'keyId' | 'endpoints'>>({
    async account(request) {
      const { accountId, scopes, keyId, endpoints } = await gate.authenticate(request.raw, 'bearer')
      return { accountId, scopes, keyId, endpoints, pool: poolOf(serviceAddressOf(request), accountId) }
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
    const ofBatches = { contextOf, batches: jobs.batches, linkStyle, openContent: options.assets.openContent }
    for (const register of BATCHES_BY_ID) register(app, ofBatches)
    validateJob(app, { ...submits, trySubmit: jobs.trySubmit, forecast: options.forecast })
    convertWorkflow(app, { contextOf, convertFile: jobs.convertFile, maxBodyBytes: options.maxBodyBytes })
    listJobs(app, { contextOf, jobBytes, turns, list: jobs.list, cursors: createTimeCursors(options.cursorSecret) })
    const byId = { contextOf, jobs: reachable, jobBytes, turns, gate, hub }
    for (const register of JOBS_BY_ID) register(app, byId)
    for (const register of QUEUE_OPERATIONS) register(app, { ...byId, check: spec.check, queue: jobs.queue })
    registerBulk(app, options, { contextOf, jobs: reachable, check: spec.check, linkStyle })
    const webhooks = { contextOf, webhooks: options.webhooks, check: spec.check }
    for (const register of [...DELIVERY_OPERATIONS, ...WEBHOOK_OPERATIONS]) register(app, webhooks)
    registerMoney(app, options, { contextOf, check: spec.check })
    const running = { jobs: reachable, list: jobs.list, jobBytes, contentLinks, linkStyle }
    registerEndpoints(app, options, { ...submits, ...running, forecast: options.forecast })
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
    hotRoute: createHotPath({ gate, peek: reachable.peek, poolOf, jobBytes, hub, answerError }),
    allowedMethods: (path) =>
      path.startsWith(gate.mountPrefix) ? spec.methodsOf(path.slice(gate.mountPrefix.length)) : [],
    drain() {
      options.endpoints.waits.close()
      return hub.close()
    },
    openStreams: () => hub.openStreams(),
  }
}

/** One thing for many jobs. */
function registerBulk(
  api: FastifyInstance,
  { bulk, assets: { openContent } }: JobsV2Options,
  deps: Omit<Parameters<(typeof BULK_OPERATIONS)[number]>[1], 'bulk' | 'openContent'>,
): void {
  for (const register of BULK_OPERATIONS) register(api, { ...deps, bulk, openContent })
}

/** Who pays, and how much at most. */
function registerMoney(
  api: FastifyInstance,
  { providerKeys, budgets, readStatement }: JobsV2Options,
  deps: { readonly contextOf: ContextOf; readonly check: Contract['check'] },
): void {
  for (const register of PROVIDER_KEY_OPERATIONS) register(api, { ...deps, providerKeys })
  for (const register of BUDGET_OPERATIONS) register(api, { ...deps, budgets, readStatement })
}

function registerEndpoints(
  api: FastifyInstance,
  { gate, cursorSecret, clock, schedules, endpoints: parts }: JobsV2Options,
  deps: Omit<EndpointRunDeps, keyof EndpointParts | 'wait' | 'cursors'>,
): void {
  const { endpoints, missingOf, servedRelease, runs, originOf, waits, reportUsage, shares } = parts
  const needsCredentials = gate.hasCredentials
  for (const register of ENDPOINT_OPERATIONS)
    register(api, { ...deps, endpoints, missingOf, servedRelease, needsCredentials })
  getEndpointUsage(api, { ...deps, endpoints, reportUsage })
  const running = { ...deps, endpoints, runs, originOf, wait: waits.wait, cursors: createTimeCursors(cursorSecret) }
  for (const register of ENDPOINT_RUN_OPERATIONS) register(api, running)
  for (const register of ENDPOINT_SHARE_OPERATIONS) register(api, { ...deps, shares, clock })
  for (const register of SCHEDULE_OPERATIONS) register(api, { ...deps, schedules })
}

// What the API says of itself.

/**
 * Says that the process answers. Asks no other part of the service, and needs no token. `upstream`: what runs the jobs; null:
 * not told.
 */
function getHealth(app: FastifyInstance, { upstream }: { readonly upstream: string | null }): void {
  const healthy = Buffer.from(JSON.stringify({ status: 'healthy', ...(upstream !== null && { upstream }) }))
  app.get(`${API_PATH}/health`, needs('public'), (_request, reply) => sendJson(reply, 200, healthy))
}

interface GetOpenapiDeps {
  readonly contextOf: ContextOf
  /** The document with this base as its only server. */
  readonly documentFor: (baseUrl: string) => string
}

/** The contract itself, with the address at which this caller reached us. */
function getOpenapi(app: FastifyInstance, { contextOf, documentFor }: GetOpenapiDeps): void {
  app.get(`${API_PATH}/openapi.json`, needs('any_scope'), (request, reply) => {
    const { origin, mountPrefix } = contextOf(request)
    return sendJson(reply, 200, documentFor(origin + mountPrefix))
  })
}

// The contract of the Jobs API v2.

const SOURCE = new URL('../../../spec/jobs-v2.openapi.json', import.meta.url)
/** Checked one by one, because each has its own refusal. */
const REQUEST_SCHEMAS = [
  ...['ExtraData', 'Priority', 'AssetFromHashRequest', 'JobWebhook', 'WebhookCreateRequest', 'WebhookUpdateRequest'],
  ...[
    'WebhookRotateRequest',
    'WebhookReplayRequest',
    'WeightUploadRequest',
    'BatchMode',
    'ReuseMode',
    'BatchChange',
    'BatchProduct',
  ],
  ...['EndpointDraftRequest', 'EndpointPublishRequest', 'EndpointVersionRequest', 'EndpointUpdateRequest'],
  ...['EndpointAliasRequest', 'EndpointSelector', 'EndpointShareRequest', 'ProviderKeyRequest'],
  ...['BudgetRequest', 'BudgetUpdateRequest', 'JobChange', 'QueuePause', 'ExpiresQueuedAfter'],
  ...['ScheduleRequest', 'ScheduleUpdateRequest', 'BulkActionRequest'],
]

export function loadJobsContract(options: LoadOptions): Contract {
  return openContract({ ...options, source: SOURCE, requestSchemas: REQUEST_SCHEMAS })
}
