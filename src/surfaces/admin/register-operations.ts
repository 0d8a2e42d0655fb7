/** Which operations there are: some only on the kinds with many accounts, some only in a running service. */
import type { FastifyInstance } from 'fastify'
import type { AccountStore } from '../../domain/accounts/account-store.ts'
import type { Accounts } from '../../domain/accounts/accounts.ts'
import type { ApiKeys } from '../../domain/accounts/keys/api-keys.ts'
import type { LedgerStore } from '../../domain/credits/ledger.ts'
import type { ReportUsage } from '../../domain/credits/usage-report.ts'
import type { Deployments } from '../../domain/deployments/deployments.ts'
import type { AdminKit, AdminOperation } from './admin-operation.ts'
import {
  createAccount,
  createReadAccountDetail,
  getAccount,
  listAccounts,
  listTiers,
  updateAccount,
} from './operations/accounts.ts'
import { checkLedger, grantCredits, listEntries, listHolds, refundCharge } from './operations/credits.ts'
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
import { createKey, listKeys, revokeKey, rotateKey } from './operations/keys.ts'
import { getUsage } from './operations/usage.ts'
import { getEvents, getSeries, type WatchDeps } from './operations/watch.ts'
import { createWorkerKey, listWorkerKeys, revokeWorkerKey, type WorkerKeyParts } from './operations/worker-keys.ts'

export interface SharedParts {
  readonly accounts: Accounts
  readonly apiKeys: ApiKeys
  readonly ledger: LedgerStore
  readonly reportUsage: ReportUsage
  readonly use: Pick<AccountStore, 'findUse'>
  readonly streamsOf: (accountId: string) => number
  readonly deployments: Deployments
  readonly deploymentView: DeploymentViewDeps
  /** How many jobs a new deployment runs at once unless its request says so. */
  readonly defaultWorkers: number
}

const SHARED_OPERATIONS = [
  createAccount,
  listAccounts,
  getAccount,
  updateAccount,
  listTiers,
  listEntries,
  listHolds,
  grantCredits,
  refundCharge,
  checkLedger,
  getUsage,
  createKey,
  listKeys,
  rotateKey,
  revokeKey,
  createDeployment,
  listDeployments,
  getDeployment,
  updateDeployment,
  startDeployment,
  stopDeployment,
]

/** Accounts, keys, credits and deployments: for the kinds with many accounts. */
export function registerShared(app: FastifyInstance, kit: AdminKit, parts: SharedParts): void {
  const readDetail = createReadAccountDetail({ ...parts, clock: kit.clock })
  const show = createShowDeployments(parts.deploymentView)
  for (const register of SHARED_OPERATIONS) register(app, { ...parts, kit, readDetail, show })
}

const ENGINE_OPERATIONS = [
  ...[listEngines, getEngineCatalog, refreshEngines, getEngine, getEngineLog],
  ...[cordonEngine, drainEngine, resumeEngine],
]

/** The engines of the fleet: for a running service. */
export function createEngineOperations(parts: EngineParts): AdminOperation {
  return (app, kit) => {
    for (const register of ENGINE_OPERATIONS) register(app, { ...parts, kit })
  }
}

const JOB_OPERATIONS = [listJobs, getJob, cancelJob, cancelJobs, listEngineJobs]
const WATCH_OPERATIONS = [getEvents, getSeries]

/** The jobs of all accounts, and what happens to them: for a running service. */
export function createJobOperations(parts: Omit<JobOperationDeps & WatchDeps, 'kit'>): AdminOperation {
  return (app, kit) => {
    for (const register of JOB_OPERATIONS) register(app, { ...parts, kit })
    for (const register of WATCH_OPERATIONS) register(app, { ...parts, kit })
  }
}

const WORKER_OPERATIONS = [createWorkerKey, listWorkerKeys, revokeWorkerKey]

/** The keys of joined workers: for every kind. */
export function createWorkerOperations(parts: WorkerKeyParts): AdminOperation {
  return (app, kit) => {
    for (const register of WORKER_OPERATIONS) register(app, { ...parts, kit })
  }
}
