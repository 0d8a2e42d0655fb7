/**
 * What builders do: they take artifacts that are queued, each for as long as they hold its lease, and say how it went. Every write
 * carries the lease; one that answers false has come too late, because the lease has lapsed or the release was removed, and the
 * builder stops.
 */
import type { Artifact, Release } from './build.ts'
import type { BaseImage, BuiltRelease } from './builder.ts'
import type { BuildTarget } from './definition.ts'
import type { HeldRelease } from './disk-quota.ts'
import type { ReleaseLock } from './lock.ts'

/** The most that is kept of a log; what comes after is dropped, and the log says so. */
export const MAX_LOG_BYTES = 8 * 1024 * 1024

/** Begun so often, it is perhaps what ends its builders, or nobody here can make it. */
export const MAX_ATTEMPTS = 3

/** One side that builds, for as long as it says that it is there. */
export interface AnnouncedBuilder {
  readonly id: string
  readonly targets: readonly BuildTarget[]
  readonly baseImages: readonly BaseImage[]
  /** From then on it counts as gone. */
  readonly until: Date
}

export interface ArtifactLease {
  readonly artifactId: string
  readonly leaseId: string
}

export interface ClaimedArtifact {
  readonly release: Release
  readonly artifact: Artifact
  /**
   * What is to be made, when that was resolved before: its own lock, else that of another target of the release, whose sources count and
   * whose wheels do not. null: it is resolved now.
   */
  readonly lock: ReleaseLock | null
}

interface ClaimQuery {
  readonly leaseId: string
  /** Who builds, for the operator. */
  readonly builder: string
  readonly targets: readonly BuildTarget[]
  readonly now: Date
  readonly until: Date
}

/** A release that lies ready in folders of builders. */
interface ReadyArtifact {
  readonly releaseId: string
  readonly target: BuildTarget
  readonly sizeBytes: number
  readonly finishedAt: Date
}

export interface ArtifactQueue {
  announce(builder: AnnouncedBuilder): Promise<void>
  withdraw(builderId: string): Promise<void>
  /** Those that are there now. */
  listBuilders(now: Date): Promise<readonly AnnouncedBuilder[]>
  /** Of the account with the fewest builds under way the one that has waited longest; null: nothing waits for these targets. */
  claim(query: ClaimQuery): Promise<ClaimedArtifact | null>
  renew(lease: ArtifactLease, until: Date): Promise<boolean>
  /** Adds to the log, which is bounded and never gets shorter. */
  appendLog(lease: ArtifactLease, text: string): Promise<boolean>
  noteLock(lease: ArtifactLease, lock: ReleaseLock): Promise<boolean>
  succeed(lease: ArtifactLease, built: BuiltRelease, at: Date): Promise<boolean>
  fail(lease: ArtifactLease, reason: string, at: Date): Promise<boolean>
  /**
   * This builder cannot make it, for a reason of its own. It waits for another one that is there for its target; where there is none, or it
   * was begun so often, it has failed.
   */
  passOn(
    lease: ArtifactLease,
    failure: { readonly reason: string; readonly at: Date; readonly maxAttempts: number },
  ): Promise<'passed_on' | 'failed' | 'lost'>
  /** The builder stops before it is done: the artifact waits for the next one, at its place. */
  giveBack(lease: ArtifactLease): Promise<boolean>
  /**
   * Queues artifacts again whose lease has lapsed; those that were lost this many times have failed. `isAlone`: whoever held a lease
   * is gone, but for machines that joined: they still build. Resolves with how many there were.
   */
  requeueLapsed(query: { readonly now: Date; readonly maxAttempts: number; readonly isAlone: boolean }): Promise<number>
  /** Queues what is ready, because its folder is gone. False: it is not ready. */
  requeue(artifactId: string, at: Date): Promise<boolean>
  /** Of the ready ones of an account those that were finished after then, and those that are named. */
  listHeld(query: {
    readonly accountId: string
    readonly finishedAfter: Date
    readonly releaseIds: readonly string[]
  }): Promise<readonly HeldRelease[]>
  /** The newest first. Folders of releases that are not here belong to nobody. */
  listReady(): Promise<readonly ReadyArtifact[]>
}
