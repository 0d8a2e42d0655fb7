/** Every store that is written once for both databases. */
import type { DefinedStore } from '../statements/operation.ts'
import { accountDirectory } from './account-directory.ts'
import { accountSteps } from './account-store.ts'
import { assetSteps } from './asset-store.ts'
import { auditStore } from './audit-store.ts'
import { batchSteps } from './batch-store.ts'
import { callSteps, requestSteps } from './calls/call-stores.ts'
import { deploymentStore } from './deployment-store.ts'
import { endpointStore } from './endpoint-store.ts'
import { engineRegistry } from './engine-registry.ts'
import { artifactQueue } from './environments/artifact-queue.ts'
import { buildBlobStore } from './environments/build-blob-store.ts'
import { buildStore } from './environments/build-store.ts'
import { glances } from './glance.ts'
import { keySteps } from './idempotency-store.ts'
import { bulkStore } from './jobs/bulk-store.ts'
import { gpuUseStore } from './jobs/gpu-use.ts'
import { jobSteps } from './jobs/job-steps.ts'
import { queueStore } from './jobs/queue-store.ts'
import { runLimitStore } from './jobs/run-bounds.ts'
import { keyStore } from './key-store.ts'
import { budgetStore } from './ledger/budget-counts.ts'
import { ledgerStore } from './ledger/ledger-store.ts'
import { importStore, libraryStore } from './library-store.ts'
import { metaSteps } from './meta-store.ts'
import { nodeStore } from './node-store.ts'
import { providerKeyStore } from './provider-keys.ts'
import { releasedStore } from './released-store.ts'
import { recordWrites } from './run-record-store.ts'
import { scheduleStore } from './schedule-store.ts'
import { shareStore } from './share-store.ts'
import { uploadStore } from './upload-store.ts'
import { userFileStore } from './user-file-store.ts'
import { webhookSteps } from './webhook-store.ts'

export const ALL_STORES: readonly DefinedStore<unknown>[] = [
  accountDirectory,
  accountSteps,
  artifactQueue,
  assetSteps,
  auditStore,
  callSteps,
  batchSteps,
  buildBlobStore,
  buildStore,
  budgetStore,
  bulkStore,
  deploymentStore,
  endpointStore,
  engineRegistry,
  glances,
  importStore,
  gpuUseStore,
  jobSteps,
  keySteps,
  keyStore,
  ledgerStore,
  libraryStore,
  metaSteps,
  nodeStore,
  providerKeyStore,
  queueStore,
  recordWrites,
  releasedStore,
  requestSteps,
  runLimitStore,
  scheduleStore,
  shareStore,
  uploadStore,
  userFileStore,
  webhookSteps,
]
