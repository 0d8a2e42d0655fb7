/** What builders do to artifacts: each write is one statement under the lease, or begins with one that locks the row under it. */
import { type ArtifactQueue, MAX_LOG_BYTES } from '../../../../domain/environments/artifact-queue.ts'
import { targetText } from '../../../../domain/environments/definition.ts'
import type { HeldRelease } from '../../../../domain/environments/disk-quota.ts'
import { all, chore, defineStore, durable, get, read, relaxed, run, type Steps } from '../../statements/operation.ts'
import { command, insertInto, query, selectFrom, upsertInto } from '../../statements/statement.ts'
import { buildArtifact, builder, buildLog, buildRelease, toldArtifact } from '../../tables/builds.ts'
import { encode, integer, json, pick, shape, text } from '../../tables/table.ts'

const ANNOUNCE = command('builders.announce', upsertInto(builder))
const WITHDRAW = command('builders.withdraw', 'DELETE FROM builder WHERE id = :id')
const DROP_GONE = command('builders.dropGone', 'DELETE FROM builder WHERE until <= :now')
const BUILDERS = query('builders.list', builder, selectFrom(builder, 'WHERE until > :now ORDER BY id'))

const CLAIM = query(
  'artifacts.claim',
  toldArtifact,
  (words) => `
    UPDATE build_artifact SET status = 'building', attempts = attempts + 1, started_at = :now, finished_at = NULL,
      builder = :builder, lease_id = :leaseId, lease_until = :until
    WHERE id = (
      SELECT id FROM build_artifact AS waiting WHERE status = 'queued' AND ${words.isIn('target', ':targets')}
      ORDER BY (SELECT count(*) FROM build_artifact AS busy WHERE busy.account_id = waiting.account_id AND busy.status = 'building'),
        queued_at, release_id, position
      LIMIT 1 ${words.either('', 'FOR UPDATE OF waiting SKIP LOCKED')})
    RETURNING ${toldArtifact.columns}`,
)
const RELEASE = query('artifacts.release', buildRelease, selectFrom(buildRelease, 'WHERE id = :releaseId'))
const locked = pick(buildArtifact, 'lock')
// Of one that is ready before others: that is what runs.
const OTHER_LOCK = query(
  'artifacts.otherLock',
  locked,
  selectFrom(
    buildArtifact,
    `WHERE release_id = :releaseId AND lock IS NOT NULL ORDER BY CASE status WHEN 'ready' THEN 0 ELSE 1 END, position LIMIT 1`,
    locked,
  ),
)

