/** Endpoints over the store, the engines' catalogs and the jobs. */
import { readGraph } from '../../engine/graph/graph-json.ts'
import { type Clock, systemTicker } from '../../lib/clock.ts'
import { parseLosslessJson } from '../../lib/json/lossless-json.ts'
import type { Turns } from '../../lib/waiting/turns.ts'
import { DEFAULT_POOL } from '../domain/deployments/deployment.ts'
import { createDraftEndpoint } from '../domain/endpoints/draft-endpoint.ts'
import type { Endpoint, EndpointVersion } from '../domain/endpoints/endpoint.ts'
import { createEndpoints } from '../domain/endpoints/manage-endpoints.ts'
import { createPropose } from '../domain/endpoints/propose/propose.ts'
import { createRunEndpoint } from '../domain/endpoints/run-endpoint.ts'
import { createWaitForRun } from '../domain/endpoints/wait-for-run.ts'
import type { EngineDirectory } from '../domain/engine/directory/engine-directory.ts'
import type { Store } from '../domain/store.ts'
import { findMissing } from '../domain/workflows/needs.ts'
import type { AssetActions } from './asset-actions.ts'
import type { JobActions } from './jobs/job-actions.ts'

interface EndpointParts {
  readonly store: Pick<Store, 'endpoints' | 'summaries'>
  readonly directory: Pick<EngineDirectory, 'catalog'>
  readonly jobs: Pick<JobActions, 'submit' | 'submitBatch' | 'watching'>
  readonly assets: Pick<AssetActions, 'takeFiles'>
  readonly turns: Turns
  readonly clock: Clock
}

export type OpenedEndpoints = ReturnType<typeof openEndpoints>

export function openEndpoints({ store, directory, jobs, assets, turns, clock }: EndpointParts) {
  const { random } = Math
  const catalog = (pool: string | null) => directory.catalog(pool ?? DEFAULT_POOL)
  const draft = createDraftEndpoint(createPropose({ catalog, clock, random, turns }))
  const endpoints = createEndpoints({ store: store.endpoints, clock, draft })
  const { submit, submitBatch } = jobs
  return {
    endpoints,
    runs: createRunEndpoint({ endpoints, submit, submitBatch, takeFiles: assets.takeFiles, random }),
    waits: createWaitForRun({ watchJob: jobs.watching.watchJob, ticker: systemTicker }),
    missingOf: ({ settings }: Endpoint, { graph }: EndpointVersion) =>
      findMissing(readGraph(parseLosslessJson(graph)), catalog(settings.deployment)),
    originOf: async (accountId: string, jobId: string) =>
      (await store.summaries.findDetails(accountId, jobId, clock.now()))?.origin ?? null,
  }
}
