/** The engines of copies, as deployments on releases need them. Implemented where engines are started. */
import type { ReleasePlace } from '../../environments/bring-release.ts'

export interface WantedCopy {
  readonly pool: string
  /** Whose release it is. */
  readonly accountId: string
  readonly releaseId: string
  /** Which machines it runs on, and so which of the release's folders is taken. */
  readonly gpuClass: string
  /** How many of its engines are to be up; 0: those that it has sleep, and what they can run stays known. */
  readonly engines: number
}

export interface CopyState {
  /** Processes that were started, whether or not they answer yet. */
  readonly up: number
  /** They answer and have said what they can run. */
  readonly ready: number
  readonly busy: number
  /** Why none becomes ready, after it was tried more than once; null: it may still. */
  readonly failure: string | null
}

export interface CopyEngines {
  /** Whether a release is on this machine; one that can be made here is begun. */
  place(accountId: string, releaseId: string, gpuClass: string): Promise<ReleasePlace>
  /**
   * These in this order, as far as there is room; all others end, each when its run does. Resolves when what can be done now is under way,
   * and never rejects for an engine that cannot be started.
   */
  keep(copies: readonly WantedCopy[]): Promise<void>
  /** Another process looks after all copies: those that run here end. */
  letGo(): Promise<void>
  look(pool: string): CopyState
  /** How many engines of all copies may be up at a time. */
  readonly room: number
}
