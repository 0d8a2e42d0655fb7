/** Schedules as the store keeps them, and how several processes share their times. */
import type { Schedule, ScheduleRun } from './schedule.ts'

type ScheduleChange = Partial<Omit<Schedule, 'id' | 'accountId' | 'createdAt' | 'lastJobId'>>

/** A time that this process has taken to deal with. */
export interface TakenTick {
  readonly schedule: Schedule
  readonly tick: Date
  /** When a process took it that did not end it; null: none did. Whether that one submitted is told by the key of its submit alone. */
  readonly takenBefore: Date | null
  /** It was put off until the run before it had ended. */
  readonly hasWaited: boolean
}

interface TickWish {
  readonly id: string
  /** Of the schedule as it was found. */
  readonly nextAt: Date
  readonly tick: Date
  readonly now: Date
  /** Until then no other process takes it. */
  readonly heldUntil: Date
}

interface TickEnd extends Pick<Schedule, 'id' | 'lastError'> {
  /** Of the schedule as it was found: one that was changed meanwhile keeps its change. */
  readonly nextAt: Date
  /** null: it is stopped, for this reason. */
  readonly goesOn: Date | { readonly stoppedFor: string }
  readonly runs: readonly ScheduleRun[]
  /** Left out: as it was. */
  readonly jobId?: string
}

export interface ScheduleStore {
  /** false: the account has `limit` already. */
  create(schedule: Schedule, limit: number): Promise<boolean>
  /** Oldest first. */
  list(accountId: string): Promise<readonly Schedule[]>
  find(accountId: string, id: string): Promise<Schedule | null>
  /** The newest first. */
  listRuns(accountId: string, id: string): Promise<readonly ScheduleRun[]>
  /** null: there is none. A new `nextAt` lets go of what was taken; one that is not active has none, whatever is given. */
  change(accountId: string, id: string, change: ScheduleChange): Promise<Schedule | null>
  /** false: there is none. */
  remove(accountId: string, id: string): Promise<boolean>
  /** Those with a time up to now that no process holds, the longest due first. */
  findDue(
    now: Date,
    wanted: { readonly limit: number; readonly exceptAccounts: readonly string[] },
  ): Promise<readonly Schedule[]>
  /** null: another process has it, or the schedule was changed. A time that was taken before and not ended comes first. */
  take(wish: TickWish): Promise<TakenTick | null>
  /** Nothing was submitted; it is looked at again then. `isWaiting`: for the run before it, and any later time will do. */
  putOff(id: string, nextAt: Date, put: { readonly until: Date; readonly isWaiting: boolean }): Promise<void>
  end(end: TickEnd): Promise<void>
  /** Notes a run by hand. */
  note(run: ScheduleRun): Promise<void>
}
