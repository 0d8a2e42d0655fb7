/**
 * Makes what is queued, one artifact at a time: claims it for as long as it renews the lease, writes its log while it builds, and
 * says how it went. Whoever has lost the lease stops at once and says nothing more: somebody else builds, or the release is gone.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { NewId } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { isStoreAway } from '../errors.ts'
import { type ArtifactQueue, MAX_ATTEMPTS } from './artifact-queue.ts'
import type { BlobKind } from './blob.ts'
import { buildOne, REST_MS } from './build-one.ts'
import type { Builder } from './builder.ts'
import type { DiskQuota } from './disk-quota.ts'

export interface BuildLoopDeps {
  readonly queue: ArtifactQueue
  /** Releases that serve, wait to serve, or may be rolled back to. */
  readonly usedReleases: () => Promise<readonly string[]>
  readonly builder: Builder
  /** Of this process, among the builders of the service. */
  readonly builderId: string
  /** The bytes of a blob of the account. Throws BuildFailure when they are gone. */
  readonly openBlob: (accountId: string, blobId: string, kind: BlobKind) => Promise<NodeJS.ReadableStream>
  /** What the releases of one account may take of the disks of builders. */
  readonly maxAccountBytes: number
  /** No other process can hold a lease. */
  readonly isAlone: boolean
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
  readonly times?: Partial<BuildTimes>
}

interface BuildTimes {
  readonly lookEveryMs: number
  readonly leaseMs: number
  /** How often it says that it is there. */
  readonly announceEveryMs: number
  readonly tidyEveryMs: number
  /** A folder that was finished just now may be one of another process, which has not said so yet. */
  readonly keepYoungMs: number
  /** For so long a release may wait for its first deployment; later it is made again from its lock. */
  readonly keepUnusedMs: number
  /** A model that came for a build which failed, or a part of one, may be what the next build goes on with. */
  readonly keepFetchedMs: number
  readonly writeLogEveryMs: number
}

const USUAL: BuildTimes = {
  lookEveryMs: 2_000,
  leaseMs: 60_000,
  announceEveryMs: 15_000,
  tidyEveryMs: 600_000,
  keepYoungMs: 600_000,
  keepUnusedMs: 7 * 86_400_000,
  keepFetchedMs: 86_400_000,
  writeLogEveryMs: 500,
}
const KEPT_MS = USUAL.keepYoungMs + USUAL.keepUnusedMs
interface LostDeps extends Pick<BuildLoopDeps, 'clock'> {
  readonly queue: Pick<ArtifactQueue, 'requeueLapsed'>
}

/** What a builder was lost with waits for the next one. The service sees to that, because it may have no builder of its own. */
export function createRequeueLost({ queue, clock }: LostDeps): () => Promise<number> {
  return () => queue.requeueLapsed({ now: clock.now(), maxAttempts: MAX_ATTEMPTS, isAlone: false })
}

interface BuildLoop extends AsyncDisposable {
  /** Harmless when called twice. */
  start(): void
}

export function createBuildLoop(deps: BuildLoopDeps): BuildLoop {
  const { queue, builder, builderId, clock, log } = deps
  const times = { ...USUAL, ...deps.times }
  const ending = new AbortController()
  let loops: Promise<void>[] = []

  async function repeat(what: string, everyMs: number, act: () => Promise<boolean | undefined>): Promise<void> {
    while (!ending.signal.aborted) {
      const isBusy = await act().catch((error: unknown) => {
        if (isStoreAway(error)) log.debug({ err: error, what }, 'builds have to wait for the store, which is away')
        else log.error({ err: error, what }, 'a step of the builder failed; it is tried again')
        return false
      })
      if (isBusy !== true) await sleep(everyMs, ending.signal)
    }
  }

  async function announce(): Promise<undefined> {
    const until = new Date(clock.now().getTime() + 4 * times.announceEveryMs)
    await queue.announce({ id: builderId, targets: builder.targets, baseImages: builder.baseImages, until })
  }

  let restsUntil = Number.NEGATIVE_INFINITY
  async function buildNext(): Promise<boolean> {
    const now = clock.now()
    if (now.getTime() < restsUntil) return false
    const leaseId = deps.newId()
    const { targets } = builder
    const until = new Date(now.getTime() + times.leaseMs)
    const claimed = await queue.claim({ leaseId, builder: builderId, targets, now, until })
    if (claimed === null) return false
    const quotaOf = (accountId: string) =>
      findQuota({ ...deps, keptMs: times.keepYoungMs + times.keepUnusedMs }, accountId)
    const end = await buildOne({ ...deps, ...times, quotaOf }, claimed, { leaseId, ending: ending.signal })
    if (end === 'passed_on') restsUntil = clock.now().getTime() + REST_MS
    return true
  }

  let tidiedAt = Number.NEGATIVE_INFINITY
  /** In turns with the builds, so that no folder is removed before its release counts as ready. */
  async function buildOrTidy(): Promise<boolean> {
    const isBusy = await buildNext()
    const now = clock.now().getTime()
    if (now - tidiedAt >= times.tidyEveryMs) {
      await tidy({ ...deps, times }, now)
      tidiedAt = now
    }
    return isBusy
  }

  async function begin(): Promise<void> {
    // What this process held before it was killed need not wait until its lease lapses.
    if (deps.isAlone)
      await queue
        .requeueLapsed({ now: clock.now(), maxAttempts: MAX_ATTEMPTS, isAlone: true })
        .catch((err: unknown) => {
          log.warn({ err }, 'builds that were lost wait until their leases lapse')
        })
    await Promise.all([
      repeat('announce', times.announceEveryMs, announce),
      repeat('build', times.lookEveryMs, buildOrTidy),
    ])
  }

  return {
    start() {
      if (loops.length === 0 && !ending.signal.aborted) loops = [begin()]
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await Promise.all(loops)
      await queue.withdraw(builderId).catch(() => {})
    },
  }
}

interface OneBuild extends BuildLoopDeps {
  readonly times: BuildTimes
}

async function tidy({ queue, builder, usedReleases, log, times }: OneBuild, nowMs: number): Promise<void> {
  const before = { finished: new Date(nowMs - times.keepYoungMs), fetched: new Date(nowMs - times.keepFetchedMs) }
  const unusedSince = before.finished.getTime() - times.keepUnusedMs
  const fresh = (await queue.listReady()).filter(({ finishedAt }) => finishedAt.getTime() > unusedSince)
  const kept = new Set(fresh.map(({ releaseId }) => releaseId))
  // Asked anew for each: a deployment may have been moved to it while others were removed.
  const isKept = async (releaseId: string) => kept.has(releaseId) || (await usedReleases()).includes(releaseId)
  const freedBytes = await builder.keepOnly(isKept, before)
  if (freedBytes > 0) log.info({ freedBytes }, 'removed releases that no deployment uses or can go back to')
}

interface QuotaDeps extends Pick<BuildLoopDeps, 'usedReleases' | 'clock' | 'maxAccountBytes'> {
  readonly queue: Pick<ArtifactQueue, 'listHeld'>
  readonly keptMs?: number
}

/** What the account has that no tidying would remove. */
export async function findQuota(
  { queue, usedReleases, clock, maxAccountBytes, keptMs = KEPT_MS }: QuotaDeps,
  accountId: string,
): Promise<DiskQuota> {
  const finishedAfter = new Date(clock.now().getTime() - keptMs)
  const held = await queue.listHeld({ accountId, finishedAfter, releaseIds: await usedReleases() })
  return { maxBytes: maxAccountBytes, held }
}
