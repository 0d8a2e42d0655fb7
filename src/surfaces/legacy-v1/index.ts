/**
 * The Legacy v1 API as one surface: every route under `/api/x` and bare `/x`, and the WebSocket. It may be left out: deleting
 * this folder leaves a service without it. Jobs, assets and accounts are those of the other surfaces; only the words differ.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { systemTicker } from '../../../lib/clock.ts'
import { createUuidV7 } from '../../../lib/ids.ts'
import type { Caller } from '../../domain/accounts/caller.ts'
import type { Job } from '../../domain/jobs/job.ts'
import { mustNameNoDeployment } from '../kit/guards/addresses.ts'
import {
  compileMethods,
  createRouteGuard,
  type MethodsOf,
  type PathMethods,
  refuseShadowedMethods,
  sendError,
  serviceAddressOf,
} from '../kit/guards/routes.ts'
import { pathOf } from '../kit/request.ts'
import { mount, type Surface, type SurfaceGauge } from '../kit/surface.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import { AnnouncedFiles } from './files/announced-files.ts'
import { createAnswerError, createAnswerPromptError } from './legacy-errors.ts'
import { type Api, createApi, deprecationHeaders, type OperationDeps } from './legacy-operation.ts'
import { accountStanding } from './operations/account-standing.ts'
import { assetById, assetContent, countAssetTags, listAssets } from './operations/asset-library.ts'
import { cancelJobs, getJob, getJobAssets, getJobStatus, listJobs } from './operations/jobs.ts'
import { getModelPreview, getModels, getViewMetadata } from './operations/models.ts'
import { importAssets, postAsset } from './operations/new-assets.ts'
import { getObjectInfo } from './operations/object-info.ts'
import { getPrompt, isPromptSubmit, postPrompt } from './operations/prompts.ts'
import { getHistory, getHistoryV2, getQueue, postHistory, postInterrupt, postQueue } from './operations/queue.ts'
import { savedWorkflows } from './operations/saved-workflows.ts'
import {
  fixedAnswers,
  getFeatures,
  getOpenapi,
  getSystemStats,
  getWs,
  internalFiles,
  loadContract,
  logs,
} from './operations/server-info.ts'
import { getMaskLayers, postUploadImage, postUploadMask } from './operations/uploads.ts'
import { userdata, userSettings, users } from './operations/userdata.ts'
import { getVideoMetadata, getView } from './operations/view.ts'
import { createExtraDataMemory } from './prompts/prompt-extra-data.ts'
import { importMessage } from './ws/asset-news.ts'
import { createJobClients, type JobClients, toClientId } from './ws/client-news.ts'
import { createLogReaders } from './ws/log-news.ts'
import { Sockets, type SocketsOptions } from './ws/sockets.ts'

export function createSurface(parts: SurfaceParts): Surface {
  const { gate, bus, clock } = parts
  const answerError = createAnswerError(parts.log)
  const answerPromptError = createAnswerPromptError(answerError)
  const features = toFeatures(parts)
  const setDeprecation = (request: FastifyRequest, reply: FastifyReply) =>
    reply.headers(deprecationHeaders(pathOf(request.raw.url ?? ''), gate.mountPrefix))
  const guard = createRouteGuard<Caller>({
    before(request, reply) {
      setDeprecation(request, reply)
      mustNameNoDeployment(serviceAddressOf(request))
    },
    account: (request) => gate.authenticate(request.raw, 'api_key'),
  })
  const announcedFiles = new AnnouncedFiles({ bus, countJobs: parts.jobs.countJobs })
  const deps: OperationDeps = {
    ...parts,
    jobClients: createJobClients({ lookUp: (accountId, jobId) => findClient(parts, accountId, jobId) }),
    extraData: createExtraDataMemory(),
    announcedFiles,
    features,
    logReaders: createLogReaders(),
    newPromptId: createUuidV7(() => clock.now().getTime()),
    tell: (accountId, message) => sockets.tell(accountId, message),
    callerOf: guard.knownOf,
    accountOf: (request) => guard.knownOf(request).accountId,
  }
  const { jobClients, logReaders } = deps
  const sockets = openSockets(parts, { answerError, jobClients, logReaders, features: () => features })
  const stopImportNews = parts.library.imports.onMoved((task) => sockets.tell(task.accountId, importMessage(task)))
  let methodsOf: MethodsOf = () => []

  function register(app: FastifyInstance): void {
    app.setErrorHandler((error, request, reply) => {
      setDeprecation(request, reply)
      const answer = isPromptSubmit(request) ? answerPromptError : answerError
      return sendError(reply, answer(error, request.id))
    })
    guard.protect(app)
    const api = createApi(app)
    registerRoutes(api, deps)
    const paths = toPaths(api.routes)
    methodsOf = compileMethods(paths)
    refuseShadowedMethods(app, { paths, methodsOf }, 'any_scope')
  }

  const allowedMethods: MethodsOf = (path) =>
    path.startsWith(gate.mountPrefix) ? methodsOf(path.slice(gate.mountPrefix.length)) : []

  return {
    name: 'legacy-v1',
    register: (app) => mount(app, gate.mountPrefix, register),
    reference: {
      path: '/docs/legacy-v1',
      title: 'Legacy v1 API',
      document: loadContract(parts).shown,
      examplePath: '/api/features',
    },
    allowedMethods,
    answerErrorFor: (path) => (allowedMethods(path).length > 0 ? answerError : null),
    ...sockets.part,
    drain() {
      stopImportNews()
      sockets.part.drain()
      announcedFiles[Symbol.dispose]()
    },
  }
}

/** From the registered routes, `METHOD /path/:parameter`, because the contract does not list the bare addresses. */
function toPaths(routes: readonly string[]): PathMethods[] {
  const paths = new Map<string, string[]>()
  for (const route of routes) {
    const [method, url] = route.split(' ')
    const template = url.replaceAll(/:(\w+)/g, '{$1}')
    paths.set(template, [...(paths.get(template) ?? []), method])
  }
  return [...paths].map(([template, methods]) => ({ template, methods }))
}

