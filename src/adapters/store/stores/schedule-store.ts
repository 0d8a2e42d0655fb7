/** Schedules over both databases. A time is taken by a write that only one process can make, and ended by one that frees it again. */
import type { Schedule } from '../../../domain/schedules/schedule.ts'
import type { ScheduleStore } from '../../../domain/schedules/schedule-store.ts'
import { all, defineStore, durable, get, read, run, type Steps } from '../statements/operation.ts'
import { command, insertInto, query, selectFrom } from '../statements/statement.ts'
import { schedule, scheduleRun } from '../tables/schedules.ts'
import { encode, integer, omit, pick, type RowOf, shape } from '../tables/table.ts'

const KEPT_RUNS = 50
const OWN = 'account_id = :accountId AND id = :id'
const told = omit(schedule, 'takenTick', 'takenAt', 'heldUntil', 'hasWaited')

const LOCK_ACCOUNT = query(
  'schedules.lockAccount',
  shape({ one: integer('integer') }),
  ({ lock }) => `SELECT 1 AS one FROM account WHERE id = :accountId ${lock('NO KEY UPDATE')}`,
)
const COUNT = query(
  'schedules.count',
  shape({ count: integer() }),
  'SELECT count(*) AS count FROM schedule WHERE account_id = :accountId',
)
const INSERT = command('schedules.insert', insertInto(schedule))
const LIST = query(
  'schedules.list',
  told,
  selectFrom(schedule, 'WHERE account_id = :accountId ORDER BY created_at, id', told),
)
const FIND = query('schedules.find', told, selectFrom(schedule, `WHERE ${OWN}`, told))
const LOCK = query('schedules.lock', told, ({ lock }) => selectFrom(schedule, `WHERE ${OWN} ${lock('UPDATE')}`, told))
const RUNS = query(
  'schedules.runs',
  scheduleRun,
  selectFrom(
    scheduleRun,
    `WHERE schedule_id IN (SELECT id FROM schedule WHERE ${OWN}) ORDER BY due_at DESC, is_by_hand LIMIT ${KEPT_RUNS}`,
  ),
)
const CHANGE = command(
  'schedules.change',
  `UPDATE schedule SET key_id = :keyId, name = :name, cron = :cron, time_zone = :timeZone, overlap = :overlap, catch_up = :catchUp,
     pool = :pool, work = :work, state = :state, reason = :reason, next_at = :nextAt, last_error = :lastError, changed_at = :changedAt
   WHERE ${OWN}`,
)
const LET_GO = command(
  'schedules.letGo',
  `UPDATE schedule SET taken_tick = NULL, taken_at = NULL, held_until = NULL, has_waited = 0 WHERE ${OWN}`,
)
const REMOVE = command('schedules.remove', `DELETE FROM schedule WHERE ${OWN}`)
const REMOVE_RUNS = command('schedules.removeRuns', 'DELETE FROM schedule_run WHERE schedule_id = :id')

const DUE = query('schedules.due', told, (words) =>
  selectFrom(
    schedule,
    `WHERE next_at <= :now AND (held_until IS NULL OR held_until <= :now) AND NOT (${words.isIn('account_id', ':exceptAccounts')})
     ORDER BY next_at, id LIMIT :limit`,
    told,
  ),
)
const taking = pick(schedule, 'takenTick', 'takenAt', 'hasWaited')
const LOCK_TICK = query('schedules.lockTick', schedule, ({ lock }) =>
  selectFrom(
    schedule,
    `WHERE id = :id AND next_at = :nextAt AND (held_until IS NULL OR held_until <= :now) ${lock('UPDATE')}`,
  ),
)
const TAKE = command(
  'schedules.take',
  'UPDATE schedule SET taken_tick = :takenTick, taken_at = :takenAt, held_until = :heldUntil WHERE id = :id',
)
const PUT_OFF = command(
  'schedules.putOff',
  'UPDATE schedule SET held_until = :until WHERE id = :id AND next_at = :nextAt',
)
const PUT_OFF_WAITING = command(
  'schedules.putOffWaiting',
  `UPDATE schedule SET held_until = :until, taken_tick = NULL, taken_at = NULL, has_waited = 1
   WHERE id = :id AND next_at = :nextAt`,
)
const END = command(
  'schedules.end',
  `UPDATE schedule SET next_at = :goesOn, state = coalesce(:stopped, state),
     reason = :reason, last_error = :lastError, taken_tick = NULL, taken_at = NULL, held_until = NULL, has_waited = 0
   WHERE id = :id AND next_at = :nextAt`,
)
const SET_JOB = command('schedules.setJob', 'UPDATE schedule SET last_job_id = :jobId WHERE id = :id')
const STILL_THERE = query('schedules.isThere', pick(schedule, 'id'), 'SELECT id FROM schedule WHERE id = :id')
const NOTE = command('schedules.note', `${insertInto(scheduleRun)} ON CONFLICT DO NOTHING`)
const TRIM = command(
  'schedules.trim',
  `DELETE FROM schedule_run WHERE schedule_id = :id AND due_at <
     (SELECT due_at FROM schedule_run WHERE schedule_id = :id ORDER BY due_at DESC LIMIT 1 OFFSET ${KEPT_RUNS - 1})`,
)

