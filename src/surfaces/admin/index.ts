/**
 * The admin API as one surface: its own token, its own envelope, its own contract. It lies at the root and never below a
 * deployment's address. Other parts of the service add operations of their own through `operations`.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isJsonObject } from '../../../lib/json/lossless-json.ts'
import type { AccountStore } from '../../domain/accounts/account-store.ts'
import type { Accounts } from '../../domain/accounts/accounts.ts'
import type { AuditEntry, AuditStore } from '../../domain/accounts/audit.ts'
import type { ApiKeys } from '../../domain/accounts/keys/api-keys.ts'
import type { Budgets } from '../../domain/credits/budgets/manage-budgets.ts'
import type { UsageExport } from '../../domain/credits/export-usage.ts'
import type { LedgerStore } from '../../domain/credits/ledger.ts'
import type { ReadStatement } from '../../domain/credits/statement.ts'
import type { ReadUsage } from '../../domain/credits/usage-events.ts'
import type { ReportUsage } from '../../domain/credits/usage-report.ts'
import type { Deployments } from '../../domain/deployments/deployments.ts'
import type { EndpointStore } from '../../domain/endpoints/endpoint-store.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { ReportGpuUse } from '../../domain/jobs/read/gpu-report.ts'
import { readJsonBody } from '../kit/bodies/json-body.ts'
import { openContract } from '../kit/contracts/contract.ts'
import { mustNameNoDeployment } from '../kit/guards/addresses.ts'
import type { OperatorGuard } from '../kit/guards/operator-guard.ts'
import { createRouteGuard, needs, sendError, serviceAddressOf, wrongMethod } from '../kit/guards/routes.ts'
import { pathOf } from '../kit/request.ts'
import type { AnswerError, Surface } from '../kit/surface.ts'
import { ADMIN_PATH, type AdminKit, type AdminOperation, type AuditedStores } from './admin-operation.ts'
import {
  createAccount,
  createReadAccountDetail,
  getAccount,
  listAccounts,
  listTiers,
  updateAccount,
} from './operations/accounts.ts'
import {
  createAccountBudget,
  deleteAccountBudget,
  listAccountBudgets,
  updateAccountBudget,
} from './operations/budgets.ts'
import { BULK_OPERATIONS, type BulkOperationDeps } from './operations/bulk-actions.ts'
import {
  checkLedger,
  getAccountStatement,
  grantCredits,
  listEntries,
  listHolds,
  refundCharge,
} from './operations/credits.ts'
import {
  createDeployment,
  createShowDeployments,
  type DeploymentViewDeps,
  getDeployment,
  listDeployments,
  startDeployment,
  stopDeployment,
  updateDeployment,
} from './operations/deployments.ts'
import { listAccountEndpoints, setEndpointPrice } from './operations/endpoints.ts'
import {
  cordonEngine,
  drainEngine,
  type EngineParts,
  getEngine,
  getEngineCatalog,
  getEngineLog,
  listEngines,
  refreshEngines,
  resumeEngine,
} from './operations/engines.ts'
import { cancelJob, cancelJobs, getJob, type JobOperationDeps, listEngineJobs, listJobs } from './operations/jobs.ts'
import {
  createKey,
  createWorkerKey,
  listKeys,
  listWorkerKeys,
  revokeKey,
  revokeWorkerKey,
  rotateKey,
  type WorkerKeyParts,
} from './operations/keys.ts'
import { changeJob, getQueue, pauseQueue, type QueueOperationDeps, resumeQueue } from './operations/queue.ts'
import {
  type GetOverviewDeps,
  getGpuUsage,
  getOpenapi,
  getOverview,
  getPool,
  getUsage,
  listAudit,
  listNodes,
  listPools,
  listUsageEvents,
  type NodeParts,
} from './operations/service.ts'
import { deleteUsageExport, getUsageExport, putUsageExport } from './operations/usage-export.ts'
import { deleteEngineWarm, getEngineWarm, putEngineWarm, type WarmParts } from './operations/warm.ts'
import { getEvents, getSeries, type WatchDeps } from './operations/watch.ts'

export interface AdminOptions {
  readonly guard: OperatorGuard
  /** False: whoever reaches the service is its operator. */
  readonly needsCredentials: boolean
  readonly answerError: AnswerError
  readonly clock: AdminKit['clock']
  /** The stores with an audit line bound to their writes. */
  readonly audited: (entry: AuditEntry) => AuditedStores
  readonly audit: AuditStore
  /** Who sent this request, for its audit line. */
  readonly actorOf: (request: FastifyRequest) => string
  readonly nodes: NodeParts
  readonly overview: Omit<GetOverviewDeps, 'accounts' | 'deployments'>
  /** null on the local kind, which has one account and no deployments. */
  readonly shared: SharedParts | null
  readonly operations?: readonly AdminOperation[]
  /** The service is shutting down: ends what stays open. */
  readonly drain?: () => void
}

