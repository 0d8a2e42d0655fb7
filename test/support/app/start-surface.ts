/** The real listener with the real Jobs API over jobs in memory, on a port of its own. */

import { systemClock } from '../../../lib/clock.ts'
import { newUuidV4 } from '../../../lib/ids.ts'
import { type Log, silentLog } from '../../../lib/log.ts'
import { createLocalAuthenticate } from '../../../src/domain/accounts/caller.ts'
import { createWeightManager } from '../../../src/domain/engine/weights/manage-weights.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { createDocs } from '../../../src/surfaces/docs/index.ts'
import {
  createJobsV2,
  type JobsV2Options,
  type JobsV2Surface,
  loadJobsContract,
} from '../../../src/surfaces/jobs-v2/index.ts'
import { createAnswerError } from '../../../src/surfaces/jobs-v2/jobs-errors.ts'
import { createDirectLinks } from '../../../src/surfaces/jobs-v2/views/job-view.ts'
import { createAccountConnections } from '../../../src/surfaces/kit/connections/account-connections.ts'
import { createGate, type GateOptions } from '../../../src/surfaces/kit/guards/gate.ts'
import { DEFAULT_BRANDS } from '../../../src/surfaces/kit/request.ts'
import { createOperatorSurface } from '../../../src/surfaces/operator/index.ts'
import { openServer, type RunningServer, type ServerOptions } from '../../../src/surfaces/server.ts'
import { createMemoryJobs, type MemoryJobs } from './memory-jobs.ts'

export interface TestSurface extends AsyncDisposable {
  readonly url: string
  readonly server: RunningServer
  readonly api: JobsV2Surface
  readonly jobs: MemoryJobs
}

export interface TestSurfaceOptions {
  readonly gate?: Partial<GateOptions>
  readonly api?: Partial<Pick<JobsV2Options, 'ticker' | 'maxBodyBytes'>> & { readonly maxStreamsPerAccount?: number }
  readonly server?: Partial<ServerOptions>
  readonly notReadyReason?: string | null
  readonly degraded?: readonly string[]
  /** The static token of the local kind. */
  readonly token?: string
  readonly log?: Log
}

const GATE: Omit<GateOptions, 'hasCredentials' | 'authenticate'> = {
  brands: DEFAULT_BRANDS,
  bindHost: '127.0.0.1',
  allowedHosts: [],
  corsOrigins: [],
  publicUrl: null,
  mountPrefix: '',
  trustedProxies: [],
}

export async function startSurface(options: TestSurfaceOptions = {}): Promise<TestSurface> {
  const token = options.token ?? null
  const gate = createGate({
    ...GATE,
    hasCredentials: token !== null,
    authenticate: createLocalAuthenticate(token),
    ...options.gate,
  })
  const answerError = createAnswerError(options.log ?? silentLog)
  const spec = loadJobsContract({ brands: options.gate?.brands, needsCredentials: gate.hasCredentials })
  const jobs = createMemoryJobs()
  const api = createJobsV2({
    gate,
    spec,
    answerError,
    clock: systemClock,
    maxBodyBytes: 1024 * 1024,
    accountConnections: createAccountConnections(options.api?.maxStreamsPerAccount ?? 100),
    cursorSecret: Buffer.alloc(32, 1),
    contentLinks: createDirectLinks(systemClock),
    ...options.api,
    jobs: { ...jobs.operations, convertFile: noConversion, trySubmit: noConversion, ...noBatches, queue: noQueue },
    assets: noAssets,
    webhooks: noWebhooks,
    providerKeys: noProviderKeys,
    budgets: noBudgets,
    schedules: noSchedules,
    bulk: noBulk,
    readStatement: () => Promise.reject(new Error('no statement is read in these tests')),
    endpoints: noEndpoints,
    weights: noWeights,
    forecast: noForecast,
  })
  const operator = createOperatorSurface({
    role: 'all',
    guardMetrics: (request) => gate.authenticate(request, 'bearer'),
    readiness: {
      notReadyReason: async () => options.notReadyReason ?? null,
      degraded: async () => options.degraded ?? [],
    },
    metrics: { contentType: 'text/plain; version=0.0.4', render: async () => 'atelier_up 1\n' },
  })
  const docs = createDocs({ gate, document: spec.shown })
  const surfaces = [api, operator, docs]
  const server = await openServer({ host: '127.0.0.1', port: 0, gate, answerError, surfaces, ...options.server })
  return { url: server.url, server, api, jobs, [Symbol.asyncDispose]: server.close }
}

