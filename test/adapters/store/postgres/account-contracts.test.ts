import { testAccountDirectory } from '../../../contracts/account-directory.ts'
import { testAuditStore } from '../../../contracts/audit-store.ts'
import { testCharges } from '../../../contracts/charges.ts'
import { testDeploymentStore } from '../../../contracts/deployment-store.ts'
import { testKeyStore } from '../../../contracts/key-store.ts'
import { testLedgerStore } from '../../../contracts/ledger-store.ts'
import { testLimitStore } from '../../../contracts/limit-store.ts'
import { testUserFileStore } from '../../../contracts/user-file-store.ts'
import { postgresOpener } from './temporary-store.ts'

testAccountDirectory(postgresOpener)
testKeyStore(postgresOpener)
testUserFileStore(postgresOpener)
testLedgerStore(postgresOpener)
testCharges(postgresOpener, { runs: 12 })
testLimitStore(postgresOpener)
testAuditStore(postgresOpener)
testDeploymentStore(postgresOpener)
