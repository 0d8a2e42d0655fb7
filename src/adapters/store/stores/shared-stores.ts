/** The stores that are the same over both databases, as parts of the whole. */
import type { Clock } from '../../../../lib/clock.ts'
import type { OperatorStores, Store } from '../../../domain/store.ts'
import type { OpenStore } from '../statements/operation.ts'
import { accountDirectory } from './account-directory.ts'
import { createAccountStore } from './account-store.ts'
import { auditStore } from './audit-store.ts'
import { createBatchStore } from './batch-store.ts'
import { createCallStore, createOwnEnds, createRequestStore } from './calls/call-stores.ts'
import { deploymentStore } from './deployment-store.ts'
import { endpointStore } from './endpoint-store.ts'
import { engineRegistry } from './engine-registry.ts'
import { artifactQueue } from './environments/artifact-queue.ts'
import { buildBlobStore } from './environments/build-blob-store.ts'
import { buildStore } from './environments/build-store.ts'
import { glances } from './glance.ts'
import { createIdempotencyStore } from './idempotency-store.ts'
import { bulkStore } from './jobs/bulk-store.ts'
import { gpuUseStore } from './jobs/gpu-use.ts'
import { queueStore } from './jobs/queue-store.ts'
import { runLimitStore } from './jobs/run-bounds.ts'
import type { SubmitSteps } from './jobs/submits.ts'
import { keyStore } from './key-store.ts'
import { budgetStore } from './ledger/budget-counts.ts'
import { ledgerStore } from './ledger/ledger-store.ts'
import { importStore, libraryStore } from './library-store.ts'
import { createMetaStore } from './meta-store.ts'
import { nodeStore } from './node-store.ts'
import { providerKeyStore } from './provider-keys.ts'
import { releasedStore } from './released-store.ts'
import { scheduleStore } from './schedule-store.ts'
import { shareStore } from './share-store.ts'
import { uploadStore } from './upload-store.ts'
import { userFileStore } from './user-file-store.ts'
import { createWebhookStore } from './webhook-store.ts'

type SharedNames =
  | ('batches' | 'accounts' | 'keys' | 'calls' | 'requests' | 'audit' | 'userFiles' | 'nodes' | 'engines' | 'webhooks')
  | (
      | 'uploads'
      | 'library'
      | 'imports'
      | 'endpoints'
      | 'runLimits'
      | 'schedules'
      | 'gpuUse'
      | 'artifacts'
      | 'glance'
      | 'readMeta'
      | 'changeMeta'
      | 'ensureMeta'
    )

interface SharedParts {
  readonly clock: Clock
  readonly submits: Pick<SubmitSteps, 'submitBatch'>
}

export function createSharedStores(open: OpenStore, { clock, submits }: SharedParts): Pick<Store, SharedNames> {
  const toOwnEnd = createOwnEnds()
  return {
    batches: createBatchStore(open, submits),
    accounts: createAccountStore(open),
    keys: createIdempotencyStore(open),
    calls: createCallStore(open, toOwnEnd),
    requests: createRequestStore(open, toOwnEnd),
    audit: open(auditStore),
    userFiles: open(userFileStore),
    nodes: open(nodeStore),
    engines: open(engineRegistry),
    webhooks: createWebhookStore(open),
    uploads: open(uploadStore),
    library: open(libraryStore),
    imports: open(importStore),
    endpoints: open(endpointStore),
    runLimits: open(runLimitStore),
    schedules: open(scheduleStore),
    gpuUse: open(gpuUseStore),
    artifacts: open(artifactQueue),
    glance: () => open(glances).glance(clock.now()),
    ...createMetaStore(open),
  }
}

type OwnOperatorStores = Pick<OperatorStores, 'cancels'> & {
  readonly demands: Omit<OperatorStores['deployments'], keyof typeof deploymentStore.operations>
}

export function createOperatorStores(open: OpenStore, { cancels, demands }: OwnOperatorStores): OperatorStores {
  return {
    directory: open(accountDirectory),
    apiKeys: open(keyStore),
    ledger: open(ledgerStore),
    budgets: open(budgetStore),
    shares: open(shareStore),
    builds: open(buildStore),
    buildBlobs: open(buildBlobStore),
    providerKeys: open(providerKeyStore),
    released: open(releasedStore),
    queue: open(queueStore),
    bulkActions: open(bulkStore),
    deployments: { ...open(deploymentStore), ...demands },
    cancels,
    endpointPrices: open(endpointStore),
  }
}
