/** Links under which visitors run endpoints of an account. */
import type { Clock } from '../../lib/clock.ts'
import { DEFAULT_POOL } from '../domain/deployments/deployment.ts'
import { toJobPrice } from '../domain/endpoints/endpoint.ts'
import type { Endpoints } from '../domain/endpoints/manage-endpoints.ts'
import { createShares } from '../domain/endpoints/shares/manage-shares.ts'
import { createSharedRunTokens } from '../domain/endpoints/shares/run-tokens.ts'
import { createSharedRuns } from '../domain/endpoints/shares/shared-runs.ts'
import { createVisitors } from '../domain/endpoints/shares/visitors.ts'
import { ServiceError } from '../domain/errors.ts'
import type { Store } from '../domain/store.ts'
import type { JobActions } from './jobs/job-actions.ts'
import type { SharedAccounts } from './open-accounts.ts'
import type { Router } from './router/open-router.ts'

interface ShareParts {
  readonly store: Pick<Store, 'shares' | 'runLimits' | 'keys' | 'audited'>
  readonly jobs: Pick<JobActions, 'reader'>
  /** null: the local kind. */
  readonly shared: Pick<SharedAccounts, 'accounts' | 'priceFor'> | null
  /** What its secret seals, nobody can guess. */
  readonly router: Pick<Router, 'cursorSecret'>
  readonly clock: Clock
}

export type OpenedShares = ReturnType<typeof openShares>

type SharedParts = Pick<Parameters<typeof createSharedRuns>[0], 'endpoints' | 'runs' | 'originOf'> & {
  readonly endpoints: Endpoints
}

export function openShares(
  { store, jobs, shared, router, clock }: ShareParts,
  { endpoints, runs, originOf }: SharedParts,
) {
  const { find } = jobs.reader
  const shares = createShares({
    ...{ store: store.shares, limits: store.runLimits, endpoints, clock },
    audited: (entry) => store.audited(entry),
    isCharged({ accountId, settings: { price, deployment } }) {
      const usual = shared?.priceFor(accountId, deployment ?? DEFAULT_POOL) ?? null
      return (price === null ? usual : toJobPrice(price)) !== null
    },
    ...(shared !== null && { isActive: (accountId) => shared.accounts.find(accountId)?.status === 'active' }),
  })
  const statusOf = async (accountId: string, jobId: string) => {
    try {
      return (await find(accountId, jobId)).status
    } catch (error) {
      if (error instanceof ServiceError && error.refusal === 'not_found') return null
      throw error
    }
  }
  const sharedRuns = createSharedRuns({
    ...{ endpoints, runs, originOf, clock, limits: store.runLimits, findJob: find },
    findKey: (accountId, key) => store.keys.findKey(accountId, key, clock.now()),
    visitors: createVisitors({ clock, statusOf }),
    tokens: createSharedRunTokens(router.cursorSecret),
  })
  return { shares, sharedRuns }
}
