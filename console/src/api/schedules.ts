/** What is submitted at given times. */
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { getJson, send } from './client.ts'

const SCHEDULES = '/api/v2/schedules'

export const OVERLAPS = ['skip', 'queue', 'cancel_previous'] as const
export const CATCH_UPS = ['none', 'one'] as const

export interface Schedule {
  readonly id: string
  readonly name: string
  readonly cron: string
  readonly time_zone: string
  /** null: it submits a workflow. */
  readonly endpoint: string | null
  readonly state: 'active' | 'paused' | 'stopped'
  readonly reason: string | null
  /** null: it stands still. */
  readonly next_at: string | null
  readonly last_job_id: string | null
  readonly last_error: { readonly code: string; readonly message: string; readonly at: string } | null
}

export interface ScheduleWish {
  readonly name: string
  readonly cron: string
  readonly time_zone: string
  readonly overlap: (typeof OVERLAPS)[number]
  readonly catch_up: (typeof CATCH_UPS)[number]
  readonly endpoint?: string
  /** As JSON text: numbers of inputs and workflows may be longer than a double. */
  readonly inputs?: string
  readonly workflow?: string
}

interface ScheduleRun {
  readonly due_at: string
  readonly by_hand: boolean
  readonly outcome: string
  readonly job_id: string | null
  readonly message: string | null
}

const at = (id: string, rest = '') => `${SCHEDULES}/${encodeURIComponent(id)}${rest}`

export const listSchedules = (signal?: AbortSignal) =>
  getJson<{ readonly schedules: readonly Schedule[] }>(SCHEDULES, signal)

export const listScheduleRuns = (id: string, signal?: AbortSignal) =>
  getJson<{ readonly runs: readonly ScheduleRun[] }>(at(id, '/runs'), signal)

/** Throws SyntaxError where a text is no JSON. */
export function createSchedule({ inputs, workflow, ...wish }: ScheduleWish): Promise<Schedule> {
  const body: Record<string, JsonValue> = { ...wish }
  if (inputs !== undefined) body['inputs'] = parseLosslessJson(inputs)
  if (workflow !== undefined) body['workflow'] = parseLosslessJson(workflow)
  return send('POST', SCHEDULES, stringifyLosslessJson(body))
}

export const commandSchedule = (id: string, command: 'pause' | 'resume' | 'run') =>
  send<unknown>('POST', at(id, `/${command}`))

export const deleteSchedule = (id: string) => send<null>('DELETE', at(id))
