/**
 * Releases on machines that joined: what each is to serve, and what it needs to make the folder of one. A machine reads the releases that it
 * was told to serve and the files that these name, and takes jobs of their copies; of any other release it learns nothing.
 */
import type { Readable } from 'node:stream'
import type { BlobStore, ByteRange } from '../assets/blob-store.ts'
import type { WantedCopy } from '../deployments/released/copy-engines.ts'
import type { MachinePlans } from '../deployments/released/shared-copies.ts'
import { readCopyPool } from '../engine/copy-pool.ts'
import type { BuildBlobStore } from '../environments/build-blob-store.ts'
import type { BuildStore } from '../environments/build-store.ts'
import { type BuildDefinition, blobsOf, targetText } from '../environments/definition.ts'
import type { ReleaseLock } from '../environments/lock.ts'
import { ServiceError } from '../errors.ts'
import { toNodeId } from './held-claims.ts'
import type { WorkerIdentity } from './worker-keys.ts'

interface LockedRelease {
  readonly definition: BuildDefinition
  readonly lock: ReleaseLock
}

interface BlobContent {
  readonly sizeBytes: number
  open(range?: ByteRange): Promise<Readable>
}

export interface WorkerReleases {
  /** What the machine is to have now; nothing under a key without the right. */
  assigned(worker: WorkerIdentity, instanceId: string): Promise<readonly WantedCopy[]>
  /** Whether the machine may take jobs of a pool, and offer engines for it. */
  mayServe(worker: WorkerIdentity, instanceId: string, pool: string): Promise<boolean>
  /** `target`: as `os/gpu`. Throws not_found for what the machine is not to serve, or is not made for the target. */
  find(
    worker: WorkerIdentity,
    instanceId: string,
    wanted: { readonly releaseId: string; readonly target: string },
  ): Promise<LockedRelease>
  /** Whether a deployment serves the release or may go back to it. Throws forbidden for a key without the right. */
  isUsed(worker: WorkerIdentity, releaseId: string): Promise<boolean>
  /** Throws not_found, also for a file that the release does not name. */
  openBlob(
    worker: WorkerIdentity,
    instanceId: string,
    wanted: { readonly releaseId: string; readonly blobId: string },
  ): Promise<BlobContent>
}

export interface WorkerReleasesDeps {
  readonly plans: Pick<MachinePlans, 'read'>
  readonly builds: Pick<BuildStore, 'findRelease'>
  readonly buildBlobs: Pick<BuildBlobStore, 'find'>
  readonly bytes: Pick<BlobStore, 'open' | 'stat'>
  /** Of all accounts. */
  readonly usedReleases: () => Promise<readonly string[]>
}

export function createWorkerReleases(deps: WorkerReleasesDeps): WorkerReleases {
  const { plans, builds, buildBlobs, bytes } = deps

  async function assigned(worker: WorkerIdentity, instanceId: string): Promise<readonly WantedCopy[]> {
    return worker.hasBuilds ? ((await plans.read()).get(toNodeId(worker, instanceId)) ?? []) : []
  }

  /** The same answer for a release that is not there and for one that is another machine's. */
  async function mustFind(worker: WorkerIdentity, instanceId: string, releaseId: string) {
    const copy = (await assigned(worker, instanceId)).find((each) => each.releaseId === releaseId)
    const release = copy === undefined ? null : await builds.findRelease(copy.accountId, releaseId)
    if (release !== null) return release
    throw new ServiceError('not_found', 'this machine is to serve no such release')
  }

  return {
    assigned,
    async mayServe(worker, instanceId, pool) {
      if (readCopyPool(pool) === null) return worker.pools.has(pool)
      return (await assigned(worker, instanceId)).some((copy) => copy.pool === pool)
    },
    async find(worker, instanceId, { releaseId, target }) {
      const { definition, artifacts } = await mustFind(worker, instanceId, releaseId)
      const made = artifacts.find((each) => each.status === 'ready' && targetText(each.target) === target)
      if (made?.lock == null) throw new ServiceError('not_found', `this release is not made for ${target}`)
      return { definition, lock: made.lock }
    },
    async isUsed({ hasBuilds }, releaseId) {
      if (!hasBuilds) throw new ServiceError('forbidden', 'this key may serve no releases')
      return (await deps.usedReleases()).includes(releaseId)
    },
    async openBlob(worker, instanceId, { releaseId, blobId }) {
      const { accountId, definition } = await mustFind(worker, instanceId, releaseId)
      const kind = blobsOf(definition).get(blobId)
      const blob = kind === undefined ? null : await buildBlobs.find(accountId, blobId)
      const hash = blob?.kind === kind ? (blob?.hash ?? null) : null
      const stat = hash === null ? null : await bytes.stat(hash)
      if (hash === null || stat === null) throw new ServiceError('not_found', 'this release has no such file')
      return { sizeBytes: stat.sizeBytes, open: (range) => bytes.open(hash, range) }
    },
  }
}
