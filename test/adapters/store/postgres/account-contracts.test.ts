import { testAccountDirectory } from '../../../contracts/accounts/account-directory.ts'
import { testAuditStore } from '../../../contracts/accounts/audit-store.ts'
import { testDeploymentStore } from '../../../contracts/accounts/deployment-store.ts'
import { testKeyStore } from '../../../contracts/accounts/key-store.ts'
import { testLimitStore } from '../../../contracts/accounts/limit-store.ts'
import { testUserFileStore } from '../../../contracts/accounts/user-file-store.ts'
import { testCharges } from '../../../contracts/credits/charges.ts'
import { testLedgerStore } from '../../../contracts/credits/ledger-store.ts'
import { testEndpointStore } from '../../../contracts/endpoints/endpoint-store.ts'
import { postgresOpener } from './temporary-store.ts'

testAccountDirectory(postgresOpener)
testKeyStore(postgresOpener)
testUserFileStore(postgresOpener)
testEndpointStore(postgresOpener)
testLedgerStore(postgresOpener)
testCharges(postgresOpener, { runs: 12 })
testLimitStore(postgresOpener)
testAuditStore(postgresOpener)
testDeploymentStore(postgresOpener)
