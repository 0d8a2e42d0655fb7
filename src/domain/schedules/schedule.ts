/**
 * A workflow or an endpoint that is submitted at the times of five cron fields. Which time is due, and whether it is too late for it, is
 * decided here and nowhere else, from the clock alone.
 */
import { type Cron, lastTime, nextTime, readCron } from '../../../lib/cron.ts'
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { openWallClock, type WallClock } from '../../../lib/wall-clock.ts'

/** When the job of the time before still waits or runs. `queue`: the next job is submitted when that one has ended. */
export type Overlap = 'skip' | 'queue' | 'cancel_previous'

/** What becomes of times that nobody was there for: nothing, or one run for the last of them. */
export type CatchUp = 'none' | 'one'

/** What is submitted: one of the two. */
export interface ScheduledWork {
  /** A name, perhaps with a version. */
  readonly endpoint: string | null
  readonly inputs: JsonObject | null
  readonly workflow: JsonObject | null
  readonly metadata: Readonly<Record<string, string>>
  readonly priority: number
}

/** `stopped`: by the service, because whoever made it may no longer submit. */
export type ScheduleState = 'active' | 'paused' | 'stopped'

export interface ScheduleError {
  readonly code: string
  readonly message: string
  readonly at: string
}

export interface Schedule {
  readonly id: string
  readonly accountId: string
  /** In whose name it submits: the key that made, changed or resumed it last; null: no key, but a token. */
  readonly keyId: string | null
  readonly name: string
  readonly cron: string
  readonly timeZone: string
  readonly overlap: Overlap
  readonly catchUp: CatchUp
  /** The deployment at whose address it was made; null: the common pool. */
  readonly pool: string | null
  readonly work: ScheduledWork
  readonly state: ScheduleState
  /** Why it stands still, if somebody said so. */
  readonly reason: string | null
  /** The first time that nobody has dealt with yet; null: it stands still. */
  readonly nextAt: Date | null
  /** Of the last submit. */
  readonly lastJobId: string | null
  readonly lastError: ScheduleError | null
  readonly createdAt: Date
  readonly changedAt: Date
}

/** `missed`: nobody was there in time; `unknown`: nobody can tell whether it was submitted. */
export type RunOutcome = 'submitted' | 'skipped' | 'missed' | 'failed' | 'unknown'

export interface ScheduleRun {
  readonly scheduleId: string
  /** The time that it stands for; of one by hand when it was asked for. */
  readonly dueAt: Date
  readonly isByHand: boolean
  readonly at: Date
  readonly outcome: RunOutcome
  readonly jobId: string | null
  readonly code: string | null
  readonly message: string | null
}

/** So late a time still counts as met: a service that was started anew, or was busy, was there. */
export const GRACE_MS = 5 * 60_000
/** So late one time is made up for. */
const CATCH_UP_MS = 7 * 86_400_000

export interface Timing {
  readonly cron: Cron
  readonly clock: WallClock
}

/** Or which field is wrong, and how. */
export function openTiming({ cron: text, timeZone }: Pick<Schedule, 'cron' | 'timeZone'>): Timing | WrongTiming {
  const cron = readCron(text)
  if (typeof cron === 'string') return { field: 'cron', problem: cron }
  const clock = openWallClock(timeZone)
  return clock === null
    ? { field: 'time_zone', problem: 'must be an IANA name such as Europe/Berlin or UTC' }
    : { cron, clock }
}

interface WrongTiming {
  readonly field: 'cron' | 'time_zone'
  readonly problem: string
}

export function nextTick({ cron, clock }: Timing, after: Date): Date {
  return nextTime(cron, clock, after)
}

/** The last time up to now; others before it were missed. */
export function dueTick({ cron, clock }: Timing, first: Date, now: Date): Date {
  return lastTime(cron, clock, first, now)
}

/** `hasWaited`: it is late because the run before it had to end first. */
export function isTooLate(
  { catchUp }: Pick<Schedule, 'catchUp'>,
  { tick, now, hasWaited }: { readonly tick: Date; readonly now: Date; readonly hasWaited: boolean },
): boolean {
  if (hasWaited) return false
  return now.getTime() - tick.getTime() > (catchUp === 'one' ? CATCH_UP_MS : GRACE_MS)
}

/** The same for every process that deals with this time: of their submits one makes a job. */
export function keyOfTick(scheduleId: string, tick: Date): string {
  return `schedule ${scheduleId} ${tick.toISOString()}`
}
