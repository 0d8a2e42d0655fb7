import { testAccountDirectory } from '../../../contracts/accounts/account-directory.ts'
import { testAuditStore } from '../../../contracts/accounts/audit-store.ts'
import { testDeploymentStore } from '../../../contracts/accounts/deployment-store.ts'
import { testKeyStore } from '../../../contracts/accounts/key-store.ts'
import { testLimitStore } from '../../../contracts/accounts/limit-store.ts'
import { testReleasedStore } from '../../../contracts/accounts/released-store.ts'
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
import { postgresOpener } from './temporary-store.ts'

testAccountDirectory(postgresOpener)
testKeyStore(postgresOpener)
testUserFileStore(postgresOpener)
testEndpointStore(postgresOpener)
testRunLimits(postgresOpener)
testShareStore(postgresOpener)
testBuildStore(postgresOpener)
testArtifactQueue(postgresOpener)
testScheduleStore(postgresOpener)
testBulkStore(postgresOpener)
testProviderKeyStore(postgresOpener)
testLedgerStore(postgresOpener)
testBudgetStore(postgresOpener)
testCharges(postgresOpener, { runs: 12 })
testStatements(postgresOpener, { runs: 12 })
testUsageEvents(postgresOpener)
testLimitStore(postgresOpener)
testAuditStore(postgresOpener)
testDeploymentStore(postgresOpener)
testReleasedStore(postgresOpener)
