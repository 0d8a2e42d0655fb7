/** Endpoints over the store, the engines' catalogs and the jobs. */
import { readGraph } from '../../engine/graph/graph-json.ts'
import { type Clock, systemTicker } from '../../lib/clock.ts'
import { parseLosslessJson } from '../../lib/json/lossless-json.ts'
import type { Turns } from '../../lib/waiting/turns.ts'
import { DEFAULT_POOL } from '../domain/deployments/deployment.ts'
import type { Deployments } from '../domain/deployments/deployments.ts'
import { createDraftEndpoint } from '../domain/endpoints/draft-endpoint.ts'
import type { Endpoint, EndpointVersion } from '../domain/endpoints/endpoint.ts'
import { createReportEndpointUsage } from '../domain/endpoints/endpoint-usage.ts'
import { createLendFiles } from '../domain/endpoints/lend-files.ts'
import { createEndpointCalls } from '../domain/endpoints/local/endpoint-calls.ts'
import { createEndpointModels } from '../domain/endpoints/local/endpoint-models.ts'
import { createLocalProvider } from '../domain/endpoints/local/local-provider.ts'
import { createServiceEndpoints, LOCAL } from '../domain/endpoints/local/service-endpoints.ts'
import { createEndpoints, type MissingOfVersion } from '../domain/endpoints/manage-endpoints.ts'
import { createPropose } from '../domain/endpoints/propose/propose.ts'
import { createOwnReach } from '../domain/endpoints/reach.ts'
import { type FindServedRelease, findServed, lacksRelease } from '../domain/endpoints/release.ts'
import { createRunEndpoint } from '../domain/endpoints/run-endpoint.ts'
import { createWaitForRun } from '../domain/endpoints/wait-for-run.ts'
import { readCopyPool } from '../domain/engine/copy-pool.ts'
import type { EngineDirectory } from '../domain/engine/directory/engine-directory.ts'
import type { Engine } from '../domain/engine/engine-port.ts'
import type { AccessRules } from '../domain/models/access/model-access.ts'
import type { Model } from '../domain/models/catalog/model.ts'
import { type Catalog, createCatalog } from '../domain/models/catalog/model-catalog.ts'
import type { Store } from '../domain/store.ts'
import { findMissing } from '../domain/workflows/needs.ts'
import type { AssetActions } from './asset-actions.ts'
import type { JobActions } from './jobs/job-actions.ts'
import type { SharedAccounts } from './open-accounts.ts'
import type { OpenedModeration } from './open-moderation.ts'
import type { OpenedBlobs } from './storage/open-blobs.ts'

interface EndpointParts {
  readonly store: Pick<Store, 'assets' | 'endpoints' | 'runLimits' | 'summaries' | 'keys'>
  readonly directory: Pick<EngineDirectory, 'catalog'>
  readonly jobs: Pick<JobActions, 'submit' | 'submitBatch' | 'trySubmit' | 'watching' | 'reader' | 'cancel'>
  readonly assets: Pick<AssetActions, 'takeFiles'>
  readonly opened: Pick<OpenedBlobs, 'blobs'>
  /** The engine in this process; null: there is none. */
  readonly engine: Engine | null
  /** null: there are none. */
  readonly deployments: Pick<Deployments, 'mayUse' | 'current'> | null
  /** null: the local kind, where nothing costs anything. */
  readonly shared: Pick<SharedAccounts, 'priceFor' | 'accounts'> | null
  readonly moderation: Pick<OpenedModeration, 'runCheck' | 'asksHooks'>
  readonly turns: Turns
  readonly clock: Clock
}

/** The catalogue, and who may use what of it. */
interface OfferedModels {
  readonly models: () => Catalog
  readonly rules: Pick<AccessRules, 'mayUse'>
}

const RUN_AS_ENDPOINT =
  "runs are checked by the operator's hooks first, and a model of this kind runs at once: call it as an endpoint (POST /api/v2/endpoints/{name}/runs)"
const NO_MODELS = createCatalog([], new Date(0))