function toSchedule({
  takenTick: _,
  takenAt: __,
  heldUntil: ___,
  hasWaited: ____,
  ...row
}: RowOf<typeof schedule>): Schedule {
  return row
}

function* note(id: string, runs: readonly RowOf<typeof scheduleRun>[]): Steps<void> {
  // One that was removed meanwhile leaves nothing behind.
  if ((yield* get(STILL_THERE, { id })) === undefined) return
  for (const each of runs) yield* run(NOTE, encode(scheduleRun, each))
  yield* run(TRIM, { id })
}

export const scheduleStore = defineStore<ScheduleStore>('schedules', {
  create: durable(function* (made, limit) {
    yield* get(LOCK_ACCOUNT, { accountId: made.accountId })
    if (((yield* get(COUNT, { accountId: made.accountId }))?.count ?? 0) >= limit) return false
    const free = { takenTick: null, takenAt: null, heldUntil: null, hasWaited: false }
    yield* run(INSERT, encode(schedule, { ...made, ...free }))
    return true
  }),
  list: read(function* (accountId) {
    return yield* all(LIST, { accountId })
  }),
  find: read(function* (accountId, id) {
    return (yield* get(FIND, { accountId, id })) ?? null
  }),
  listRuns: read(function* (accountId, id) {
    return yield* all(RUNS, { accountId, id })
  }),
  change: durable(
    function* (accountId, id, change) {
      const known = yield* get(LOCK, { accountId, id })
      if (known === undefined) return null
      const merged = { ...known, ...change }
      // Whoever set the time may have looked before it was paused.
      const changed = merged.state === 'active' ? merged : { ...merged, nextAt: null }
      yield* run(CHANGE, encode(told, changed))
      if (change.nextAt !== undefined) yield* run(LET_GO, { accountId, id })
      return changed
    },
    { isEssential: true },
  ),
  remove: durable(
    function* (accountId, id) {
      if ((yield* run(REMOVE, { accountId, id })) === 0) return false
      yield* run(REMOVE_RUNS, { id })
      return true
    },
    { isEssential: true },
  ),
  findDue: read(function* (now, { limit, exceptAccounts }) {
    return yield* all(DUE, { now, limit, exceptAccounts })
  }),
  take: durable(function* ({ id, nextAt, tick, now, heldUntil }) {
    const row = yield* get(LOCK_TICK, { id, nextAt, now })
    if (row === undefined) return null
    const { takenTick, takenAt, hasWaited } = row
    const taken = { ...encode(taking, { takenTick: takenTick ?? tick, takenAt: takenAt ?? now }), heldUntil }
    yield* run(TAKE, { id, ...taken })
    return { schedule: toSchedule(row), tick: takenTick ?? tick, takenBefore: takenAt, hasWaited }
  }),
  putOff: durable(function* (id, nextAt, { until, isWaiting }) {
    yield* run(isWaiting ? PUT_OFF_WAITING : PUT_OFF, { id, nextAt, until })
  }),
  end: durable(function* ({ id, nextAt, goesOn, runs, lastError, jobId }) {
    const next =
      goesOn instanceof Date
        ? { goesOn, reason: null, stopped: null }
        : { goesOn: null, reason: goesOn.stoppedFor, stopped: 'stopped' }
    yield* run(END, { ...encode(schedule, { id, nextAt, lastError }), ...next })
    if (jobId !== undefined) yield* run(SET_JOB, { id, jobId })
    yield* note(id, runs)
  }),
  note: durable(function* (made) {
    yield* note(made.scheduleId, [made])
    if (made.jobId !== null) yield* run(SET_JOB, { id: made.scheduleId, jobId: made.jobId })
  }),
})
