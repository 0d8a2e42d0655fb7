/** The service as a whole: its contract, what it does at the moment, its processes, its usage, and what was changed through this API. */
import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import type { AuditStore } from '../../../domain/accounts/audit.ts'
import { CHARGE_GROUPS } from '../../../domain/credits/charges.ts'
import { type ReadUsage, toUsageEvent } from '../../../domain/credits/usage-events.ts'
import type { ReportUsage } from '../../../domain/credits/usage-report.ts'
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import type { DeploymentStore } from '../../../domain/deployments/deployment-store.ts'
import type { Deployments } from '../../../domain/deployments/deployments.ts'
import type { PoolSignal, PoolSignals } from '../../../domain/deployments/pool-signals.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { JobStore } from '../../../domain/jobs/job-store.ts'
import { GPU_GROUPS, type ReportGpuUse } from '../../../domain/jobs/read/gpu-report.ts'
import type { ReportedNode, ReportNodes } from '../../../domain/service-nodes/node-report.ts'
import { needs, serviceAddressOf } from '../../kit/guards/routes.ts'
import { idOf, readNumber, sendJson } from '../../kit/request.ts'
import { readUsageWish, toGpuView, toUsageView, USAGE_PARAMETERS } from '../../kit/usage-view.ts'
import { ADMIN_PATH, type AdminKit, readBefore, readLimit, readParameters, toPage } from '../admin-operation.ts'
import { mustFindAccount } from './accounts.ts'

/** The contract, with the address at which this caller reached us. */
export function getOpenapi(app: FastifyInstance, { specFor }: { readonly specFor: (baseUrl: string) => string }): void {
  app.get(`${ADMIN_PATH}/openapi.json`, needs('operator'), (request, reply) =>
    sendJson(reply, 200, specFor(serviceAddressOf(request).origin)),
  )
}

export interface GetOverviewDeps {
  readonly kind: string
  readonly version: string
  readonly countJobs: JobStore['countByStatus']
  readonly countPools: DeploymentStore['count']
  readonly workersOf: (pool: string) => number
  readonly openStreams: () => number
  /** null: there is one account and no deployment. */
  readonly accounts: Pick<Accounts, 'list'> | null
  readonly deployments: Pick<Deployments, 'list'> | null
}

export function getOverview(app: FastifyInstance, deps: GetOverviewDeps): void {
  app.get(`${ADMIN_PATH}/overview`, needs('operator'), async (_request, reply) => {
    const { kind, version, workersOf } = deps
    const names = [DEFAULT_POOL, ...(deps.deployments?.list() ?? []).map(({ id }) => id)]
    const [jobs, loads] = await Promise.all([deps.countJobs(), deps.countPools(names)])
    const pools = loads.map((load) => ({ ...load, workers: workersOf(load.pool) }))
    const accounts = deps.accounts?.list().length ?? 1
    return sendJson(reply, 200, { kind, version, jobs, pools, accounts, streams: deps.openStreams() })
  })
}

export function listAudit(app: FastifyInstance, { audit }: { readonly audit: AuditStore }): void {
  app.get(`${ADMIN_PATH}/audit`, needs('operator'), async (request, reply) => {
    const parameters = readParameters(request, ['limit', 'before', 'subject'])
    const [limit, before, subject] = [readLimit(parameters), readBefore(parameters), parameters.get('subject') ?? null]
    const found = await audit.list({ limit: limit + 1, before, subject })
    const { page, next } = toPage(found, limit)
    return sendJson(reply, 200, { records: page.map((record) => ({ ...record, at: record.at.toISOString() })), next })
  })
}

/** The processes of the service, and how many of them its pools need. */
export interface NodeParts {
  readonly reportNodes: ReportNodes
  readonly poolSignals: PoolSignals
}

export function listNodes(app: FastifyInstance, { reportNodes }: NodeParts): void {
  app.get(`${ADMIN_PATH}/nodes`, needs('operator'), async (_request, reply) =>
    sendJson(reply, 200, { nodes: (await reportNodes()).map(toNodeView) }),
  )
}

export function listPools(app: FastifyInstance, { poolSignals }: NodeParts): void {
  app.get(`${ADMIN_PATH}/pools`, needs('operator'), async (_request, reply) =>
    sendJson(reply, 200, { pools: (await poolSignals.list()).map(toPoolView) }),
  )
}

export function getPool(app: FastifyInstance, { poolSignals }: NodeParts): void {
  app.get(`${ADMIN_PATH}/pools/:id`, needs('operator'), async (request, reply) => {
    const signal = await poolSignals.find(idOf(request))
    if (signal === null) throw new ServiceError('not_found', 'there is no pool with this id')
    return sendJson(reply, 200, toPoolView(signal))
  })
}

