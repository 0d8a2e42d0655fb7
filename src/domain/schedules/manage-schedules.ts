/** Schedules in the hands of their account. Whatever can be known to be wrong with one is refused when it is set. */
import type { Clock } from '../../../lib/clock.ts'
import { newUuidV4 } from '../../../lib/ids.ts'
import { stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { isPlainLine } from '../../../lib/text/plain-text.ts'
import { type Caller, mustHaveScope } from '../accounts/caller.ts'
import { invalidField, ServiceError } from '../errors.ts'
import { mustBePriority } from '../jobs/submit/submit-times.ts'
import { nextTick, openTiming, type Schedule, type ScheduleRun, type Timing } from './schedule.ts'
import type { ScheduleStore } from './schedule-store.ts'
import { type SubmitScheduled, scopesFor, type TryScheduled } from './submit-scheduled.ts'

export type ScheduleWish = Pick<Schedule, 'name' | 'cron' | 'timeZone' | 'overlap' | 'catchUp' | 'work'>

export type ScheduleEdit = Partial<Omit<ScheduleWish, 'work'>> & { readonly work?: Partial<Schedule['work']> }

/** Who asks, and at the address of which deployment. */
export interface ScheduleOwner extends Caller {
  readonly pool: string | null
}

/** Those of the caller's account alone. All but `list` and `create` throw not_found. */
export interface Schedules {
  list(accountId: string): Promise<readonly Schedule[]>
  find(accountId: string, id: string): Promise<Schedule>
  /** The newest first. */
  listRuns(accountId: string, id: string): Promise<readonly ScheduleRun[]>
  /** The next times, the first one first. */
  upcoming(schedule: Schedule, count: number): readonly Date[]
  /** Throws invalid_field, and what a submit of its work would be refused with. */
  create(owner: ScheduleOwner, wish: ScheduleWish): Promise<Schedule>
  /** From now on it runs in the name of this caller. */
  change(owner: ScheduleOwner, id: string, edit: ScheduleEdit): Promise<Schedule>
  pause(accountId: string, id: string, reason: string | null): Promise<Schedule>
  /** From the next time on, in the name of this caller. */
  resume(owner: ScheduleOwner, id: string): Promise<Schedule>
  /** Submits at once, whatever its state and its other runs are; returns the job's id. */
  runNow(owner: ScheduleOwner, id: string, idempotencyKey: string | null): Promise<string>
  remove(accountId: string, id: string): Promise<void>
}

interface SchedulesDeps {
  readonly store: ScheduleStore
  readonly submit: SubmitScheduled
  readonly tryOut: TryScheduled
  readonly clock: Clock
}

const MAX_SCHEDULES = 100
const MAX_TEXT = 200
const MAX_WORK_CHARACTERS = 1_048_576

export function createSchedules({ store, submit, tryOut, clock }: SchedulesDeps): Schedules {
  async function find(accountId: string, id: string): Promise<Schedule> {
    return mustBeThere(await store.find(accountId, id))
  }

  async function change(accountId: string, id: string, fields: Parameters<ScheduleStore['change']>[2]) {
    return mustBeThere(await store.change(accountId, id, { ...fields, changedAt: clock.now() }))
  }

  return {
    list: (accountId) => store.list(accountId),
    find,
    async listRuns(accountId, id) {
      await find(accountId, id)
      return store.listRuns(accountId, id)
    },
    upcoming(schedule, count) {
      const timing = openTiming(schedule)
      if ('problem' in timing || schedule.nextAt === null) return []
      const times = [schedule.nextAt]
      while (times.length < count) times.push(nextTick(timing, times[times.length - 1]))
      return times
    },
    async create(owner, wish) {
      const { timing, timeZone } = checkWish(owner, wish)
      const now = clock.now()
      const { accountId, keyId, pool } = owner
      const schedule: Schedule = {
        ...{ ...wish, timeZone, id: newUuidV4(), accountId, keyId, pool, state: 'active', reason: null },
        ...{ nextAt: nextTick(timing, now), lastJobId: null, lastError: null, createdAt: now, changedAt: now },
      }
      await tryOut(schedule)
      if (await store.create(schedule, MAX_SCHEDULES)) return schedule
      throw invalidField('name', `cannot be added: an account has at most ${MAX_SCHEDULES} schedules; remove one first`)
    },
    async change(owner, id, { work: edited, ...edit }) {
      const { accountId, keyId } = owner
      const known = await find(accountId, id)
      const work = { ...known.work, ...edited }
      const wanted = { ...known, ...edit, work }
      const { timing, timeZone } = checkWish(owner, wanted)
      if (edited !== undefined) await tryOut({ ...wanted, keyId })
      const isRetimed = edit.cron !== undefined || edit.timeZone !== undefined
      return change(accountId, id, {
        ...{ ...edit, timeZone, keyId },
        ...(edited !== undefined && { work }),
        ...(isRetimed && { nextAt: nextTick(timing, clock.now()) }),
      })
    },
    async pause(accountId, id, reason) {
      if (reason !== null) mustBeLine('reason', reason)
      await find(accountId, id)
      return change(accountId, id, { state: 'paused', reason, nextAt: null })
    },
    async resume(owner, id) {
      const { accountId, keyId } = owner
      const known = await find(accountId, id)
      const { timing } = checkWish(owner, known)
      if (known.nextAt !== null) return change(accountId, id, { keyId })
      return change(accountId, id, { state: 'active', reason: null, keyId, nextAt: nextTick(timing, clock.now()) })
    },
    async runNow(owner, id, idempotencyKey) {
      const { accountId, keyId } = owner
      const schedule = await find(accountId, id)
      for (const scope of scopesFor(schedule.work)) mustHaveScope(owner, scope)
      const jobId = await submit({ ...schedule, keyId }, idempotencyKey)
      const now = clock.now()
      const facts = { outcome: 'submitted', jobId, code: null, message: null } as const
      await store.note({ scheduleId: id, dueAt: now, isByHand: true, at: now, ...facts })
      return jobId
    },
    async remove(accountId, id) {
      if (!(await store.remove(accountId, id))) throw noSchedule()
    },
  }
}

function mustBeThere(schedule: Schedule | null): Schedule {
  if (schedule === null) throw noSchedule()
  return schedule
}

function noSchedule(): ServiceError {
  return new ServiceError('not_found', 'there is no schedule with this id')
}

function checkWish(owner: Caller, wish: ScheduleWish): { readonly timing: Timing; readonly timeZone: string } {
  const { name, work } = wish
  mustBeLine('name', name)
  const timing = openTiming(wish)
  if ('problem' in timing) throw invalidField(timing.field, timing.problem)
  mustBePriority(work.priority)
  if ((work.endpoint === null) === (work.workflow === null))
    throw invalidField('workflow', 'must be given, or else an endpoint, and not both')
  if (work.endpoint === null && work.inputs !== null)
    throw invalidField('inputs', 'belong to an endpoint; the values of a workflow are in it')
  if (stringifyLosslessJson(work.workflow ?? work.inputs ?? {}).length > MAX_WORK_CHARACTERS)
    throw invalidField(work.workflow === null ? 'inputs' : 'workflow', 'must have at most 1 MiB of JSON')
  for (const scope of scopesFor(work)) mustHaveScope(owner, scope)
  return { timing, timeZone: timing.clock.timeZone }
}

function mustBeLine(field: string, text: string): void {
  if (text.trim() === '' || text.length > MAX_TEXT || !isPlainLine(text))
    throw invalidField(field, `must be one line of 1 to ${MAX_TEXT} characters`)
}
