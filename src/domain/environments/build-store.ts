/** Records of builds and their releases. Whatever is asked for by id is asked for with its account. */
import type { Build, BuildSummary, ReleaseSummary, ReleaseWithArtifacts } from './build.ts'
import type { BuildDefinition, BuildTarget } from './definition.ts'

export interface BuildChange {
  readonly definition: BuildDefinition
  /** null: as it is. */
  readonly name: string | null
  readonly description: string | null
  /** The revision that the change was made from; null: whatever is there. */
  readonly expected: Date | null
  readonly at: Date
}

export interface Cut {
  readonly accountId: string
  readonly buildId: string
  /** The revision whose definition was judged. */
  readonly updatedAt: Date
  readonly contentHash: string
  readonly targets: readonly BuildTarget[]
  readonly createdBy: string | null
  readonly at: Date
  readonly limits: {
    /** Of a build. */
    readonly releases: number
    /** Artifacts of the account that are not made yet. */
    readonly unfinished: number
  }
}

/** An object, because an audit line says how it ended. */
export type CutOutcome =
  /** `queued`: how many artifacts were queued by this cut; none when everything is there or under way. */
  | { readonly outcome: 'cut'; readonly release: ReleaseSummary; readonly isNew: boolean; readonly queued: number }
  | { readonly outcome: 'no_build' }
  /** The build is not at this revision. */
  | { readonly outcome: 'changed' }
  | { readonly outcome: 'too_many_releases' }
  | { readonly outcome: 'too_many_unfinished' }

/** `missing_blobs`: what the definition names that its definition names is not the account's, or has no bytes yet. */
export type SaveOutcome =
  | { readonly outcome: 'saved'; readonly build: Build }
  | { readonly outcome: 'missing_blobs'; readonly blobIds: readonly string[] }
  | { readonly outcome: 'too_many' }
  | { readonly outcome: 'unknown' }
  | { readonly outcome: 'changed' }

interface BuildPage {
  /** The id of the last one of the page before. */
  readonly after: string | null
  readonly limit: number
}

export interface ReleasePage {
  /** The version of the last one of the page before. */
  readonly before: number | null
  readonly limit: number
}

export interface BuildLog {
  readonly text: string
  /** What came after it was dropped. */
  readonly isTruncated: boolean
}

export interface BuildStore {
  /** `limit`: how many builds an account may have. */
  create(build: Omit<Build, 'updatedAt' | 'lastVersion'>, limit: number): Promise<SaveOutcome>
  find(accountId: string, id: string): Promise<Build | null>
  /** The newest first. */
  list(accountId: string, page: BuildPage): Promise<readonly BuildSummary[]>
  change(accountId: string, id: string, change: BuildChange): Promise<SaveOutcome>
  /** With its releases. False: it is unknown. */
  remove(accountId: string, id: string, at: Date): Promise<boolean>
  /** Queues what is missing or has failed; the same content is the same release. */
  cut(cut: Cut): Promise<CutOutcome>
  findRelease(accountId: string, id: string): Promise<ReleaseWithArtifacts | null>
  /** The newest first. */
  listReleases(accountId: string, buildId: string, page: ReleasePage): Promise<readonly ReleaseSummary[]>
  /** With its artifacts and logs; a build of it that is under way loses its lease. False: it is unknown. */
  removeRelease(accountId: string, id: string, at: Date): Promise<boolean>
  /** null: the account has no such artifact. */
  readLog(accountId: string, artifactId: string): Promise<BuildLog | null>
}