const SOURCE = new URL('../../../spec/admin.openapi.json', import.meta.url)
const REQUEST_SCHEMAS = [
  'NewAccount',
  'AccountChange',
  'NewKey',
  'KeyRotation',
  'NewGrant',
  'NewBudget',
  'BudgetChange',
  'NewRefund',
  'NewUsageExport',
  'NewDeployment',
  'DeploymentChange',
  'DeploymentStop',
  'NewWorkerKey',
  'EndpointPriceChange',
  'NewPause',
  'EngineWarm',
  'PauseKey',
  'JobChange',
  'BulkActionRequest',
]
/** Paths that only the kinds with accounts have. */
const SHARED_PATH =
  /^\/admin\/v1\/(accounts|keys|tiers|refunds|ledger|usage|usage-events|usage-export|deployments)(\/|$)/
// Room for tens of thousands of node class names in the limits of one account.
const MAX_BODY_BYTES = 4 * 1024 * 1024

export function createAdmin(options: AdminOptions): Surface {
  const { guard, answerError, clock, shared } = options
  const spec = openContract({
    source: SOURCE,
    requestSchemas: REQUEST_SCHEMAS,
    needsCredentials: options.needsCredentials,
    hasPath: (template) => shared !== null || !SHARED_PATH.test(template),
  })
  const kit: AdminKit = {
    clock,
    actorOf: options.actorOf,
    audited: (request, change) => options.audited({ ...change, actor: options.actorOf(request), at: clock.now() }),
    note: (request, change) => options.audit.note({ ...change, actor: options.actorOf(request), at: clock.now() }),
    async readBody<Body>(request: FastifyRequest, schemaName: string): Promise<Body> {
      const body = hasBody(request) ? await readJsonBody(request, { maxBytes: MAX_BODY_BYTES }) : {}
      if (!isJsonObject(body)) throw new ServiceError('invalid_request', 'the body must be a JSON object')
      const problem = spec.check(schemaName, body, 'body')
      if (problem !== null) throw toInvalid(problem)
      return body as Body
    },
  }

  function register(app: FastifyInstance): void {
    app.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
    createRouteGuard({
      before: (request) => mustNameNoDeployment(serviceAddressOf(request)),
      operator: (request) => guard(request.raw),
    }).protect(app)
    getOpenapi(app, { specFor: spec.textFor })
    const { accounts = null, deployments = null } = shared ?? {}
    getOverview(app, { ...options.overview, accounts, deployments })
    listAudit(app, { audit: options.audit })
    for (const operation of [listNodes, listPools, getPool]) operation(app, options.nodes)
    if (shared !== null) registerShared(kit, shared, app)
    for (const operation of options.operations ?? []) operation(app, kit)
    // Every other address below this path is refused in this envelope, and only to a caller with the token.
    app.all(`${ADMIN_PATH}/*`, needs('operator'), (request, reply) => {
      const methods = spec.methodsOf(pathOf(request.raw.url ?? ''))
      if (methods.length > 0) reply.header('allow', methods.join(', '))
      if (methods.length > 0 && !methods.includes(request.method)) throw wrongMethod(request.method, methods)
      throw new ServiceError('not_found', 'there is nothing under this address')
    })
  }

  return {
    name: 'admin',
    register,
    reference: {
      path: '/docs/admin',
      title: 'Admin API',
      document: spec.shown,
      examplePath: `${ADMIN_PATH}/overview`,
      client: 'atelier/client/admin',
      isAtRoot: true,
    },
    allowedMethods: (path) => (path.startsWith(ADMIN_PATH) ? spec.methodsOf(path) : []),
    answerErrorFor: (path) => (path.startsWith(`${ADMIN_PATH}/`) ? answerError : null),
    drain: () => options.drain?.(),
  }
}

function hasBody({ raw }: FastifyRequest): boolean {
  return raw.headers['transfer-encoding'] !== undefined || Number(raw.headers['content-length'] ?? 0) > 0
}

