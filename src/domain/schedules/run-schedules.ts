/**
 * Submits what is due. Any number of processes may do this at once: a time is taken in the store before it is dealt with, and its submit
 * has a key that every process would give it, which is claimed with the job's record. So whoever dies in between leaves a time that
 * another process takes up, and finds the job under the key if there is one.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { type Refusal, ServiceError } from '../errors.ts'
import type { CancelJob } from '../jobs/end/cancel-job.ts'
import type { JobReader } from '../jobs/read/job-reader.ts'
import { isTerminal } from '../jobs/transitions.ts'
import type { Authority } from './authority.ts'
import {
  dueTick,
  GRACE_MS,
  isTooLate,
  keyOfTick,
  nextTick,
  openTiming,
  type RunOutcome,
  type Schedule,
  type ScheduleRun,
} from './schedule.ts'
import type { ScheduleStore, TakenTick } from './schedule-store.ts'
import { isPassing, type SubmitScheduled } from './submit-scheduled.ts'

interface RunSchedulesDeps {
  readonly store: Pick<ScheduleStore, 'findDue' | 'take' | 'putOff' | 'end'>
  readonly submit: SubmitScheduled
  readonly mayRun: Authority
  readonly jobs: Pick<JobReader, 'find'>
  readonly cancel: CancelJob
  readonly clock: Clock
  readonly log: Log
}

/** Deals with all times up to now; returns how many. */
type RunSchedules = (signal?: AbortSignal) => Promise<number>

const AT_ONCE = 8
// A process that dies keeps others from its times for so long.
const HOLD_MS = 30_000
const LOOK_AGAIN_MS = 5000
// Keys of submits are known for a day. Later nobody can tell a time that was submitted from one that was not.
const KEY_KNOWN_MS = 23 * 60 * 60_000

interface Verdict extends Pick<ScheduleRun, 'outcome' | 'jobId' | 'code' | 'message'> {}

const verdict = (outcome: RunOutcome, code: string | null = null, message: string | null = null): Verdict => ({
  ...{ outcome, code, message, jobId: null },
})

export function createRunSchedules(deps: RunSchedulesDeps): RunSchedules {
  const { store, clock, log } = deps

  async function runOne(found: Schedule & { readonly nextAt: Date }): Promise<void> {
    const now = clock.now()
    const { id, nextAt } = found
    const timing = openTiming(found)
    if ('problem' in timing)
      return stop(found, verdict('failed', 'invalid_request', `${timing.field} ${timing.problem}`))
    const due = dueTick(timing, nextAt, now)
    const held = { id, nextAt, tick: due, now, heldUntil: new Date(now.getTime() + HOLD_MS) }
    const taken = await store.take(held)
    if (taken === null) return
    const { schedule, tick } = taken
    const lost = await deps.mayRun(schedule)
    if (lost?.isForGood === true) return stop({ ...schedule, nextAt }, verdict('failed', lost.code, lost.message), tick)
    const judged = lost === null ? await judge(deps, taken, now) : verdict('skipped', lost.code, lost.message)
    if (judged === 'not_yet' || judged === 'waits')
      return store.putOff(id, nextAt, {
        until: new Date(now.getTime() + LOOK_AGAIN_MS),
        isWaiting: judged === 'waits' || taken.hasWaited,
      })
    const runs = [toRun(schedule, tick, judged)]
    if (tick > nextAt) {
      const [outcome, why] = taken.hasWaited ? (['skipped', 'a run before still went on'] as const) : MISSED
      const until = dueTick(timing, nextAt, new Date(tick.getTime() - 1))
      const message = until > nextAt ? `${why}, from then until ${until.toISOString()}` : why
      runs.unshift(toRun(schedule, nextAt, verdict(outcome, null, message)))
    }
    if (judged.outcome === 'failed') log.warn({ schedule: id, code: judged.code }, 'a schedule could not submit')
    await store.end({
      ...{ id, nextAt, runs, goesOn: nextTick(timing, tick), lastError: toError(schedule, judged) },
      ...(judged.jobId !== null && { jobId: judged.jobId }),
    })
  }

  function toRun({ id: scheduleId }: Schedule, dueAt: Date, judged: Verdict): ScheduleRun {
    return { scheduleId, dueAt, isByHand: false, at: clock.now(), ...judged }
  }

  /** What was wrong stays told until a run is submitted. */
  function toError({ lastError }: Schedule, { outcome, code, message }: Verdict): Schedule['lastError'] {
    if (outcome === 'submitted') return null
    return code === null ? lastError : { code, message: message ?? code, at: clock.now().toISOString() }
  }

  async function stop(
    found: Schedule & { readonly nextAt: Date },
    judged: Verdict,
    tick = found.nextAt,
  ): Promise<void> {
    const { id, nextAt } = found
    const goesOn = { stoppedFor: judged.message ?? 'it can no longer run' }
    log.warn({ schedule: id, code: judged.code }, 'a schedule was stopped')
    await store.end({ id, nextAt, goesOn, runs: [toRun(found, tick, judged)], lastError: toError(found, judged) })
  }

  return async function runSchedules(signal) {
    let count = 0
    while (signal?.aborted !== true) {
      const due = (await store.findDue(clock.now(), AT_ONCE)).flatMap((schedule) =>
        schedule.nextAt === null ? [] : [{ ...schedule, nextAt: schedule.nextAt }],
      )
      const ends = await Promise.allSettled(due.map(runOne))
      for (const end of ends) if (end.status === 'rejected') throw end.reason
      count += due.length
      if (due.length < AT_ONCE) break
    }
    return count
  }
}

const MISSED = ['missed', 'the service was not there'] as const

/** `not_yet`: it may go well in a moment; `waits`: for the run before it. */
async function judge(deps: RunSchedulesDeps, taken: TakenTick, now: Date): Promise<Verdict | 'not_yet' | 'waits'> {
  const { schedule, tick, takenBefore, hasWaited } = taken
  // Whoever took it before may have submitted it: only the key tells.
  const isNew = takenBefore === null
  const heldMs = isNew ? 0 : now.getTime() - takenBefore.getTime()
  if (heldMs > KEY_KNOWN_MS)
    return verdict('unknown', null, 'the process that dealt with it ended on the way, a day ago')
  if (isNew && isTooLate(schedule, { tick, now, hasWaited })) return verdict(...MISSED_ALONE)
  const { overlap, lastJobId } = schedule
  const isBusy = lastJobId !== null && (await isLive(deps, schedule.accountId, lastJobId))
  if (isBusy && isNew && overlap === 'skip') return verdict('skipped', null, 'the run before still went on')
  if (isBusy && isNew && overlap === 'queue') return 'waits'
  try {
    const jobId = await deps.submit(schedule, keyOfTick(schedule.id, tick))
    if (isBusy && overlap === 'cancel_previous' && jobId !== lastJobId) await deps.cancel(schedule.accountId, lastJobId)
    return { ...verdict('submitted'), jobId }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    if (isPassing(error.refusal) && heldMs < GRACE_MS) return 'not_yet'
    return verdict('failed', error.refusal satisfies Refusal, error.message)
  }
}

const MISSED_ALONE = ['missed', null, 'the service was not there in time'] as const

async function isLive({ jobs }: RunSchedulesDeps, accountId: string, jobId: string): Promise<boolean> {
  try {
    return !isTerminal((await jobs.find(accountId, jobId)).status)
  } catch (error) {
    if (error instanceof ServiceError && error.refusal === 'not_found') return false
    throw error
  }
}
