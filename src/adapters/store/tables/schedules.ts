/** Schedules, and what became of their last times. */
import type {
  CatchUp,
  Overlap,
  RunOutcome,
  ScheduledWork,
  ScheduleError,
  ScheduleState,
} from '../../../domain/schedules/schedule.ts'
import { lossless } from './endpoints.ts'
import { flag, json, moment, nullable, table, text } from './table.ts'

export const schedule = table('schedule', ['id'], {
  id: text(),
  accountId: text(),
  keyId: nullable(text()),
  name: text(),
  cron: text(),
  timeZone: text(),
  overlap: text<Overlap>(),
  catchUp: text<CatchUp>(),
  pool: nullable(text()),
  work: lossless<ScheduledWork>(),
  state: text<ScheduleState>(),
  reason: nullable(text()),
  nextAt: nullable(moment()),
  lastJobId: nullable(text()),
  lastError: nullable(json<ScheduleError>()),
  createdAt: moment(),
  changedAt: moment(),
  // The time that a process deals with, or died over, since when, and until when no other one takes it.
  takenTick: nullable(moment()),
  takenAt: nullable(moment()),
  heldUntil: nullable(moment()),
  hasWaited: flag(),
})

export const scheduleRun = table('schedule_run', ['scheduleId', 'dueAt', 'isByHand'], {
  scheduleId: text(),
  dueAt: moment(),
  isByHand: flag(),
  at: moment(),
  outcome: text<RunOutcome>(),
  jobId: nullable(text()),
  code: nullable(text()),
  message: nullable(text()),
})
