import { testAssetStore } from '../../../contracts/asset-store.ts'
import { testDeploymentStore } from '../../../contracts/deployment-store.ts'
import { testIdempotencyStore } from '../../../contracts/idempotency-store.ts'
import { testRunRecordStore } from '../../../contracts/run-record-store.ts'
import { sqliteOpener } from './temporary-store.ts'

testAssetStore(sqliteOpener)
testIdempotencyStore(sqliteOpener)
testRunRecordStore(sqliteOpener)
testDeploymentStore(sqliteOpener)
