/** The operations on what only the kinds with many accounts have: accounts, keys, credits, deployments. */
import type { FastifyInstance } from 'fastify'
import type { AccountStore } from '../../domain/accounts/account-store.ts'
import type { Accounts } from '../../domain/accounts/accounts.ts'
import type { ApiKeys } from '../../domain/accounts/keys/api-keys.ts'
import type { LedgerStore } from '../../domain/credits/ledger.ts'
import type { Deployments } from '../../domain/deployments/deployments.ts'
import { createReadAccountDetail } from './account-detail.ts'
import { createShowDeployments, type DeploymentViewDeps } from './deployment-view.ts'
import type { AdminKit } from './operation.ts'
import { checkLedger } from './operations/check-ledger.ts'
import { createAccount } from './operations/create-account.ts'
import { createDeployment } from './operations/create-deployment.ts'
import { createKey } from './operations/create-key.ts'
import { getAccount } from './operations/get-account.ts'
import { getDeployment } from './operations/get-deployment.ts'
import { grantCredits } from './operations/grant-credits.ts'
import { listAccounts } from './operations/list-accounts.ts'
import { listDeployments } from './operations/list-deployments.ts'
import { listEntries } from './operations/list-entries.ts'
import { listHolds } from './operations/list-holds.ts'
import { listKeys } from './operations/list-keys.ts'
import { listTiers } from './operations/list-tiers.ts'
import { refundCharge } from './operations/refund-charge.ts'
import { revokeKey } from './operations/revoke-key.ts'
import { rotateKey } from './operations/rotate-key.ts'
import { startDeployment } from './operations/start-deployment.ts'
import { stopDeployment } from './operations/stop-deployment.ts'
import { updateAccount } from './operations/update-account.ts'
import { updateDeployment } from './operations/update-deployment.ts'

export interface SharedParts {
  readonly accounts: Accounts
  readonly apiKeys: ApiKeys
  readonly ledger: LedgerStore
  readonly use: Pick<AccountStore, 'findUse'>
  readonly streamsOf: (accountId: string) => number
  readonly deployments: Deployments
  readonly deploymentView: DeploymentViewDeps
  /** How many jobs a new deployment runs at once when nothing is said. */
  readonly defaultWorkers: number
}

const OPERATIONS = [
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

export function registerShared(app: FastifyInstance, kit: AdminKit, parts: SharedParts): void {
  const readDetail = createReadAccountDetail({ ...parts, clock: kit.clock })
  const show = createShowDeployments(parts.deploymentView)
  for (const register of OPERATIONS) register(app, { ...parts, kit, readDetail, show })
}
