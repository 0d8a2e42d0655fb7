/**
 * Builds on machines that joined: each takes an artifact for a platform that it makes releases for, under a lease that bears its key, and says
 * how it went. Of the account it learns the definition, and reads the files that this names by addresses that are good for a day.
 */
import type { Clock } from '../../../lib/clock.ts'
import { type ArtifactQueue, MAX_ATTEMPTS } from '../environments/artifact-queue.ts'
import type { BlobLinks } from '../environments/blob-links.ts'
import type { ClaimedBuild } from '../environments/build-one.ts'
import type { BaseImage, BuiltRelease } from '../environments/builder.ts'
import { blobsOf, readTarget } from '../environments/definition.ts'
import type { DiskQuota } from '../environments/disk-quota.ts'
import type { ReleaseLock } from '../environments/lock.ts'
import { ServiceError } from '../errors.ts'
import { toLeaseId, toNodeId } from './held-claims.ts'
import type { WorkerIdentity } from './worker-keys.ts'

export interface OfferedBuild extends ClaimedBuild {
  readonly quota: DiskQuota
  /** Of its files, by their ids: host-relative, without the mount prefix. */
  readonly links: Readonly<Record<string, string>>
}

export type BuildMove =
  | { readonly move: 'renew' | 'give_back' }
  | { readonly move: 'log'; readonly text: string }
  | { readonly move: 'lock'; readonly lock: ReleaseLock }
  | { readonly move: 'succeed'; readonly built: BuiltRelease }
  | { readonly move: 'fail'; readonly reason: string }
  | { readonly move: 'pass_on'; readonly reason: string }

interface NamedBuild {
  readonly artifactId: string
  /** As the machine calls it. */
  readonly leaseId: string
}

/** Everything throws forbidden for a key without the right. */
export interface WorkerBuilds {
  mustBuild(worker: WorkerIdentity): void
  /** Says that releases for these platforms are made on the machine. */
  announce(worker: WorkerIdentity, instanceId: string, baseImages: readonly BaseImage[]): Promise<void>
  leave(worker: WorkerIdentity, instanceId: string): Promise<void>
  /** null: nothing waits for these platforms. `targets`: as `os/gpu`. */
  claim(
    worker: WorkerIdentity,
    instanceId: string,
    wanted: { readonly leaseId: string; readonly targets: readonly string[] },
  ): Promise<OfferedBuild | null>
  /** Whether the lease still stood; where it did not, nothing was written. `isPassedOn`: another builder makes it then. */
  write(
    worker: WorkerIdentity,
    build: NamedBuild,
    move: BuildMove,
  ): Promise<{ readonly isHeld: boolean; readonly isPassedOn: boolean }>
}

export interface WorkerBuildsDeps {
  readonly artifacts: ArtifactQueue
  readonly quotaOf: (accountId: string) => Promise<DiskQuota>
  readonly links: Pick<BlobLinks, 'sign'>
  readonly clock: Clock
}

const LEASE_MS = 60_000
/** Four times as long as machines wait before they say it again. */
const ANNOUNCED_MS = 60_000
const LINK_MS = 86_400_000

export function createWorkerBuilds({ artifacts, quotaOf, links, clock }: WorkerBuildsDeps): WorkerBuilds {
  const after = (ms: number) => new Date(clock.now().getTime() + ms)

  async function passOn(lease: NamedBuild, reason: string) {
    const outcome = await artifacts.passOn(lease, { reason, at: clock.now(), maxAttempts: MAX_ATTEMPTS })
    return { isHeld: outcome !== 'lost', isPassedOn: outcome === 'passed_on' }
  }

  function move(lease: NamedBuild, given: Exclude<BuildMove, { readonly move: 'pass_on' }>): Promise<boolean> {
    switch (given.move) {
      case 'renew':
        return artifacts.renew(lease, after(LEASE_MS))
      case 'give_back':
        return artifacts.giveBack(lease)
      case 'log':
        return artifacts.appendLog(lease, given.text)
      case 'lock':
        return artifacts.noteLock(lease, given.lock)
      case 'succeed':
        return artifacts.succeed(lease, given.built, clock.now())
      case 'fail':
        return artifacts.fail(lease, given.reason, clock.now())
    }
  }

  return {
    mustBuild,
    async announce(worker, instanceId, baseImages) {
      mustBuild(worker)
      const targets = [
        ...new Map(
          baseImages.flatMap((image) => image.targets).map((each) => [`${each.os}/${each.gpu}`, each]),
        ).values(),
      ]
      await artifacts.announce({ id: toNodeId(worker, instanceId), targets, baseImages, until: after(ANNOUNCED_MS) })
    },
    leave: (worker, instanceId) => artifacts.withdraw(toNodeId(worker, instanceId)),
    async claim(worker, instanceId, { leaseId, targets }) {
      mustBuild(worker)
      const claimed = await artifacts.claim({
        leaseId: toLeaseId(worker, leaseId),
        builder: toNodeId(worker, instanceId),
        targets: targets.map(readTarget),
        now: clock.now(),
        until: after(LEASE_MS),
      })
      if (claimed === null) return null
      const { release, artifact, lock } = claimed
      const named = [...blobsOf(release.definition).keys()]
      return {
        ...{ release, artifact, lock, quota: await quotaOf(release.accountId) },
        links: Object.fromEntries(named.map((id) => [id, links.sign(id, 'get', after(LINK_MS))])),
      }
    },
    async write(worker, { artifactId, leaseId }, given) {
      mustBuild(worker)
      const lease = { artifactId, leaseId: toLeaseId(worker, leaseId) }
      if (given.move === 'pass_on') return passOn(lease, given.reason)
      return { isHeld: await move(lease, given), isPassedOn: false }
    },
  }
}

function mustBuild({ hasBuilds }: WorkerIdentity): void {
  if (!hasBuilds) throw new ServiceError('forbidden', 'this key may make no releases; one made with --builds may')
}