function toNodeView({ id, state, about, startedAt, seenAt, jobs, calls, chores, engines }: ReportedNode) {
  return {
    id,
    state,
    role: about.role ?? 'all',
    version: about.version,
    host: about.host,
    url: about.url ?? null,
    started_at: startedAt.toISOString(),
    seen_at: seenAt.toISOString(),
    workers: about.workers,
    holds: { jobs, calls, chores, engines },
  }
}

function toPoolView({ pool, queued, running, workers, wantedWorkers, oldestWaitMs }: PoolSignal) {
  const wanted = { wanted_workers: wantedWorkers, oldest_wait_seconds: oldestWaitMs / 1000 }
  return { pool, queued, running, workers, ...wanted }
}

/** What accounts spent, all together or one of them. */
interface UsageDeps {
  readonly accounts: Pick<Accounts, 'find'>
  readonly reportUsage: ReportUsage
  readonly reportGpuUse: ReportGpuUse
}

export function getUsage(app: FastifyInstance, { accounts, reportUsage }: Omit<UsageDeps, 'reportGpuUse'>): void {
  app.get(`${ADMIN_PATH}/usage`, needs('operator'), async (request, reply) => {
    const parameters = readParameters(request, [...USAGE_PARAMETERS, 'account'])
    const wish = readUsageWish(parameters, CHARGE_GROUPS)
    const asked = parameters.get('account') ?? null
    const accountId = asked === null ? null : mustFindAccount(accounts, asked).id
    const report = await reportUsage(accountId, wish)
    const named = wish.by === 'account' ? report.groups.flatMap(({ name }) => accounts.find(name ?? '') ?? []) : []
    return sendJson(reply, 200, toUsageView(report, new Map(named.map(({ id, name }) => [id, name]))))
  })
}

/** How long servers computed, for all accounts together or for one of them. */
export function getGpuUsage(app: FastifyInstance, { accounts, reportGpuUse }: Omit<UsageDeps, 'reportUsage'>): void {
  app.get(`${ADMIN_PATH}/usage/gpu`, needs('operator'), async (request, reply) => {
    const parameters = readParameters(request, [...USAGE_PARAMETERS, 'account'])
    const wish = readUsageWish(parameters, GPU_GROUPS)
    const asked = parameters.get('account') ?? null
    const report = await reportGpuUse(asked === null ? null : mustFindAccount(accounts, asked).id, wish)
    const named = wish.by === 'account' ? report.groups.flatMap(({ name }) => accounts.find(name) ?? []) : []
    return sendJson(reply, 200, toGpuView(report, new Map(named.map(({ id, name }) => [id, name]))))
  })
}

const MAX_EVENTS = 1000

export function listUsageEvents(app: FastifyInstance, { readUsage }: { readonly readUsage: ReadUsage }): void {
  app.get(`${ADMIN_PATH}/usage-events`, needs('operator'), async (request, reply) => {
    const parameters = readParameters(request, ['after', 'limit'])
    const isFirst = (parameters.get('after') ?? '0') === '0'
    const after = isFirst ? 0 : readNumber(parameters, 'after', { fallback: 1, max: Number.MAX_SAFE_INTEGER })
    const limit = readNumber(parameters, 'limit', { fallback: MAX_EVENTS, max: MAX_EVENTS })
    const page = await readUsage({ after, limit })
    const events = page.entries.map(toUsageEvent)
    return sendJson(reply, 200, { events, next: page.after, last: page.isLast })
  })
}

type ModelReload =
  | { readonly outcome: 'reloaded'; readonly models: number }
  | { readonly outcome: 'refused'; readonly problems: readonly { readonly file: string; readonly problem: string }[] }

interface ReloadModelsDeps {
  readonly kit: AdminKit
  readonly reload: () => Promise<ModelReload>
}

// A wholly broken catalogue has hundreds; `atelier models lint` shows them all.
const MAX_SHOWN_PROBLEMS = 20

/** Reads the catalogue of models again and exchanges all of it, or nothing when it has a mistake. */
export function reloadModels(app: FastifyInstance, { kit, reload }: ReloadModelsDeps): void {
  app.post(`${ADMIN_PATH}/models/reload`, needs('operator'), async (request, reply) => {
    const found = await reload()
    if (found.outcome === 'refused') throw new ServiceError('invalid_field', toMessage(found.problems))
    const { models } = found
    await kit.note(request, { action: 'models.reload', subject: 'models', details: { models } })
    return sendJson(reply, 200, { models })
  })
}

function toMessage(problems: Extract<ModelReload, { outcome: 'refused' }>['problems']): string {
  const shown = problems.slice(0, MAX_SHOWN_PROBLEMS).map(({ file, problem }) => `${file}: ${problem}`)
  const rest = problems.length > MAX_SHOWN_PROBLEMS ? `; and ${problems.length - MAX_SHOWN_PROBLEMS} more` : ''
  return `the catalogue has mistakes and was not exchanged: ${shown.join('; ')}${rest}`
}
