/** Changes of the queue by hand: pauses, the place of a job that waits, and the end of a hold. */
import { isUuid } from '../../../../../lib/ids.ts'
import type { ChangeOutcome, QueueStore, WaitingChange } from '../../../../domain/jobs/queue/queue-store.ts'
import { PRIORITY_LIMIT } from '../../../../domain/jobs/submit/submit-times.ts'
import { HELD_BELOW, HELD_LIMIT, type JobRow, toJob, toPriority } from '../../rows/jobs/job.ts'
import { all, defineStore, durable, get, read, run, type Steps } from '../../statements/operation.ts'
import { command, query } from '../../statements/statement.ts'
import { jobRow } from '../../tables/jobs.ts'
import { queuePause } from '../../tables/service.ts'
import { encode, moment, pick, shape } from '../../tables/table.ts'
import { findPositions } from '../queue-positions.ts'
import { LOCK } from './cancel-job.ts'
import { findVisible, LIVE_COLUMNS, listOutputs } from './find-job.ts'
import { pausedNames } from './queue-pauses.ts'

const PAUSE = command(
  'queue.pause',
  `INSERT INTO queue_pause (scope, name, reason, paused_at) VALUES (:scope, :name, :reason, :pausedAt)
   ON CONFLICT (scope, name) DO UPDATE SET reason = excluded.reason`,
)
const RESUME = query(
  'queue.resume',
  queuePause,
  `DELETE FROM queue_pause WHERE scope = :scope AND name = :name RETURNING ${queuePause.columns}`,
)
const LIST = query(
  'queue.listPauses',
  queuePause,
  `SELECT ${queuePause.columns} FROM queue_pause ORDER BY scope, name LIMIT 1000`,
)
const FIND = query(
  'queue.findPauses',
  queuePause,
  `SELECT ${queuePause.columns} FROM queue_pause
   WHERE scope = 'service' OR (scope = 'pool' AND name IN (:pausedPool, :pausedDeployment))
     OR (scope IN ('account', 'own') AND name = :accountId) ORDER BY scope`,
)

const end = pick(jobRow, 'id', 'priority')
const endOf = (name: string, order: string) =>
  query(
    name,
    end,
    `SELECT ${end.columns} FROM job WHERE status = 'queued' AND account_id = :accountId AND pool = :pool AND priority > ${HELD_LIMIT}
     ORDER BY ${order} LIMIT 1`,
  )
const FIRST = endOf('queue.first', 'priority DESC, seq')
const LAST = endOf('queue.last', 'priority, seq DESC')
const MOVE = query(
  'queue.move',
  jobRow,
  (words) => `UPDATE job SET priority = :priority, not_before = :notBefore, version = version + 1
    WHERE id = :jobId RETURNING ${LIVE_COLUMNS(words)}`,
)

function* priorityFor(job: JobRow, place: WaitingChange['place']): Steps<number> {
  const own = toPriority(job.priority)
  if (place === undefined) return own
  if (typeof place === 'object') return place.priority
  const at = yield* get(place === 'front' ? FIRST : LAST, { accountId: job.accountId, pool: job.pool })
  if (at === undefined || at.id === job.id) return own
  return place === 'front' ? at.priority + 1 : at.priority - 1
}

function* changeWaiting(
  accountId: string,
  jobId: string,
  { place, notBefore: asked }: WaitingChange,
  now: Date,
): Steps<ChangeOutcome | null> {
  if (!isUuid(jobId)) return null
  const job = (yield* get(LOCK, { jobId, accountId })) ?? (yield* findVisible(accountId, jobId, now))
  if (job === null) return null
  if (job.status !== 'queued') return { outcome: 'not_waiting', job: toJob(job, yield* listOutputs(job), null) }
  const priority = yield* priorityFor(job, place)
  if (Math.abs(priority) > PRIORITY_LIMIT) return { outcome: 'no_priority_left' }
  const until = job.queueUntil !== null && job.queueUntil < job.expiresAt ? job.queueUntil : job.expiresAt
  if (asked != null && asked >= until) return { outcome: 'held_too_long', until }
  const wasHeld = job.priority < HELD_LIMIT
  const isHeld = asked === undefined ? wasHeld : asked !== null
  const notBefore = asked === undefined ? job.notBefore : asked
  const stored = isHeld ? priority - HELD_BELOW : priority
  const moved = (yield* get(MOVE, { jobId, priority: stored, notBefore })) ?? job
  const positions = yield* findPositions([moved])
  return { outcome: 'changed', job: toJob(moved, [], positions.get(moved.seq) ?? 1) }
}

const IS_DUE = `status = 'queued' AND priority < ${HELD_LIMIT} AND not_before <= :now`
const FIND_DUE = query(
  'queue.findDue',
  shape({ notBefore: moment() }),
  `SELECT not_before FROM job WHERE ${IS_DUE} ORDER BY not_before LIMIT 1`,
)
const released = pick(jobRow, 'id', 'accountId', 'version')
const RELEASE = query('queue.release', released, (words) =>
  words.either(
    `UPDATE job SET priority = priority + ${HELD_BELOW}, version = version + 1
     WHERE seq IN (SELECT seq FROM job WHERE ${IS_DUE} ORDER BY not_before LIMIT :limit) RETURNING ${released.columns}`,
    `WITH due AS MATERIALIZED (
       SELECT id AS due_id FROM job WHERE ${IS_DUE} ORDER BY not_before LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED)
     UPDATE job SET priority = priority + ${HELD_BELOW}, version = version + 1 FROM due WHERE id = due_id
     RETURNING ${released.columns}`,
  ),
)

export const queueStore = defineStore<QueueStore>('queue', {
  pause: durable(
    function* (pause) {
      yield* run(PAUSE, encode(queuePause, pause))
    },
    { isEssential: true },
  ),
  resume: durable(
    function* ({ scope, name }) {
      return (yield* get(RESUME, { scope, name })) ?? null
    },
    { isEssential: true },
  ),
  listPauses: read(function* () {
    return yield* all(LIST)
  }),
  findPauses: read(function* (accountId, pool) {
    return yield* all(FIND, { accountId, ...pausedNames(pool) })
  }),
  change: durable(changeWaiting, { isEssential: true }),
  hasDue: read(function* (now) {
    return (yield* get(FIND_DUE, { now })) !== undefined
  }),
  releaseDue: durable(
    function* (now, limit) {
      const found = yield* all(RELEASE, { now, limit })
      return found.map(({ id, accountId, version }) => ({ jobId: id, accountId, version, status: 'queued' as const }))
    },
    { isEssential: true },
  ),
})
