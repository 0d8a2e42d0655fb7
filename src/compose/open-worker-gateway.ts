/**
 * Opens what joined workers speak to, over the parts of this process: their keys, and everything that a worker with a store of its
 * own would do itself.
 */
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Turns } from '../../lib/waiting/turns.ts'
import type { FleetConfig } from '../config/blocks/fleet-config.ts'
import { WORKERS_ACCOUNT_ID } from '../domain/accounts/account.ts'
import { createApiKeys } from '../domain/accounts/keys/api-keys.ts'
import { type KeyRing, openKeyRing } from '../domain/accounts/keys/key-ring.ts'
import type { SigningKey } from '../domain/assets/signed-url.ts'
import type { MachinePlans } from '../domain/deployments/released/shared-copies.ts'
import type { EngineDirectory } from '../domain/engine/directory/engine-directory.ts'
import type { RunModel } from '../domain/engine/model-port.ts'
import { createBlobLinks } from '../domain/environments/blob-links.ts'
import { findQuota } from '../domain/environments/build-loop.ts'
import type { EventBus } from '../domain/events/event-bus.ts'
import type { LiveEvent } from '../domain/events/live-event.ts'
import type { OutputCheck } from '../domain/jobs/outputs/check-outputs.ts'
import type { Chore } from '../domain/jobs/sweeps/housekeeping.ts'
import type { Heartbeat } from '../domain/service-nodes/heartbeat.ts'
import type { Store } from '../domain/store.ts'
import { createOutputReceipts } from '../domain/workers/output-receipts.ts'
import { createWorkerGateway, type WorkerGateway } from '../domain/workers/worker-gateway.ts'
import { createWorkerKeys, type WorkerKeys } from '../domain/workers/worker-keys.ts'
import type { AssetActions } from './asset-actions.ts'
import type { JobActions } from './jobs/job-actions.ts'
import type { SharedAccounts } from './open-accounts.ts'
import type { Directories } from './open-directories.ts'
import type { OpenedBlobs } from './storage/open-blobs.ts'

/** Whether workers may join. Where one process has the store alone, jobs have lanes only if somebody can join. */
export async function mayJoin({ joins }: Pick<FleetConfig, 'joins'>, store: Pick<Store, 'apiKeys' | 'isExclusive'>) {
  if (joins !== 'auto') return joins === 'on'
  if (!store.isExclusive) return true
  return (await store.apiKeys.list(WORKERS_ACCOUNT_ID)).some(({ revokedAt }) => revokedAt === null)
}

interface WorkerKeyParts {
  readonly store: Pick<Store, 'apiKeys'>
  /** null: the local kind, which keeps no other keys. */
  readonly shared: Pick<SharedAccounts, 'ring' | 'apiKeys'> | null
  readonly directories: Pick<Directories, 'announce'>
  readonly clock: Clock
}

export interface OpenedWorkerKeys {
  readonly keys: WorkerKeys
  /** To be followed where nothing else follows it; null: somebody does. */
  readonly ring: KeyRing | null
  readonly chores: readonly Chore[]
}

const MINUTE_MS = 60_000

export async function openWorkerKeys({ store, shared, directories, clock }: WorkerKeyParts): Promise<OpenedWorkerKeys> {
  if (shared !== null) return { keys: createWorkerKeys(shared), ring: null, chores: [] }
  const announce = async () => directories.announce('keys')
  const ring = await openKeyRing({ store: store.apiKeys, clock, announce })
  const apiKeys = createApiKeys({ store: store.apiKeys, ring, clock })
  const chore: Chore = { name: 'write-key-uses', runs: 'each', everyMs: MINUTE_MS, run: () => ring.flushUses() }
  return { keys: createWorkerKeys({ ring, apiKeys }), ring, chores: [chore] }
}

interface GatewayParts {
  readonly store: Store
  readonly keys: WorkerKeys
  readonly signingKeys: readonly SigningKey[]
  readonly jobs: Pick<JobActions, 'runTerms'>
  readonly assets: Pick<AssetActions, 'quota' | 'hasBlob' | 'storeHeld'>
  readonly blobs: OpenedBlobs['blobs']
  readonly plans: Pick<MachinePlans, 'read'>
  /** What the releases of one account may take of the disks of builders. */
  readonly maxAccountBytes: number
  readonly bus: EventBus<LiveEvent>
  readonly directory: EngineDirectory
  readonly follow: () => Promise<void>
  readonly runModel: RunModel
  readonly outputCheck: OutputCheck
  readonly heartbeat: Heartbeat
  readonly turns: Turns
  readonly clock: Clock
  readonly log: Log
}

export function openWorkerGateway({
  store,
  jobs,
  assets,
  signingKeys,
  outputCheck,
  ...parts
}: GatewayParts): WorkerGateway {
  const usedReleases = () => store.released.usedReleases()
  return createWorkerGateway({
    ...parts,
    ...jobs.runTerms,
    store: store.jobs,
    builds: store.builds,
    buildBlobs: store.buildBlobs,
    bytes: parts.blobs,
    usedReleases,
    artifacts: store.artifacts,
    quotaOf: (accountId) => findQuota({ ...parts, queue: store.artifacts, usedReleases }, accountId),
    links: createBlobLinks(signingKeys, parts.clock),
    assets: store.assets,
    hasBlob: assets.hasBlob,
    outputCheck: { ...outputCheck, storeHeld: assets.storeHeld },
    storageLeft: assets.quota.leftFor,
    registry: store.engines,
    nodes: store.nodes,
    receipts: createOutputReceipts(signingKeys),
  })
}
