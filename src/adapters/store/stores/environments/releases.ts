/** Releases and their artifacts, for those who own them. What builders do to artifacts is in artifact-queue.ts. */
import {
  type ReleaseSummary,
  type ReleaseWithArtifacts,
  toArtifactId,
  toReleaseId,
} from '../../../../domain/environments/build.ts'
import type { BuildLog, Cut, CutOutcome, ReleasePage } from '../../../../domain/environments/build-store.ts'
import { type BuildDefinition, type BuildTarget, targetText } from '../../../../domain/environments/definition.ts'
import { all, get, run, type Steps } from '../../statements/operation.ts'
import { command, insertInto, query, selectFrom } from '../../statements/statement.ts'
import { buildArtifact, buildLog, buildRelease, toldArtifact } from '../../tables/builds.ts'
import { encode, flag, integer, omit, pick, type RowOf, shape } from '../../tables/table.ts'
import { dropUses, useBlobs } from './blob-uses.ts'

const FIND = query(
  'releases.find',
  buildRelease,
  selectFrom(buildRelease, 'WHERE account_id = :accountId AND id = :id'),
)
const FIND_CONTENT = query(
  'releases.findContent',
  buildRelease,
  selectFrom(buildRelease, 'WHERE build_id = :buildId AND content_hash = :contentHash'),
)
const COUNT = query(
  'releases.count',
  shape({ known: integer() }),
  'SELECT count(*) AS known FROM build_release WHERE build_id = :buildId',
)
const COUNT_UNFINISHED = query(
  'releases.countUnfinished',
  shape({ known: integer() }),
  `SELECT count(*) AS known FROM build_artifact WHERE account_id = :accountId AND status IN ('queued', 'building')`,
)
const INSERT = command('releases.insert', insertInto(buildRelease))
const INSERT_ARTIFACT = command('releases.insertArtifact', insertInto(buildArtifact))
const QUEUE_AGAIN = command(
  'releases.queueAgain',
  `UPDATE build_artifact SET status = 'queued', failure_reason = NULL, queued_at = :at, started_at = NULL, finished_at = NULL,
   attempts = 0, lock = CASE WHEN CAST(:isLockKept AS integer) = 1 THEN lock END WHERE id = :id AND status = 'failed'`,
)
const ARTIFACTS = query(
  'releases.artifacts',
  toldArtifact,
  `SELECT ${toldArtifact.columns} FROM build_artifact WHERE release_id = :id ORDER BY position`,
)
const summary = omit(toldArtifact, 'lock', 'classes')
const SUMMARIES = query(
  'releases.artifactSummaries',
  summary,
  (words) =>
    `SELECT ${summary.columns} FROM build_artifact WHERE ${words.isIn('release_id', ':ids')} ORDER BY release_id, position`,
)
const listed = omit(buildRelease, 'definition', 'contentHash')
const LIST = query(
  'releases.list',
  listed,
  selectFrom(
    buildRelease,
    'WHERE account_id = :accountId AND build_id = :buildId AND version < :before ORDER BY version DESC LIMIT :limit',
    listed,
  ),
)
const ids = pick(buildRelease, 'id')
const IDS = query('releases.ids', ids, selectFrom(buildRelease, 'WHERE build_id = :buildId', ids))
const DROP = [
  'DELETE FROM build_log WHERE artifact_id IN (SELECT id FROM build_artifact WHERE release_id = :id)',
  'DELETE FROM build_artifact WHERE release_id = :id',
  'DELETE FROM build_release WHERE id = :id',
].map((text, index) => command(`releases.drop${index}`, text))
const LOG_STATE = query(
  'releases.logState',
  shape({ isLogTruncated: flag() }),
  'SELECT is_log_truncated FROM build_artifact WHERE account_id = :accountId AND id = :id',
)
const logText = pick(buildLog, 'text')
const LOG = query('releases.log', logText, selectFrom(buildLog, 'WHERE artifact_id = :id ORDER BY position', logText))

type StoredRelease = RowOf<typeof buildRelease>

export function* findOwnRelease(accountId: string, id: string): Steps<ReleaseWithArtifacts | null> {
  const found = yield* get(FIND, { accountId, id })
  if (found === undefined) return null
  const { contentHash: _, ...release } = found
  return { ...release, artifacts: yield* all(ARTIFACTS, { id }) }
}

