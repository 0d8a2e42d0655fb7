/** Builds the admin API. The running service uses it, and so do the administrative commands when no service holds the data folder. */

import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { RunningPools } from './compose/engines/open-deployments.ts'
import type { SharedAccounts } from './compose/open-accounts.ts'
import type { Config } from './config/config.ts'
import { createReportUsage } from './domain/credits/usage-report.ts'
import type { Deployments } from './domain/deployments/deployments.ts'
import type { PoolSignals } from './domain/deployments/pool-signals.ts'
import { createNodeReport, type OwnNode } from './domain/service-nodes/node-report.ts'
import type { Store } from './domain/store.ts'
import { createAdminAnswerError } from './surfaces/admin/admin-errors.ts'
import { type AdminOptions, createAdmin } from './surfaces/admin/index.ts'
import type { SharedParts } from './surfaces/admin/register-operations.ts'
import type { Surface } from './surfaces/kit/surface.ts'

export interface AdminSurfaceParts
  extends Pick<AdminOptions, 'guard' | 'needsCredentials' | 'actorOf' | 'operations' | 'drain'> {
  readonly store: Store
  /** null: the local kind. */
  readonly shared: SharedAccounts | null
  readonly deployments: Deployments | null
  /** null: this process runs no jobs. */
  readonly workersOf: RunningPools['workers']['count'] | null
  /** The process that answers; null: it is none of the service. */
  readonly own: OwnNode | null
  readonly poolSignals: PoolSignals
  readonly openStreams: () => number
  /** How many event streams and sockets of an account are open in this process. */
  readonly heldBy: (accountId: string) => number
  readonly version: string
  readonly clock: Clock
  readonly log: Log
}

export function createAdminSurface(config: Config, parts: AdminSurfaceParts): Surface {
  const { store, clock, openStreams } = parts
  const { loads } = store.deployments
  const workersOf = parts.workersOf ?? (() => 0)
  return createAdmin({
    guard: parts.guard,
    needsCredentials: parts.needsCredentials,
    actorOf: parts.actorOf,
    operations: parts.operations,
    ...(parts.drain !== undefined && { drain: parts.drain }),
    answerError: createAdminAnswerError(parts.log),
    clock,
    audited: (entry) => store.audited(entry),
    audit: store.audit,
    nodes: { reportNodes: createNodeReport({ ...openReportParts(parts), clock }), poolSignals: parts.poolSignals },
    overview: {
      kind: config.kind,
      version: parts.version,
      countJobs: () => store.jobs.countByStatus(),
      loads,
      workersOf,
      openStreams,
    },
    shared: toSharedParts(config, { ...parts, workersOf }),
  })
}

function openReportParts({ store, own, clock }: AdminSurfaceParts) {
  return {
    store: store.nodes,
    own,
    async drivenEngines() {
      const now = clock.now()
      const engines = (await store.engines.list()).filter(({ nodeId, heldUntil }) => nodeId !== '' && heldUntil > now)
      return engines.map(({ nodeId, status: { id } }) => ({ nodeId, engineId: id }))
    },
  }
}

function toSharedParts(config: Config, parts: AdminSurfaceParts): SharedParts | null {
  const { store, shared, deployments, workersOf } = parts
  if (shared === null || deployments === null) return null
  return {
    accounts: shared.accounts,
    apiKeys: shared.apiKeys,
    ledger: store.ledger,
    reportUsage: createReportUsage(store.ledger, parts.clock),
    use: store.accounts,
    streamsOf: parts.heldBy,
    deployments,
    deploymentView: {
      loads: store.deployments.loads,
      workersOf: workersOf ?? (() => 0),
      domain: config.deployments?.domain ?? null,
      mountPrefix: config.http.mountPrefix,
    },
    defaultWorkers: Math.max(1, config.jobs.workers),
  }
}
