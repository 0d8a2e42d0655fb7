import { testAccountDirectory } from '../../../contracts/account-directory.ts'
import { testAccountStore } from '../../../contracts/account-store.ts'
import { testAssetStore } from '../../../contracts/asset-store.ts'
import { testDeploymentStore } from '../../../contracts/deployment-store.ts'
import { testIdempotencyStore } from '../../../contracts/idempotency-store.ts'
import { testLedgerStore } from '../../../contracts/ledger-store.ts'
import { testLimitStore } from '../../../contracts/limit-store.ts'
import { sqliteOpener } from './temporary-store.ts'

testAssetStore(sqliteOpener)
testAccountStore(sqliteOpener)
testIdempotencyStore(sqliteOpener)
testAccountDirectory(sqliteOpener)
testLedgerStore(sqliteOpener)
testLimitStore(sqliteOpener)
testDeploymentStore(sqliteOpener)