/** `body.limits.streams must be …` is about `limits.streams`; what is wrong with the body as a whole has no field. */
function toInvalid(problem: string): ServiceError {
  const field = /^body\.([\w.]+) /.exec(problem)?.[1] ?? null
  return new ServiceError('invalid_field', problem.replace(/^body\./, ''), { details: { field } })
}

/** Which operations there are: some only on the kinds with many accounts, some only in a running service. */
export interface SharedParts {
  readonly accounts: Accounts
  readonly apiKeys: ApiKeys
  readonly ledger: LedgerStore
  readonly budgets: Budgets
  readonly reportUsage: ReportUsage
  readonly reportGpuUse: ReportGpuUse
  readonly readStatement: ReadStatement
  readonly readUsage: ReadUsage
  readonly use: Pick<AccountStore, 'findUse'>
  readonly streamsOf: (accountId: string) => number
  readonly deployments: Deployments
  readonly endpoints: Pick<EndpointStore, 'list'>
  readonly deploymentView: DeploymentViewDeps
  /** How many jobs a new deployment runs at once unless its request says so. */
  readonly defaultWorkers: number
}

const SHARED_OPERATIONS = [
  ...[listAccountBudgets, createAccountBudget, updateAccountBudget, deleteAccountBudget],
  createAccount,
  listAccounts,
  getAccount,
  updateAccount,
  listTiers,
  listEntries,
  listHolds,
  getAccountStatement,
  grantCredits,
  refundCharge,
  checkLedger,
  getUsage,
  getGpuUsage,
  listUsageEvents,
  createKey,
  listKeys,
  rotateKey,
  revokeKey,
  listAccountEndpoints,
  setEndpointPrice,
  createDeployment,
  listDeployments,
  getDeployment,
  updateDeployment,
  startDeployment,
  stopDeployment,
]

/** Accounts, keys, credits and deployments: for the kinds with many accounts. */
function registerShared(kit: AdminKit, parts: SharedParts, app: FastifyInstance): void {
  const readDetail = createReadAccountDetail({ ...parts, clock: kit.clock })
  const show = createShowDeployments(parts.deploymentView)
  for (const register of SHARED_OPERATIONS) register(app, { ...parts, kit, readDetail, show })
}

const ENGINE_OPERATIONS = [
  ...[listEngines, getEngineCatalog, refreshEngines, getEngine, getEngineLog],
  ...[cordonEngine, drainEngine, resumeEngine],
]

const WARM_OPERATIONS = [getEngineWarm, putEngineWarm, deleteEngineWarm]

/** The engines of the fleet: for a running service. */
export function createEngineOperations(parts: EngineParts & WarmParts): AdminOperation {
  return (app, kit) => {
    for (const register of ENGINE_OPERATIONS) register(app, { ...parts, kit })
    for (const register of WARM_OPERATIONS) register(app, { ...parts, kit })
  }
}

const JOB_OPERATIONS = [listJobs, getJob, cancelJob, cancelJobs, listEngineJobs]
const QUEUE_OPERATIONS = [getQueue, pauseQueue, resumeQueue, changeJob]
const WATCH_OPERATIONS = [getEvents, getSeries]

/** The jobs of all accounts, and what happens to them: for a running service. */
export function createJobOperations(
  parts: Omit<JobOperationDeps & WatchDeps & QueueOperationDeps & BulkOperationDeps, 'kit'>,
): AdminOperation {
  return (app, kit) => {
    for (const register of JOB_OPERATIONS) register(app, { ...parts, kit })
    for (const register of QUEUE_OPERATIONS) register(app, { ...parts, kit })
    for (const register of BULK_OPERATIONS) register(app, { ...parts, kit })
    for (const register of WATCH_OPERATIONS) register(app, { ...parts, kit })
  }
}

/** Where usage events are sent: for a running service, which sends them. */
export function createUsageOperations(usageExport: UsageExport): AdminOperation {
  return (app, kit) => {
    for (const register of [getUsageExport, putUsageExport, deleteUsageExport]) register(app, { usageExport, kit })
  }
}

const WORKER_OPERATIONS = [createWorkerKey, listWorkerKeys, revokeWorkerKey]

/** The keys of joined workers: for every kind. */
export function createWorkerOperations(parts: WorkerKeyParts): AdminOperation {
  return (app, kit) => {
    for (const register of WORKER_OPERATIONS) register(app, { ...parts, kit })
  }
}
