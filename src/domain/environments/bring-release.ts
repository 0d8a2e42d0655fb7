/**
 * Releases that are ready, and whose folder is not on this machine: it went because nothing used it, or it was made on another one. It is
 * made here again from the release's lock, so that it holds the same; the artifact stays ready all the while.
 */
import type { Log } from '../../../lib/log.ts'
import type { BlobKind } from './blob.ts'
import type { BuildStore } from './build-store.ts'
import { type Builder, BuildFailure } from './builder.ts'
import { targetText } from './definition.ts'

/** Where a release is, seen from this machine. */
export type ReleasePlace =
  | { readonly place: 'here' }
  /** It is being made. */
  | { readonly place: 'coming' }
  /** `reason` says what to do. */
  | { readonly place: 'gone'; readonly reason: string }

interface BringDeps {
  readonly store: Pick<BuildStore, 'findRelease'>
  readonly builder: Builder
  readonly openBlob: (accountId: string, blobId: string, kind: BlobKind) => Promise<NodeJS.ReadableStream>
  readonly log: Log
}

export interface BringRelease extends AsyncDisposable {
  /** Begins to make what is not here, each release once at a time. A failure is told once; whoever asks again tries again. */
  bring(accountId: string, releaseId: string): Promise<ReleasePlace>
}

const GONE = 'the folder of this release is not on this machine; cut the release again'

export function createBringRelease({ store, builder, openBlob, log }: BringDeps): BringRelease {
  const ending = new AbortController()
  const underway = new Map<string, Promise<void>>()
  const failed = new Map<string, string>()

  async function make(accountId: string, releaseId: string): Promise<ReleasePlace> {
    const release = await store.findRelease(accountId, releaseId)
    const made = new Set(builder.targets.map(targetText))
    const artifact = release?.artifacts.find(({ status, target }) => status === 'ready' && made.has(targetText(target)))
    if (release === null || artifact === undefined || artifact.lock === null) return { place: 'gone', reason: GONE }
    const { lock, target } = artifact
    const facts = { releaseId, target: targetText(target) }
    if (underway.has(releaseId) || ending.signal.aborted) return { place: 'coming' }
    log.info(facts, 'making a release again, from its lock')
    const making = builder
      .build({
        ...{ releaseId, target, lock, definition: release.definition, signal: ending.signal },
        openBlob: (blobId, kind) => openBlob(release.accountId, blobId, kind),
        note: async () => {},
        say: (line) => log.debug(facts, line),
      })
      .then(
        () => log.info(facts, 'made a release again'),
        (error: unknown) => {
          if (ending.signal.aborted) return
          log.error({ ...facts, err: error }, 'a release could not be made again')
          failed.set(releaseId, error instanceof BuildFailure ? error.message : GONE)
        },
      )
      .finally(() => underway.delete(releaseId))
    underway.set(releaseId, making)
    return { place: 'coming' }
  }

  return {
    async bring(accountId, releaseId) {
      for (const target of builder.targets)
        if ((await builder.find(releaseId, target)) !== null) return { place: 'here' }
      if (underway.has(releaseId)) return { place: 'coming' }
      const reason = failed.get(releaseId)
      failed.delete(releaseId)
      return reason === undefined ? make(accountId, releaseId) : { place: 'gone', reason }
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await Promise.all(underway.values())
    },
  }
}
