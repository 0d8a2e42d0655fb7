import { rm } from 'node:fs/promises'
import { openSqliteStore } from '../../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { testDeploymentStore } from '../../../contracts/accounts/deployment-store.ts'
import { testIdempotencyStore } from '../../../contracts/accounts/idempotency-store.ts'
import { testReleasedStore } from '../../../contracts/accounts/released-store.ts'
import { testAssetStore } from '../../../contracts/assets/asset-store.ts'
import { testLibraryStore } from '../../../contracts/assets/library-store.ts'
import { testUploadStore } from '../../../contracts/assets/upload-store.ts'
import { testBatchStore } from '../../../contracts/batch-store.ts'
import { testGpuUse } from '../../../contracts/job-store/gpu-use.ts'
import { testJobStoreQueue } from '../../../contracts/job-store/job-store-queue.ts'
import { testMetaStore } from '../../../contracts/meta-store.ts'
import { testRunRecordStore } from '../../../contracts/run-record-store.ts'
import { testServiceSummaries } from '../../../contracts/summaries/service-summaries.ts'
import { testSummaryStore } from '../../../contracts/summaries/summary-store.ts'
import { testWebhookStore } from '../../../contracts/webhooks/webhook-store.ts'
import { makeDirectory, sqliteOpener } from './temporary-store.ts'

testAssetStore(sqliteOpener)
testBatchStore(sqliteOpener)
testIdempotencyStore(sqliteOpener)
testJobStoreQueue(sqliteOpener)
testLibraryStore(sqliteOpener)
testGpuUse(sqliteOpener)
testRunRecordStore(sqliteOpener)
testSummaryStore(sqliteOpener)
testUploadStore(sqliteOpener)
testWebhookStore(sqliteOpener)
testServiceSummaries(sqliteOpener)
testDeploymentStore(sqliteOpener)
testReleasedStore(sqliteOpener)
testMetaStore(async () => {
  const directory = await makeDirectory()
  const store = await openSqliteStore({ directory, synchronous: 'NORMAL' })
  return {
    stores: [store, store],
    async close() {
      await store[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
})
