/**
 * Makes one artifact under its lease: renews the lease, writes the log while it builds, and says how it went. Whoever has lost the lease
 * stops at once and says nothing more: somebody else builds, or the release is gone.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { keepHead } from '../../../lib/text/cut-text.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { outlastOutage } from '../errors.ts'
import { type ArtifactLease, type ArtifactQueue, MAX_ATTEMPTS, MAX_LOG_BYTES } from './artifact-queue.ts'
import type { BlobKind } from './blob.ts'
import type { Artifact, Release } from './build.ts'
import { type Builder, BuilderLacks, BuildFailure } from './builder.ts'
import { targetText } from './definition.ts'
import type { DiskQuota } from './disk-quota.ts'
import type { ReleaseLock } from './lock.ts'

export interface OneBuildDeps {
  readonly queue: Pick<ArtifactQueue, 'renew' | 'appendLog' | 'noteLock' | 'succeed' | 'fail' | 'passOn' | 'giveBack'>
  readonly builder: Pick<Builder, 'build'>
  /** The bytes of a blob of the account. Throws BuildFailure when they are gone. */
  readonly openBlob: (accountId: string, blobId: string, kind: BlobKind) => Promise<NodeJS.ReadableStream>
  readonly quotaOf: (accountId: string) => Promise<DiskQuota>
  readonly leaseMs: number
  readonly writeLogEveryMs?: number
  readonly clock: Clock
  readonly log: Log
}

export interface ClaimedBuild {
  readonly release: Pick<Release, 'id' | 'accountId' | 'definition'>
  readonly artifact: Pick<Artifact, 'id' | 'target'>
  readonly lock: ReleaseLock | null
}

/** So long a builder takes nothing more after it has passed one on: what it lacks, it would lack for the next one, too. */
export const REST_MS = 600_000
const WRITE_LOG_EVERY_MS = 500
const MAX_REASON_BYTES = 8_000

/** The lease is somebody else's. */
const LOST = new Error('the lease of the build is lost')

/** `passed_on`: another builder makes it, because this one lacks something. */
export async function buildOne(
  deps: OneBuildDeps,
  claimed: ClaimedBuild,
  { leaseId, ending }: { readonly leaseId: string; readonly ending: AbortSignal },
): Promise<'over' | 'passed_on'> {
  const { queue, builder, clock, log, openBlob } = deps
  const { release, artifact, lock } = claimed
  const lease: ArtifactLease = { artifactId: artifact.id, leaseId }
  const facts = { releaseId: release.id, artifactId: artifact.id, target: targetText(artifact.target) }
  const lost = new AbortController()
  const mustHold = (holds: boolean) => {
    if (!holds) lost.abort(LOST)
  }
  const lines = createLines(
    (text) => queue.appendLog(lease, text).then(mustHold),
    deps.writeLogEveryMs ?? WRITE_LOG_EVERY_MS,
  )
  const renewing = keepLease(deps, lease, lost)
  const signal = AbortSignal.any([ending, lost.signal])
  try {
    log.info(facts, 'building a release')
    const quota = await outlastOutage(() => deps.quotaOf(release.accountId), signal)
    const built = await builder.build({
      releaseId: release.id,
      definition: release.definition,
      target: artifact.target,
      ...{ lock, quota },
      openBlob: (blobId, kind) => openBlob(release.accountId, blobId, kind),
      note: async (made) => mustHold(await outlastOutage(() => queue.noteLock(lease, made), signal)),
      say: lines.say,
      signal,
    })
    await lines.end()
    mustHold(await outlastOutage(() => queue.succeed(lease, built, clock.now()), signal))
    log.info(facts, 'built a release')
  } catch (error) {
    await lines.end()
    if (lost.signal.aborted) log.info(facts, 'stopped building a release: it is no longer for this builder')
    else if (ending.aborted) await queue.giveBack(lease)
    else {
      const isOfBuilder = !(error instanceof BuildFailure) || error instanceof BuilderLacks
      if (isOfBuilder) log.error({ ...facts, err: error }, 'building a release failed for a reason of the builder')
      return await outlastOutage(() => giveUp(deps, lease, { reason: toReason(error), isOfBuilder }), signal)
    }
  } finally {
    await renewing()
  }
  return 'over'
}

async function giveUp(
  { queue, clock }: Pick<OneBuildDeps, 'queue' | 'clock'>,
  lease: ArtifactLease,
  { reason, isOfBuilder }: { readonly reason: string; readonly isOfBuilder: boolean },
): Promise<'over' | 'passed_on'> {
  const at = clock.now()
  if (!isOfBuilder) await queue.fail(lease, reason, at)
  else if ((await queue.passOn(lease, { reason, at, maxAttempts: MAX_ATTEMPTS })) === 'passed_on') return 'passed_on'
  return 'over'
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
  { queue, clock, log, leaseMs }: OneBuildDeps,
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
      // No more than this would be kept, however long the store is away.
      if (waiting.length < MAX_LOG_BYTES) waiting += `${line}\n`
      writing ??= flush()
    },
    async end() {
      while (writing !== null) await writing
    },
  }
}
