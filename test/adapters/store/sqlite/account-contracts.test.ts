import { testAccountDirectory } from '../../../contracts/accounts/account-directory.ts'
import { testAccountStore } from '../../../contracts/accounts/account-store.ts'
import { testAuditStore } from '../../../contracts/accounts/audit-store.ts'
import { testKeyStore } from '../../../contracts/accounts/key-store.ts'
import { testLimitStore } from '../../../contracts/accounts/limit-store.ts'
import { testUserFileStore } from '../../../contracts/accounts/user-file-store.ts'
import { testBulkStore } from '../../../contracts/bulk-store.ts'
import { testProviderKeyStore } from '../../../contracts/calls/provider-key-store.ts'
import { testBudgetStore } from '../../../contracts/credits/budgets.ts'
import { testCharges } from '../../../contracts/credits/charges.ts'
import { testLedgerStore } from '../../../contracts/credits/ledger-store.ts'
import { testStatements } from '../../../contracts/credits/statements.ts'
import { testUsageEvents } from '../../../contracts/credits/usage-events.ts'
import { testEndpointStore } from '../../../contracts/endpoints/endpoint-store.ts'
import { testRunLimits } from '../../../contracts/endpoints/run-limits.ts'
import { testShareStore } from '../../../contracts/endpoints/share-store.ts'
import { testArtifactQueue } from '../../../contracts/environments/artifact-queue.ts'
import { testBuildStore } from '../../../contracts/environments/build-store.ts'
import { testScheduleStore } from '../../../contracts/schedule-store.ts'
import { sqliteOpener } from './temporary-store.ts'

testAccountStore(sqliteOpener)
testAccountDirectory(sqliteOpener)
testKeyStore(sqliteOpener)
testUserFileStore(sqliteOpener)
testEndpointStore(sqliteOpener)
testRunLimits(sqliteOpener)
testShareStore(sqliteOpener)
testBuildStore(sqliteOpener)
testArtifactQueue(sqliteOpener)
testScheduleStore(sqliteOpener)
testBulkStore(sqliteOpener)
testProviderKeyStore(sqliteOpener)
testLedgerStore(sqliteOpener)
testBudgetStore(sqliteOpener)
testCharges(sqliteOpener, { runs: 25 })
testStatements(sqliteOpener, { runs: 25 })
testUsageEvents(sqliteOpener)
testLimitStore(sqliteOpener)
testAuditStore(sqliteOpener)