const UNDER_LEASE = `WHERE id = :artifactId AND lease_id = :leaseId AND status = 'building'`
const RENEW = command('artifacts.renew', `UPDATE build_artifact SET lease_until = :until ${UNDER_LEASE}`)
const NOTE_LOCK = command('artifacts.noteLock', `UPDATE build_artifact SET lock = :lock ${UNDER_LEASE}`)
const NO_LEASE = 'lease_id = NULL, lease_until = NULL'
const SUCCEED = command(
  'artifacts.succeed',
  `UPDATE build_artifact SET status = 'ready', finished_at = :at, lock = :lock, archive_sha256 = :archiveSha256,
   size_bytes = :sizeBytes, classes = :classes, failure_reason = NULL, ${NO_LEASE} ${UNDER_LEASE}`,
)
const FAIL = command(
  'artifacts.fail',
  `UPDATE build_artifact SET status = 'failed', finished_at = :at, failure_reason = :reason, ${NO_LEASE} ${UNDER_LEASE}`,
)
const GIVE_BACK = command(
  'artifacts.giveBack',
  `UPDATE build_artifact SET status = 'queued', attempts = attempts - 1, started_at = NULL, ${NO_LEASE} ${UNDER_LEASE}`,
)
const passing = pick(buildArtifact, 'target', 'builder', 'attempts')
const PASSING = query('artifacts.passing', passing, (words) =>
  selectFrom(buildArtifact, `${UNDER_LEASE} ${words.lock('UPDATE')}`, passing),
)
const PASS_ON = command(
  'artifacts.passOn',
  `UPDATE build_artifact SET status = 'queued', started_at = NULL, ${NO_LEASE} ${UNDER_LEASE}`,
)
// Leases of machines that joined have the key of the machine and a dot before their name.
const REQUEUE_LAPSED = command(
  'artifacts.requeueLapsed',
  `UPDATE build_artifact SET status = CASE WHEN attempts >= :maxAttempts THEN 'failed' ELSE 'queued' END,
     failure_reason = CASE WHEN attempts >= :maxAttempts THEN :reason END,
     finished_at = CASE WHEN attempts >= :maxAttempts THEN CAST(:now AS bigint) END, ${NO_LEASE}
   WHERE status = 'building' AND
     (lease_until IS NULL OR lease_until <= :now OR (CAST(:isAlone AS integer) = 1 AND lease_id NOT LIKE '%.%'))`,
)
const REQUEUE = command(
  'artifacts.requeue',
  `UPDATE build_artifact SET status = 'queued', queued_at = :at, started_at = NULL, finished_at = NULL, attempts = 0
   WHERE id = :artifactId AND status = 'ready'`,
)
const ready = pick(buildArtifact, 'releaseId', 'target', 'sizeBytes', 'finishedAt')
const LIST_READY = query(
  'artifacts.listReady',
  ready,
  selectFrom(buildArtifact, `WHERE status = 'ready' ORDER BY finished_at DESC, id`, ready),
)
const held = shape({ releaseId: text(), sizeBytes: integer(), models: json<HeldRelease['models']>() })
const LIST_HELD = query('artifacts.listHeld', held, (words) => {
  const models = words.either(`json_extract(lock, '$.models')`, `(lock::json -> 'models')::text`)
  return `SELECT release_id, coalesce(size_bytes, 0) AS size_bytes, coalesce(${models}, '[]') AS models FROM build_artifact
    WHERE account_id = :accountId AND status = 'ready'
      AND (finished_at > :finishedAfter OR ${words.isIn('release_id', ':releaseIds')})`
})

const logState = pick(buildArtifact, 'logBytes', 'isLogTruncated')
const LOG_STATE = query('artifacts.logState', logState, (words) =>
  selectFrom(buildArtifact, `${UNDER_LEASE} ${words.lock('NO KEY UPDATE')}`, logState),
)
const LOG_GROWS = command(
  'artifacts.logGrows',
  'UPDATE build_artifact SET log_bytes = :logBytes, is_log_truncated = :isLogTruncated WHERE id = :artifactId',
)
const APPEND = command('artifacts.append', insertInto(buildLog))

const LOST = 'start: the builder was lost each time that it made this; look at its own log, then cut the release again'
const CUT_NOTICE = '\n[the rest of this log was dropped: it is too long]\n'

/** What every database can hold: Postgres refuses the character 0, and half of a pair is no text. */
const storable = (text: string) => text.replaceAll('\0', '').toWellFormed()

type Lease = Parameters<ArtifactQueue['renew']>[0]

function* appendLog({ artifactId, leaseId }: Lease, added: string): Steps<boolean> {
  const state = yield* get(LOG_STATE, { artifactId, leaseId })
  if (state === undefined) return false
  const text = storable(added)
  if (state.isLogTruncated || text === '') return true
  const bytes = Buffer.from(text)
  const room = MAX_LOG_BYTES - state.logBytes
  const isCut = bytes.length > room
  // A character that is cut in two is left out.
  const kept = isCut ? new TextDecoder().decode(bytes.subarray(0, room)).replace(/\uFFFD$/, '') + CUT_NOTICE : text
  const logBytes = state.logBytes + Buffer.byteLength(kept)
  yield* run(APPEND, encode(buildLog, { artifactId, position: state.logBytes, text: kept }))
  yield* run(LOG_GROWS, { artifactId, logBytes, isLogTruncated: Number(isCut) })
  return true
}

