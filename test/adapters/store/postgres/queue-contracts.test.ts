import { testAccountStore } from '../../../contracts/accounts/account-store.ts'
import { testIdempotencyStore } from '../../../contracts/accounts/idempotency-store.ts'
import { testLibraryStore } from '../../../contracts/assets/library-store.ts'
import { testUploadStore } from '../../../contracts/assets/upload-store.ts'
import { testBatchStore } from '../../../contracts/batch-store.ts'
import { testGpuUse } from '../../../contracts/job-store/gpu-use.ts'
import { testJobStoreQueue } from '../../../contracts/job-store/job-store-queue.ts'
import { testRunRecordStore } from '../../../contracts/run-record-store.ts'
import { testServiceSummaries } from '../../../contracts/summaries/service-summaries.ts'
import { testSummaryStore } from '../../../contracts/summaries/summary-store.ts'
import { testWebhookStore } from '../../../contracts/webhooks/webhook-store.ts'
import { postgresOpener } from './temporary-store.ts'

testAccountStore(postgresOpener)
testBatchStore(postgresOpener)
testIdempotencyStore(postgresOpener)
testLibraryStore(postgresOpener)
testRunRecordStore(postgresOpener)
testSummaryStore(postgresOpener)
testUploadStore(postgresOpener)
testWebhookStore(postgresOpener)
testServiceSummaries(postgresOpener)
testJobStoreQueue(postgresOpener)
testGpuUse(postgresOpener)
