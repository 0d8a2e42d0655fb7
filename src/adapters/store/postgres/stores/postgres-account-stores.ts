import type { AccountDirectory } from '../../../../domain/accounts/account-store.ts'
import type { AuditStore } from '../../../../domain/accounts/audit.ts'
import type { KeyStore } from '../../../../domain/accounts/keys/key-store.ts'
import type { UserFileStore } from '../../../../domain/accounts/user-files.ts'
import type { LedgerStore } from '../../../../domain/credits/ledger.ts'
import type { LimitStore } from '../../../../domain/credits/rate-limit.ts'
import type { DeploymentStore } from '../../../../domain/deployments/deployment-store.ts'
import type { StoreParts } from './store-parts.ts'
import { unwritten } from './unwritten.ts'

export const createAccountDirectory = (_: StoreParts) => unwritten<AccountDirectory>('directory')
export const createAuditStore = (_: StoreParts) => unwritten<AuditStore>('audit')
export const createDeploymentStore = (_: StoreParts) => unwritten<DeploymentStore>('deployments')
export const createKeyStore = (_: StoreParts) => unwritten<KeyStore>('apiKeys')
export const createLedgerStore = (_: StoreParts) => unwritten<LedgerStore>('ledger')
export const createLimitStore = (_: StoreParts) => unwritten<LimitStore>('limits')
export const createUserFileStore = (_: StoreParts) => unwritten<UserFileStore>('userFiles')
