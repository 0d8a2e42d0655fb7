/**
 * Makes what is queued, one artifact at a time: claims it for as long as it renews the lease, writes its log while it builds, and
 * says how it went. Whoever has lost the lease stops at once and says nothing more: somebody else builds, or the release is gone.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { NewId } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import { keepHead } from '../../../lib/text/cut-text.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { isStoreAway } from '../errors.ts'
import type { ArtifactLease, ArtifactQueue, ClaimedArtifact } from './artifact-queue.ts'
import type { BlobKind } from './blob.ts'
import { type Builder, BuildFailure } from './builder.ts'
import { targetText } from './definition.ts'

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
  /** How often it says that it is there, and looks for builds that were lost. */
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
// A builder that was killed in the middle of it three times is perhaps killed by it.
const MAX_ATTEMPTS = 3
const MAX_REASON_BYTES = 8_000

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
    await queue.requeueLapsed({ now: clock.now(), maxAttempts: MAX_ATTEMPTS, isAlone: false })
  }

  async function buildNext(): Promise<boolean> {
    const now = clock.now()
    const leaseId = deps.newId()
    const { targets } = builder
    const until = new Date(now.getTime() + times.leaseMs)
    const claimed = await queue.claim({ leaseId, builder: builderId, targets, now, until })
    if (claimed === null) return false
    await buildOne({ ...deps, times }, claimed, leaseId, ending.signal)
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

/** The lease is somebody else's. */
const LOST = new Error('the lease of the build is lost')

async function buildOne(deps: OneBuild, claimed: ClaimedArtifact, leaseId: string, ending: AbortSignal): Promise<void> {
  const { queue, builder, clock, log, openBlob } = deps
  const { release, artifact, lock } = claimed
  const lease: ArtifactLease = { artifactId: artifact.id, leaseId }
  const facts = { releaseId: release.id, artifactId: artifact.id, target: targetText(artifact.target) }
  const lost = new AbortController()
  const mustHold = (holds: boolean) => {
    if (!holds) lost.abort(LOST)
  }
  const lines = createLines((text) => queue.appendLog(lease, text).then(mustHold), deps.times.writeLogEveryMs)
  const renewing = keepLease(deps, lease, lost)
  const signal = AbortSignal.any([ending, lost.signal])
  try {
    log.info(facts, 'building a release')
    const quota = { maxBytes: deps.maxAccountBytes, held: await listHeld(deps, release.accountId) }
    const built = await builder.build({
      releaseId: release.id,
      definition: release.definition,
      target: artifact.target,
      ...{ lock, quota },
      openBlob: (blobId, kind) => openBlob(release.accountId, blobId, kind),
      note: async (made) => mustHold(await queue.noteLock(lease, made)),
      say: lines.say,
      signal,
    })
    await lines.end()
    mustHold(await queue.succeed(lease, built, clock.now()))
    log.info(facts, 'built a release')
  } catch (error) {
    await lines.end()
    if (lost.signal.aborted) log.info(facts, 'stopped building a release: it is no longer for this builder')
    else if (ending.aborted) await queue.giveBack(lease)
    else {
      if (!(error instanceof BuildFailure))
        log.error({ ...facts, err: error }, 'building a release failed for a reason of the builder')
      await queue.fail(lease, toReason(error), clock.now())
    }
  } finally {
    await renewing()
  }
}

/** What the account has that no tidying would remove. */
async function listHeld({ queue, usedReleases, clock, times }: OneBuild, accountId: string) {
  const finishedAfter = new Date(clock.now().getTime() - times.keepYoungMs - times.keepUnusedMs)
  return queue.listHeld({ accountId, finishedAfter, releaseIds: await usedReleases() })
}

function toReason(error: unknown): string {
  const reason =
    error instanceof BuildFailure
      ? error.message
      : 'start: the builder itself failed; the log of the service says why. Cut the release again'
  return keepHead(reason, MAX_REASON_BYTES)
}

/** Resolves when the renewing has ended, in the function that it returns. */
function keepLease(
  { queue, clock, log, times: { leaseMs } }: OneBuild,
  lease: ArtifactLease,
  lost: AbortController,
): () => Promise<void> {
  const over = new AbortController()
  const renew = async () => {
    let heldUntil = clock.now().getTime() + leaseMs
    while (!over.signal.aborted) {
      await sleep(leaseMs / 3, over.signal)
      if (over.signal.aborted) return
      const until = new Date(clock.now().getTime() + leaseMs)
      const holds = await queue.renew(lease, until).catch((err: unknown) => {
        log.debug({ err }, 'the lease of a build cannot be renewed just now')
        return null
      })
      if (holds === true) heldUntil = until.getTime()
      // Without an answer it may be somebody else's from then on.
      if (holds === false || clock.now().getTime() >= heldUntil) lost.abort(LOST)
    }
  }
  const renewing = renew()
  return async () => {
    over.abort()
    await renewing
  }
}

/** Many lines in one write, in their order; what cannot be written is dropped. */
function createLines(write: (text: string) => Promise<void>, everyMs: number) {
  let waiting = ''
  let writing: Promise<void> | null = null
  async function flush(): Promise<void> {
    while (waiting !== '') {
      const text = waiting
      waiting = ''
      await write(text).catch(() => {})
      if (waiting !== '') await sleep(everyMs)
    }
    writing = null
  }
  return {
    say(line: string) {
      waiting += `${line}\n`
      writing ??= flush()
    },
    async end() {
      while (writing !== null) await writing
    },
  }
}