export function* listReleases(
  accountId: string,
  buildId: string,
  { before, limit }: ReleasePage,
): Steps<readonly ReleaseSummary[]> {
  const releases = yield* all(LIST, { accountId, buildId, before: before ?? 2_147_483_647, limit })
  return yield* withArtifacts(releases)
}

function* withArtifacts(releases: readonly Omit<ReleaseSummary, 'artifacts'>[]): Steps<readonly ReleaseSummary[]> {
  const artifacts = yield* all(SUMMARIES, { ids: releases.map(({ id }) => id) })
  const byRelease = Map.groupBy(artifacts, ({ releaseId }) => releaseId)
  return releases.map((release) => ({ ...release, artifacts: byRelease.get(release.id) ?? [] }))
}

export function* releaseIdsOf(buildId: string): Steps<readonly string[]> {
  return (yield* all(IDS, { buildId })).map(({ id }) => id)
}

export function* dropRelease(id: string, at: Date): Steps<void> {
  yield* dropUses(id, at)
  for (const drop of DROP) yield* run(drop, { id })
}

interface CutBuild {
  readonly definition: BuildDefinition
  readonly lastVersion: number
}

/** Under the account's lock. */
export function* cut(wanted: Cut, { definition, lastVersion }: CutBuild): Steps<CutOutcome> {
  const { accountId, buildId, contentHash, targets, createdBy, at, limits } = wanted
  const known = yield* get(FIND_CONTENT, { buildId, contentHash })
  const version = lastVersion + 1
  const release: StoredRelease = known ?? {
    ...{ id: toReleaseId(buildId, contentHash, version), accountId, buildId, version, contentHash, definition },
    ...{ createdBy, createdAt: at },
  }
  if (known === undefined && ((yield* get(COUNT, { buildId }))?.known ?? 0) >= limits.releases)
    return { outcome: 'too_many_releases' }
  const before = yield* all(ARTIFACTS, { id: release.id })
  const wantedTargets = new Set(targets.map(targetText))
  const failed = before.filter(({ target, status }) => status === 'failed' && wantedTargets.has(targetText(target)))
  const has = new Set(before.map(({ target }) => targetText(target)))
  const added = targets.filter((target) => !has.has(targetText(target)))
  const queued = failed.length + added.length
  const unfinished = (yield* get(COUNT_UNFINISHED, { accountId }))?.known ?? 0
  if (queued > 0 && unfinished + queued > limits.unfinished) return { outcome: 'too_many_unfinished' }
  if (known === undefined) {
    yield* run(INSERT, encode(buildRelease, release))
    // They are there: the build names them too, and nothing removes what is named.
    yield* useBlobs({ accountId, holder: release.id, at }, definition)
  }
  // What was resolved for a release that was never made binds nobody, and may be why it was not.
  const isLockKept = Number(before.some(({ status }) => status === 'ready'))
  for (const { id } of failed) yield* run(QUEUE_AGAIN, { id, at, isLockKept })
  for (const [index, target] of added.entries())
    yield* run(INSERT_ARTIFACT, encode(buildArtifact, newArtifact(release, target, before.length + index, at)))
  const [told] = yield* withArtifacts([toListed(release)])
  return { outcome: 'cut', release: told, isNew: known === undefined, queued }
}

function toListed({ contentHash: _, definition: __, ...rest }: StoredRelease): Omit<ReleaseSummary, 'artifacts'> {
  return rest
}

function newArtifact(
  { id: releaseId, accountId }: StoredRelease,
  target: BuildTarget,
  position: number,
  at: Date,
): RowOf<typeof buildArtifact> {
  return {
    ...{ id: toArtifactId(releaseId, target), releaseId, accountId, position, target, status: 'queued' },
    ...{ failureReason: null, queuedAt: at, startedAt: null, finishedAt: null, attempts: 0, lock: null },
    ...{ archiveSha256: null, sizeBytes: null, classes: null, logBytes: 0, isLogTruncated: false, builder: null },
    ...{ leaseId: null, leaseUntil: null },
  }
}

export function* readLog(accountId: string, id: string): Steps<BuildLog | null> {
  const state = yield* get(LOG_STATE, { accountId, id })
  if (state === undefined) return null
  const text = (yield* all(LOG, { id })).map((piece) => piece.text).join('')
  return { text, isTruncated: state.isLogTruncated }
}
