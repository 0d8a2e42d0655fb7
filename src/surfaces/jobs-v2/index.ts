/** The Jobs API v2 as one surface: its operations, its guards beyond the common ones, its envelope, its streams. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Clock } from '../../../lib/clock.ts'
import { createTurns, type Turns } from '../../../lib/turns.ts'
import { mustHaveScope } from '../../domain/accounts/scopes.ts'
import type { CancelJob } from '../../domain/jobs/end/cancel-job.ts'
import type { JobReader } from '../../domain/jobs/read/job-reader.ts'
import type { ListJobs } from '../../domain/jobs/read/list-jobs.ts'
import type { WatchJob } from '../../domain/jobs/read/watch-job.ts'
import type { Submit } from '../../domain/jobs/submit/submit-job.ts'
import { createTimeCursors } from '../kit/cursor.ts'
import { mustNameNoDeployment } from '../kit/deployment-address.ts'
import type { Gate } from '../kit/gate.ts'
import { placeOf, sendError } from '../kit/guard-hooks.ts'
import type { HeldPlaces } from '../kit/held-places.ts'
import { refuseShadowedMethods } from '../kit/path-methods.ts'
import type { Spec } from '../kit/spec.ts'
import type { AnswerError, Surface } from '../kit/surface.ts'
import { systemTicker, type Ticker } from '../kit/ticker.ts'
import type { ContentLinks } from './content-links.ts'
import { createEventHub, type EventHub } from './event-hub.ts'
import { createHotPath } from './hot-path.ts'
import { createJobBytes } from './job-bytes.ts'
import type { JobLinkStyle } from './links.ts'
import type { OperationKit, RequestContext } from './operation.ts'
import { type AssetFromHashDeps, assetFromHash } from './operations/asset-from-hash.ts'
import { type AssetFromPathDeps, assetFromPath } from './operations/asset-from-path.ts'
import { cancelJob } from './operations/cancel-job.ts'
import { type DeleteAssetDeps, deleteAsset } from './operations/delete-asset.ts'
import { type GetAssetDeps, getAsset } from './operations/get-asset.ts'
import { type GetAssetContentDeps, getAssetContent } from './operations/get-asset-content.ts'
import { getHealth } from './operations/get-health.ts'
import { getJob } from './operations/get-job.ts'
import { getJobEvents } from './operations/get-job-events.ts'
import { getJobLogs } from './operations/get-job-logs.ts'
import { getJobWorkflow } from './operations/get-job-workflow.ts'
import { getOpenapi } from './operations/get-openapi.ts'
import { type HeadAssetByHashDeps, headAssetByHash } from './operations/head-asset-by-hash.ts'
import { listJobs } from './operations/list-jobs.ts'
import { type PostAssetsDeps, postAssets } from './operations/post-assets.ts'
import { postJobs } from './operations/post-jobs.ts'
import type { PoolOf } from './pool-of.ts'
import { scopeOf } from './scope-of.ts'
import { createScopedJobs, type JobScope } from './scoped-jobs.ts'

export interface JobsV2Options {
  readonly gate: Gate
  readonly spec: Spec
  readonly answerError: AnswerError
  readonly clock: Clock
  /** Shared with all other long work on this thread; left out: its own. */
  readonly turns?: Turns
  readonly ticker?: Ticker
  readonly maxBodyBytes: number
  /** What event streams of an account have in common with whatever else it holds open. */
  readonly places: HeldPlaces
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
    readonly reader: Pick<JobReader, 'peek' | 'find' | 'workflow' | 'log'>
    readonly list: ListJobs
    readonly cancel: CancelJob
    readonly watchJob: WatchJob
  }
  readonly assets: AssetOperations
}

/** What the operations on assets need between them. */
type AssetOperations = Omit<
  PostAssetsDeps &
    AssetFromHashDeps &
    AssetFromPathDeps &
    HeadAssetByHashDeps &
    GetAssetDeps &
    DeleteAssetDeps &
    GetAssetContentDeps,
  'kit' | 'contentLinks'
>

export interface JobsV2Surface extends Surface {
  openStreams: EventHub['openStreams']
}

const ASSET_OPERATIONS = [
  postAssets,
  assetFromHash,
  assetFromPath,
  headAssetByHash,
  getAsset,
  deleteAsset,
  getAssetContent,
]

const SCOPE = Symbol('scope')
type Known = FastifyRequest & { [SCOPE]?: JobScope & Pick<RequestContext, 'scopes'> }

export function createJobsV2(options: JobsV2Options): JobsV2Surface {
  const { gate, spec, answerError, jobs, contentLinks } = options
  const { poolOf = mustNameNoDeployment } = options
  const scoped = createScopedJobs(jobs)
  const { linkStyle = { isAbsolute: false }, turns = createTurns() } = options
  const jobBytes = createJobBytes({ contentLinks, linkStyle, clock: options.clock })
  const hub = createEventHub({
    turns,
    watchJob: jobs.watchJob,
    places: options.places,
    isWelcome: gate.isWelcome,
    contentLinks,
    ticker: options.ticker ?? systemTicker,
  })
  const kit: OperationKit = { clock: options.clock, contextOf }

  function registerGuarded(app: FastifyInstance): void {
    app.decorateRequest(SCOPE, undefined)
    app.addHook('onRequest', async (request) => {
      const caller = await gate.authenticate(request.raw, 'bearer')
      const scope = scopeOf(request)
      if (scope !== null) mustHaveScope(caller, scope)
      const { accountId, scopes } = caller
      ;(request as Known)[SCOPE] = { accountId, scopes, pool: poolOf(placeOf(request), accountId) }
    })
    postJobs(app, { kit, jobBytes, submit: jobs.submit, check: spec.check, maxBodyBytes: options.maxBodyBytes })
    listJobs(app, { kit, jobBytes, turns, list: jobs.list, cursors: createTimeCursors(options.cursorSecret) })
    getJob(app, { kit, jobBytes, turns, find: scoped.find })
    getJobWorkflow(app, { kit, findWorkflow: scoped.workflow })
    getJobLogs(app, { kit, findLog: scoped.log })
    getJobEvents(app, { kit, gate, hub })
    cancelJob(app, { kit, jobBytes, cancel: scoped.cancel })
    getOpenapi(app, { kit, specFor: spec.textFor })
    const assets = { kit, contentLinks, ...options.assets }
    for (const register of ASSET_OPERATIONS) register(app, assets)
    refuseShadowedMethods(app, spec.paths, spec.methodsOf)
  }

  return {
    name: 'jobs-v2',
    register(app) {
      app.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
      app.register(
        (mounted, _options, done) => {
          getHealth(mounted, { upstream: options.upstream ?? null })
          mounted.register((guarded, _none, ready) => {
            registerGuarded(guarded)
            ready()
          })
          done()
        },
        { prefix: gate.mountPrefix },
      )
    },
    hotRoutes: [createHotPath({ gate, peek: scoped.peek, poolOf, jobBytes, hub, answerError })],
    allowedMethods: (path) =>
      path.startsWith(gate.mountPrefix) ? spec.methodsOf(path.slice(gate.mountPrefix.length)) : [],
    drain: hub.close,
    openStreams: hub.openStreams,
  }
}

function contextOf(request: FastifyRequest): RequestContext {
  const { origin, mountPrefix } = placeOf(request)
  const scope = (request as Known)[SCOPE]
  if (scope === undefined) throw new Error('this route is not behind the guards that know the caller')
  return { ...scope, requestId: request.id, origin, mountPrefix }
}
