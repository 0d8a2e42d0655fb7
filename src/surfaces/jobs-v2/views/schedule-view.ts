/** Schedules in the words of the contract. Bodies are checked against their schema before they are read here. */
import type { JsonObject, JsonValue } from '../../../../lib/json/lossless-json.ts'
import { readMetadata } from '../../../domain/jobs/submit/job-labels.ts'
import type { ScheduleEdit, ScheduleWish } from '../../../domain/schedules/manage-schedules.ts'
import type { CatchUp, Overlap, Schedule, ScheduleRun } from '../../../domain/schedules/schedule.ts'
import { codeOf } from '../jobs-errors.ts'

type Body = Readonly<Record<string, JsonValue | undefined>>

export function toScheduleWish(body: Body): ScheduleWish {
  return {
    name: body['name'] as string,
    cron: body['cron'] as string,
    timeZone: (body['time_zone'] ?? 'UTC') as string,
    overlap: (body['overlap'] ?? 'skip') as Overlap,
    catchUp: (body['catch_up'] ?? 'none') as CatchUp,
    work: {
      endpoint: (body['endpoint'] ?? null) as string | null,
      inputs: (body['inputs'] ?? null) as JsonObject | null,
      workflow: (body['workflow'] ?? null) as JsonObject | null,
      metadata: readMetadata(body['metadata']),
      priority: Number(body['priority'] ?? 0),
    },
  }
}

/** A workflow takes the place of an endpoint, and the other way round. */
export function toScheduleEdit(body: Body): ScheduleEdit {
  const { name, cron, time_zone: timeZone, overlap, catch_up: catchUp } = body
  const { endpoint, inputs, workflow, metadata, priority } = body
  const work = {
    ...(workflow !== undefined && { workflow: workflow as JsonObject, endpoint: null, inputs: null }),
    ...(endpoint !== undefined && { endpoint: endpoint as string, ...(workflow === undefined && { workflow: null }) }),
    ...(inputs !== undefined && { inputs: inputs as JsonObject }),
    ...(metadata !== undefined && { metadata: readMetadata(metadata) }),
    ...(priority !== undefined && { priority: Number(priority) }),
  }
  return {
    ...(name !== undefined && { name: name as string }),
    ...(cron !== undefined && { cron: cron as string }),
    ...(timeZone !== undefined && { timeZone: timeZone as string }),
    ...(overlap !== undefined && { overlap: overlap as Overlap }),
    ...(catchUp !== undefined && { catchUp: catchUp as CatchUp }),
    ...(Object.keys(work).length > 0 && { work }),
  }
}

export function toScheduleView(schedule: Schedule) {
  const { id, name, cron, timeZone, overlap, catchUp, work, state, reason, keyId, lastError } = schedule
  return {
    ...{ id, name, cron, time_zone: timeZone, overlap, catch_up: catchUp },
    ...{ endpoint: work.endpoint, metadata: work.metadata, priority: work.priority },
    ...{ state, reason, runs_as_key: keyId, next_at: schedule.nextAt?.toISOString() ?? null },
    last_job_id: schedule.lastJobId,
    last_error: lastError === null ? null : { ...lastError, code: codeOf(lastError.code) },
    ...{ created_at: schedule.createdAt.toISOString(), updated_at: schedule.changedAt.toISOString() },
  }
}

/** With what it submits, which may be long. */
export function toWholeScheduleView(schedule: Schedule, upcoming: readonly Date[]) {
  const { inputs, workflow } = schedule.work
  return { ...toScheduleView(schedule), inputs, workflow, upcoming: upcoming.map((at) => at.toISOString()) }
}

export function toScheduleRunView({ dueAt, isByHand, at, outcome, jobId, code, message }: ScheduleRun) {
  return {
    ...{ due_at: dueAt.toISOString(), by_hand: isByHand, at: at.toISOString(), outcome, job_id: jobId },
    ...{ code: code === null ? null : codeOf(code), message },
  }
}
