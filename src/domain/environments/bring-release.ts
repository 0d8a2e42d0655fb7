/**
 * Releases that are ready, and whose folder is not on this machine: it went because nothing used it, or it was made on another one. It is
 * made here again from the release's lock, so that it holds the same; the artifact stays ready all the while.
 */
import type { Log } from '../../../lib/log.ts'
import { type Builder, BuildFailure, type BuildRequest, type Staging } from './builder.ts'
import { type BuildTarget, targetText } from './definition.ts'
import { targetOfClass } from './fit.ts'
import type { ReleaseLock } from './lock.ts'

/** Where a release is, seen from this machine. */
export type ReleasePlace =
  | { readonly place: 'here' }
  /** It is being made. */
  | { readonly place: 'coming'; readonly staging?: Staging | undefined }
  /** `reason` says what to do. */
  | { readonly place: 'gone'; readonly reason: string }

/** What a release is made from. */
export interface ReleaseParts extends Pick<BuildRequest, 'definition' | 'openBlob'> {
  readonly lock: ReleaseLock
}

/** null: there is no such release, or it is not made for this target. */
export type FindReleaseParts = (
  accountId: string,
  releaseId: string,
  target: BuildTarget,
) => Promise<ReleaseParts | null>

interface BringDeps {
  readonly find: FindReleaseParts
  readonly builder: Builder
  readonly log: Log
}

export interface BringRelease extends AsyncDisposable {
  /** Begins to make what is not here, each release once at a time. A failure is told once; whoever asks again tries again. */
  bring(accountId: string, releaseId: string, gpuClass: string): Promise<ReleasePlace>
}

const GONE = 'the folder of this release is not on this machine; cut the release again'

const keyOf = (releaseId: string, target: BuildTarget) => `${releaseId} ${targetText(target)}`

export function createBringRelease({ find, builder, log }: BringDeps): BringRelease {
  const ending = new AbortController()
  const underway = new Map<string, Promise<void>>()
  const failed = new Map<string, string>()
  const staged = new Map<string, Staging>()

  async function make(accountId: string, releaseId: string, target: BuildTarget): Promise<ReleasePlace> {
    const release = await find(accountId, releaseId, target)
    if (release === null) return { place: 'gone', reason: GONE }
    const facts = { releaseId, target: targetText(target) }
    const key = keyOf(releaseId, target)
    if (underway.has(key) || ending.signal.aborted) return { place: 'coming' }
    log.info(facts, 'making a release again, from its lock')
    const making = builder
      .build({
        ...{ ...release, releaseId, target, signal: ending.signal },
        note: async () => {},
        stage: (staging) => void staged.set(key, staging),
        say: (line) => log.debug(facts, line),
      })
      .then(
        () => log.info(facts, 'made a release again'),
        (error: unknown) => {
          if (ending.signal.aborted) return
          log.error({ ...facts, err: error }, 'a release could not be made again')
          failed.set(key, error instanceof BuildFailure ? error.problem : GONE)
        },
      )
      .finally(() => {
        underway.delete(key)
        staged.delete(key)
      })
    underway.set(key, making)
    return { place: 'coming' }
  }

  return {
    async bring(accountId, releaseId, gpuClass) {
      const target = targetOfClass(gpuClass, builder)
      if (target === null) return { place: 'gone', reason: `engines of class ${gpuClass} cannot be started here` }
      if ((await builder.find(releaseId, target)) !== null) return { place: 'here' }
      const key = keyOf(releaseId, target)
      if (underway.has(key)) return { place: 'coming', staging: staged.get(key) }
      const reason = failed.get(key)
      failed.delete(key)
      return reason === undefined ? make(accountId, releaseId, target) : { place: 'gone', reason }
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await Promise.all(underway.values())
    },
  }
}
