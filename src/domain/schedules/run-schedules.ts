/**
 * Submits what is due. Any number of processes may do this at once: a time is taken in the store before it is dealt with, and its submit
 * has a key that every process would give it, which is claimed with the job's record. So whoever dies in between leaves a time that
 * another process takes up, and finds the job under the key if there is one.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import type { Authority } from '../accounts/keys/authority.ts'
import { isStoreAway, type Refusal, ServiceError } from '../errors.ts'
import type { CancelJob } from '../jobs/end/cancel-job.ts'
import type { JobReader } from '../jobs/read/job-reader.ts'
import { isPassing } from '../jobs/submit/submit-refusals.ts'
import { isTerminal } from '../jobs/transitions.ts'
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
import { type SubmitScheduled, scopesFor } from './submit-scheduled.ts'

interface RunSchedulesDeps {
  readonly store: Pick<ScheduleStore, 'findDue' | 'take' | 'putOff' | 'end'>
  readonly submit: SubmitScheduled
  readonly mayRun: Authority
  readonly jobs: Pick<JobReader, 'find'>
  readonly cancel: CancelJob
  readonly clock: Clock
  readonly log: Log
}

/** Deals with all times up to now, and with those that come until then; returns how many. */
type RunSchedules = (signal?: AbortSignal) => Promise<number>

const AT_ONCE = 16
// A submit may fetch files and ask hooks: one account whose submits take minutes must not hold up the times of others.
const OF_ONE_ACCOUNT = 2
const LOOK_MS = 1000
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

  async function runOne(found: DueSchedule): Promise<void> {
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
    const lost = await deps.mayRun(schedule, scopesFor(schedule.work))
    if (lost?.isForGood === true) return stop({ ...schedule, nextAt }, verdict('failed', lost.code, lost.message), tick)
    const judged = lost === null ? await judge(deps, taken, now) : verdict('skipped', lost.code, lost.message)
    if (judged === 'not_yet' || judged === 'waits')
      return store.putOff(id, nextAt, {
        until: new Date(now.getTime() + LOOK_AGAIN_MS),
        // A time whose submit was tried stays the one that was tried: a job may have been recorded all the same.
        isWaiting: judged === 'waits',
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

  async function stop(found: DueSchedule, judged: Verdict, tick = found.nextAt): Promise<void> {
    const { id, nextAt } = found
    const goesOn = { stoppedFor: judged.message ?? 'it can no longer run' }
    log.warn({ schedule: id, code: judged.code }, 'a schedule was stopped')
    await store.end({ id, nextAt, goesOn, runs: [toRun(found, tick, judged)], lastError: toError(found, judged) })
  }

  async function tell(schedule: DueSchedule): Promise<boolean> {
    try {
      await runOne(schedule)
      return true
    } catch (err) {
      const facts = { err, schedule: schedule.id }
      if (isStoreAway(err)) log.debug(facts, 'a schedule has to wait for the store, which is away')
      else log.error(facts, 'a schedule could not be dealt with; it is tried again')
      return false
    }
  }

  return async function runSchedules(signal) {
    const underway = createUnderway(tell, () => clock.now().getTime())
    let count = 0
    try {
      while (true) {
        if (signal?.aborted !== true) count += await startDue(deps, underway)
        if (underway.isEmpty()) return count
        await underway.wait(LOOK_MS)
      }
    } finally {
      await underway.end()
    }
  }
}

type DueSchedule = Schedule & { readonly nextAt: Date }

/** Begins what is due and finds a place; returns how many that were. */
async function startDue({ store, clock }: RunSchedulesDeps, underway: Underway): Promise<number> {
  for (let count = 0; ; ) {
    const limit = AT_ONCE + underway.size()
    const due = await store.findDue(clock.now(), { limit, exceptAccounts: underway.fullAccounts() })
    const begun = due.filter(underway.begin).length
    count += begun
    if (begun === 0 || due.length < limit) return count
  }
}

type Underway = ReturnType<typeof createUnderway>

/** Those that this process deals with now. `act`: whether it went well; never rejects. */
function createUnderway(act: (schedule: DueSchedule) => Promise<boolean>, nowMs: () => number) {
  const running = new Map<string, { readonly accountId: string; readonly done: Promise<void> }>()
  /** Until when those that went wrong are left alone. */
  const resting = new Map<string, number>()
  const countOf = (accountId: string) =>
    running
      .values()
      .filter((each) => each.accountId === accountId)
      .reduce((sum) => sum + 1, 0)

  return {
    size: () => running.size,
    isEmpty: () => running.size === 0,
    fullAccounts: () =>
      [...new Set(running.values().map(({ accountId }) => accountId))].filter((id) => countOf(id) >= OF_ONE_ACCOUNT),
    /** false: it has no place. */
    begin(schedule: Schedule): boolean {
      const { id, accountId, nextAt } = schedule
      if (nextAt === null || running.has(id) || (resting.get(id) ?? 0) > nowMs()) return false
      if (running.size >= AT_ONCE || countOf(accountId) >= OF_ONE_ACCOUNT) return false
      const done = act({ ...schedule, nextAt }).then((isWell) => {
        running.delete(id)
        if (isWell) resting.delete(id)
        else resting.set(id, nowMs() + LOOK_AGAIN_MS)
      })
      running.set(id, { accountId, done })
      return true
    },
    /** For the next one to end, or for so long. */
    async wait(ms: number): Promise<void> {
      const over = new AbortController()
      await Promise.race([...running.values().map(({ done }) => done), sleep(ms, over.signal)])
      over.abort(null)
    },
    end: () => Promise.all(running.values().map(({ done }) => done)),
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
    if (isBusy && overlap === 'cancel_previous' && jobId !== lastJobId)
      await deps.cancel(schedule.accountId, lastJobId).catch(unlessGone)
    return { ...verdict('submitted'), jobId }
  } catch (error) {
    if (!(error instanceof ServiceError)) {
      if (heldMs < GRACE_MS) throw error
      deps.log.error({ err: error, schedule: schedule.id }, 'a time of a schedule was given up')
      return verdict('unknown', 'internal_error', 'the service failed while it submitted; its log says why')
    }
    if (isPassing(error.refusal) && heldMs < GRACE_MS) return 'not_yet'
    return verdict('failed', error.refusal satisfies Refusal, error.message)
  }
}

/** A job that is gone overlaps with nothing. */
function unlessGone(error: unknown): void {
  if (!(error instanceof ServiceError && error.refusal === 'not_found')) throw error
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