const underLease = (lease: Lease) => ({ artifactId: lease.artifactId, leaseId: lease.leaseId })

export const artifactQueue = defineStore<ArtifactQueue>('artifacts', {
  announce: relaxed(
    function* (announced) {
      yield* run(ANNOUNCE, encode(builder, announced))
    },
    { isRepeatable: true },
  ),
  withdraw: relaxed(
    function* (id) {
      yield* run(WITHDRAW, { id })
    },
    { isRepeatable: true },
  ),
  listBuilders: read(function* (now) {
    return yield* all(BUILDERS, { now })
  }),
  claim: durable(function* ({ leaseId, builder: by, targets, now, until }) {
    const wanted = targets.map(targetText)
    const artifact = yield* get(CLAIM, { leaseId, builder: by, targets: wanted, now, until })
    if (artifact === undefined) return null
    const { releaseId } = artifact
    const found = yield* get(RELEASE, { releaseId })
    if (found === undefined) throw new Error(`The artifact ${artifact.id} has no release.`)
    const { contentHash: _, ...release } = found
    const lock = artifact.lock ?? (yield* get(OTHER_LOCK, { releaseId }))?.lock ?? null
    return { release, artifact, lock }
  }),
  renew: relaxed(
    function* (lease, until) {
      return (yield* run(RENEW, { ...underLease(lease), until })) > 0
    },
    { isEssential: true, isRepeatable: true },
  ),
  appendLog: relaxed(appendLog, { isTransaction: true, weigh: (_, text) => text.length }),
  noteLock: durable(
    function* (lease, lock) {
      return (yield* run(NOTE_LOCK, { ...underLease(lease), ...encode(locked, { lock }) })) > 0
    },
    { isRepeatable: true },
  ),
  succeed: durable(function* (lease, { lock, archiveSha256, sizeBytes, classes }, at) {
    const made = encode(buildArtifact, { lock, archiveSha256, sizeBytes, classes })
    return (yield* run(SUCCEED, { ...underLease(lease), ...made, at })) > 0
  }),
  fail: durable(
    function* (lease, reason, at) {
      return (yield* run(FAIL, { ...underLease(lease), reason: storable(reason), at })) > 0
    },
    { isEssential: true },
  ),
  passOn: durable(
    function* (lease, { reason, at, maxAttempts }) {
      const own = yield* get(PASSING, underLease(lease))
      if (own === undefined) return 'lost'
      const target = targetText(own.target)
      const others = (yield* all(BUILDERS, { now: at })).filter(
        ({ id, targets }) => id !== own.builder && targets.some((each) => targetText(each) === target),
      )
      const isLeft = others.length > 0 && own.attempts < maxAttempts
      if (isLeft) yield* run(PASS_ON, underLease(lease))
      else yield* run(FAIL, { ...underLease(lease), reason: storable(reason), at })
      return isLeft ? 'passed_on' : 'failed'
    },
    { isEssential: true },
  ),
  giveBack: durable(
    function* (lease) {
      return (yield* run(GIVE_BACK, underLease(lease))) > 0
    },
    { isEssential: true },
  ),
  requeueLapsed: chore(
    function* ({ now, maxAttempts, isAlone }) {
      yield* run(DROP_GONE, { now })
      return yield* run(REQUEUE_LAPSED, { now, maxAttempts, reason: LOST, isAlone: Number(isAlone) })
    },
    { isEssential: true },
  ),
  requeue: durable(function* (artifactId, at) {
    return (yield* run(REQUEUE, { artifactId, at })) > 0
  }),
  listHeld: read(function* (wanted) {
    return yield* all(LIST_HELD, wanted)
  }),
  listReady: read(function* () {
    return (yield* all(LIST_READY)).map(({ sizeBytes, finishedAt, ...rest }) => ({
      ...rest,
      sizeBytes: sizeBytes ?? 0,
      finishedAt: finishedAt ?? new Date(0),
    }))
  }),
})