/** What the server can do, as reported over HTTP and the socket. */
function toFeatures({ limits }: SurfaceParts): object {
  return {
    supports_preview_metadata: true,
    supports_model_type_tags: true,
    max_upload_size: limits.maxUploadBytes,
    extension: {},
    node_replacements: true,
    // The editor then reads its lists of files from the history and the folders of models.
    assets: false,
    // Every caller is already signed in, and there is no account at another service.
    show_signin_button: false,
  }
}

async function findClient({ jobs }: SurfaceParts, accountId: string, jobId: string): Promise<string | null> {
  const record = await jobs.records.find(accountId, jobId)
  return toClientId(record?.submission?.clientId ?? null)
}

// Every route of the surface.

const OPERATIONS = [
  postPrompt,
  getPrompt,
  getQueue,
  postQueue,
  postInterrupt,
  getHistory,
  postHistory,
  getHistoryV2,
  listJobs,
  getJob,
  getJobAssets,
  cancelJobs,
  getJobStatus,
  getObjectInfo,
  postUploadImage,
  postUploadMask,
  getMaskLayers,
  getView,
  getViewMetadata,
  getVideoMetadata,
  getWs,
  getSystemStats,
  getFeatures,
  getModels,
  getModelPreview,
  listAssets,
  countAssetTags,
  assetById,
  assetContent,
  postAsset,
  importAssets,
  userSettings,
  users,
  userdata,
  savedWorkflows,
  accountStanding,
  logs,
  internalFiles,
  fixedAnswers,
  getOpenapi,
]

export function registerRoutes(api: Api, deps: OperationDeps): void {
  for (const register of OPERATIONS) register(api, deps)
}

/** The sockets with the parts of the service that they need, and their figures for the operator. */
interface OpenSocketsOptions extends Pick<SocketsOptions, 'answerError' | 'features' | 'logReaders'> {
  readonly jobClients: JobClients
}

/** The members of a surface that the sockets provide. */
type SocketPart = Required<Pick<Surface, 'upgrades' | 'gauges' | 'drain'>>

function openSockets(
  parts: SurfaceParts,
  { answerError, features, jobClients, logReaders }: OpenSocketsOptions,
): { readonly part: SocketPart; readonly tell: Sockets['tell'] } {
  const { gate, jobs, bus, clock, log } = parts
  const deprecation = deprecationHeaders('/ws', gate.mountPrefix)
  const sockets = new Sockets({
    gate,
    answerError: (error, requestId) => {
      const answer = answerError(error, requestId)
      return { ...answer, headers: { ...answer.headers, ...deprecation } }
    },
    bus,
    clock,
    ticker: systemTicker,
    log,
    countJobs: jobs.countJobs,
    findJob: jobs.reader.find,
    listRunning: (accountId) => listRunning(jobs, accountId),
    listNewest: (accountId) => listNewest(jobs, accountId),
    jobClients,
    // ComfyUI sends the events of a run only to the client that submitted it.
    isPerClient: parts.isOneAccountForAll || parts.isForEditor,
    isOneAtATime: parts.isForEditor,
    logReaders,
    features,
    answerHeaders: Object.entries(deprecation).flat(),
    accountConnections: parts.accountConnections,
  })
  const part = { upgrades: sockets.upgrades, gauges: gaugesOf(sockets), drain: () => sockets.close() }
  return { part, tell: (accountId, message) => sockets.tell(accountId, message) }
}

// As many as one look reads. An account with more has news of the others soon.
const MAX_RUNNING = 320

async function listRunning({ list }: SurfaceParts['jobs'], accountId: string): Promise<readonly string[]> {
  const statuses = ['running', 'canceling'] as const
  const { jobs } = await list(accountId, { statuses, metadata: {}, limit: MAX_RUNNING, cursor: null })
  return jobs.map(({ id }) => id)
}

async function listNewest({ list }: SurfaceParts['jobs'], accountId: string): Promise<readonly Job[]> {
  return (await list(accountId, { statuses: null, metadata: {}, limit: MAX_RUNNING, cursor: null })).jobs
}

function gaugesOf(sockets: Pick<Sockets, 'stats'>): readonly SurfaceGauge[] {
  return [
    { name: 'atelier_sockets', help: 'Open sockets of the Legacy v1 API.', read: () => sockets.stats().open },
    {
      name: 'atelier_socket_previews_dropped',
      help: 'Previews left out for slow readers since the start.',
      read: () => sockets.stats().previewsDropped,
    },
    {
      name: 'atelier_socket_readers_closed',
      help: 'Sockets closed since the start because their reader was too slow or silent.',
      read: () => sockets.stats().readersGivenUp,
    },
  ]
}