const noQueue: JobsV2Options['jobs']['queue'] = {
  ...{ pause: noConversion, resume: noConversion, list: noConversion, pausesOf: noConversion, change: noConversion },
  releaseDue: noConversion,
}

const noEndpoints: JobsV2Options['endpoints'] = {
  endpoints: {
    ...{ draft: noConversion, publish: noConversion, find: noConversion, list: noConversion, change: noConversion },
    ...{
      listShared: noConversion,
      moveAlias: noConversion,
      remove: noConversion,
      resolve: noConversion,
      listVersions: noConversion,
    },
    ...{ findToCall: noConversion, resolveToCall: noConversion },
    ...{ findByModel: noConversion, findByHash: noConversion, compare: noConversion },
  },
  missingOf: () => ({ classes: [], weights: [] }),
  servedRelease: () => null,
  runs: { run: noConversion, runMany: noConversion, tryRun: noConversion },
  reportUsage: noConversion,
  originOf: noConversion,
  shares: { create: noConversion, list: noConversion, revoke: noConversion },
  waits: { wait: noConversion, close() {} },
}

const noWeights = {
  listOf: () => [],
  manager: createWeightManager({
    places: () => [],
    directory: { find: noEngine, status: () => [], weights: () => [] },
    rules: { allowsPickles: false },
    newId: newUuidV4,
    clock: systemClock,
  }),
  guard: () => {},
  note: async () => {},
}

function noEngine(): never {
  throw new ServiceError('not_found', 'there is no engine with this id')
}

async function noConversion(): Promise<never> {
  throw new ServiceError('invalid_workflow', 'nothing is converted here')
}

async function unknownAsset(): Promise<never> {
  throw new ServiceError('not_found', 'there is no asset with this id')
}

const noForecast: JobsV2Options['forecast'] = {
  engines: () => [],
  availability: () => ({ classes: new Map(), weights: new Map() }),
  showsUnable: true,
  foreseeWait: async () => ({ ahead: 0, seconds: 0 }),
}

const noBatches = {
  submitBatch: noConversion,
  batches: { find: noConversion, cancel: noConversion, jobs: noConversion },
}

const noWebhook = () => Promise.reject(new ServiceError('not_found', 'there are no webhooks here'))

const noBudgets: JobsV2Options['budgets'] = {
  ...{ list: async () => [], find: noWebhook, create: noWebhook, change: noWebhook, remove: noWebhook },
}
const noSchedules: JobsV2Options['schedules'] = {
  ...{ list: async () => [], find: noWebhook, listRuns: noWebhook, upcoming: () => [], create: noWebhook },
  ...{ change: noWebhook, pause: noWebhook, resume: noWebhook, runNow: noWebhook, remove: noWebhook },
}
const noBulk: JobsV2Options['bulk'] = {
  ...{ list: async () => [], preview: noWebhook, create: noWebhook, find: noWebhook, listItems: noWebhook },
  ...{ listPart: noWebhook, stop: noWebhook },
}
const noProviderKeys: JobsV2Options['providerKeys'] = {
  ...{ list: async () => [], put: noWebhook, remove: noWebhook, test: noWebhook },
}
const noWebhooks: JobsV2Options['webhooks'] = {
  ...{ create: noWebhook, list: async () => [], find: noWebhook, change: noWebhook, rotate: noWebhook },
  ...{ remove: noWebhook, test: noWebhook, deliveries: async () => [], delivery: noWebhook, replay: noWebhook },
  ...{ replayRange: noWebhook, commonSecret: () => new Uint8Array(32) },
}

const noAssets: JobsV2Options['assets'] = {
  maxUploadBytes: 1024,
  uploadAsset: unknownAsset,
  assetFromHash: unknownAsset,
  assetFromPath: unknownAsset,
  directUploads: null,
  resumable: { create: unknownAsset, find: unknownAsset, append: unknownAsset, terminate: unknownAsset },
  hasBlob: async () => false,
  findAsset: unknownAsset,
  removeAsset: unknownAsset,
  openContent: unknownAsset,
}