export type OpenedEndpoints = ReturnType<typeof openEndpoints>

export function openEndpoints({ store, directory, jobs, assets, turns, clock, ...parts }: EndpointParts) {
  const { random } = Math
  // Of a deployment on a release: what the engines of that release have.
  const catalog = (pool: string | null) => {
    const asked = pool ?? DEFAULT_POOL
    return directory.catalog(parts.deployments?.current(asked) ?? asked)
  }
  const draft = createDraftEndpoint({ propose: createPropose({ catalog, clock, random, turns }), catalog, turns })
  // The router runs endpoints as models, and offers models as endpoints, so one of the two is connected later.
  let offered: OfferedModels = { models: () => NO_MODELS, rules: { mayUse: () => false } }
  const service = createServiceEndpoints({
    models: () => offered.models(),
    rules: { mayUse: (accountId, model) => offered.rules.mayUse(accountId, model) },
    nodes: () => catalog(null),
  })
  const mayUse = (accountId: string, id: string) => parts.deployments?.mayUse(accountId, id) === true
  const servedRelease: FindServedRelease = (accountId, id) => {
    const pool = mayUse(accountId, id) ? parts.deployments?.current(id) : undefined
    return pool === undefined ? null : (readCopyPool(pool)?.releaseVersion ?? null)
  }
  const { shared } = parts
  const endpoints = createEndpoints({
    ...{ store: store.endpoints, service, clock, draft, mayUse, servedRelease },
    ...(shared !== null && { isActive: (accountId) => shared.accounts.find(accountId)?.status === 'active' }),
  })
  const { submit, submitBatch, trySubmit } = jobs
  const runs = createRunEndpoint({
    ...{ endpoints, submit, submitBatch, trySubmit, random, mayUse, servedRelease, takeFiles: assets.takeFiles },
    check: parts.moderation.runCheck,
    lendFiles: createLendFiles({ assets: store.assets, catalog, clock }),
  })
  const waiting = { watchJob: jobs.watching.watchJob, ticker: systemTicker }
  // Bounded by the calls that the account may have.
  const waitsOfCalls = createWaitForRun({ ...waiting, maxPerAccount: Number.POSITIVE_INFINITY })
  const calls = createEndpointCalls({
    ...{ runs, endpoints, turns, clock, blobs: parts.opened.blobs, keys: store.keys, jobs: jobs.reader },
    ...{ cancel: jobs.cancel, wait: waitsOfCalls.wait },
  })
  const provider = createLocalProvider({ engine: parts.engine, calls })
  const priceOf = (accountId: string, pool: string | null) =>
    parts.shared?.priceFor(accountId, pool ?? DEFAULT_POOL) ?? null
  return {
    endpoints,
    runs,
    provider,
    asModels: createEndpointModels({
      endpoints,
      own: createOwnReach(store.endpoints),
      provider: () => provider,
      priceOf,
    }),
    /** A workflow of the catalogue runs at once, so no hook would be asked about it; as an endpoint it is a job. */
    whyWithheld: ({ provider: name }: Pick<Model, 'provider'>): string | null =>
      name === LOCAL && parts.moderation.asksHooks ? RUN_AS_ENDPOINT : null,
    offer(models: OfferedModels): void {
      offered = models
    },
    reportUsage: createReportEndpointUsage({ store: store.endpoints, runLimits: store.runLimits, clock }),
    waits: createWaitForRun(waiting),
    servedRelease,
    missingOf(endpoint: Endpoint, { graph, required: { release } }: EndpointVersion): MissingOfVersion {
      const missing = findMissing(readGraph(parseLosslessJson(graph)), catalog(endpoint.settings.deployment))
      const served = release === undefined ? null : findServed(endpoint, release, servedRelease)
      return lacksRelease(release, served) ? { ...missing, release: { ...release, served } } : missing
    },
    originOf: async (accountId: string, jobId: string) =>
      (await store.summaries.findDetails(accountId, jobId, clock.now()))?.origin ?? null,
  }
}
