/** Tools about schedules: what is submitted at given times. */
import { toFields } from '../service-api.ts'
import { json, type Tool, type ToolInput } from '../tool.ts'

const SCHEDULES = '/api/v2/schedules'
const ID = { type: 'string', maxLength: 64, description: 'The id of the schedule.' }

function pathOf(input: ToolInput, rest = ''): string {
  return `${SCHEDULES}/${encodeURIComponent(String(input['schedule_id']))}${rest}`
}

const listSchedules: Tool = {
  name: 'list_schedules',
  title: 'List schedules',
  description:
    'Lists what this account has submitted at given times: when it is next due, its state, what went wrong last.',
  properties: {},
  isReadOnly: true,
  async run(_input, { api, signal }) {
    return [json(toFields(await (await api.call(SCHEDULES, { signal })).json()))]
  },
}

const getSchedule: Tool = {
  name: 'get_schedule',
  title: 'Read a schedule',
  description: 'Says what a schedule submits, its next times, and what became of the last ones, with their jobs.',
  properties: { schedule_id: ID },
  required: ['schedule_id'],
  isReadOnly: true,
  async run(input, { api, signal }) {
    const schedule = toFields(await (await api.call(pathOf(input), { signal })).json())
    const { runs } = toFields(await (await api.call(pathOf(input, '/runs'), { signal })).json())
    return [json({ ...schedule, runs })]
  },
}

const createSchedule: Tool = {
  name: 'create_schedule',
  title: 'Submit at given times',
  description:
    'Submits a workflow, or calls an endpoint, at the times of five cron fields, each as a job at its usual cost, until the schedule is paused or removed. Give either endpoint (with inputs) or workflow.',
  properties: {
    name: { type: 'string', maxLength: 200, description: 'Its jobs get it as the metadata "schedule".' },
    cron: {
      type: 'string',
      maxLength: 200,
      description: 'Minute, hour, day of the month, month, day of the week, such as "30 2 * * mon-fri"; or @daily.',
    },
    time_zone: { type: 'string', maxLength: 64, description: 'Such as Europe/Berlin; UTC if left out.' },
    endpoint: { type: 'string', maxLength: 200, description: 'A name, perhaps with a version: portrait@stable.' },
    inputs: { type: 'object', description: 'Of the endpoint.' },
    workflow: { type: 'object', description: 'In API format.' },
    overlap: {
      enum: ['skip', 'queue', 'cancel_previous'],
      description: 'While the job before goes on: leave the time out, wait for that job, or cancel it.',
    },
    catch_up: { enum: ['none', 'one'], description: 'Whether the last of times that were missed is made up for.' },
  },
  required: ['name', 'cron'],
  isReadOnly: false,
  async run(input, { api, signal }) {
    const body = JSON.stringify(input)
    return [json(toFields(await (await api.call(SCHEDULES, { method: 'POST', body, signal })).json()))]
  },
}

const controlSchedule: Tool = {
  name: 'control_schedule',
  title: 'Pause, resume or run a schedule',
  description:
    'Pauses a schedule (its times go by), resumes it from its next time on, or submits once now beside its times (run), and says how it stands.',
  properties: { schedule_id: ID, action: { enum: ['pause', 'resume', 'run'] } },
  required: ['schedule_id', 'action'],
  isReadOnly: false,
  async run(input, { api, signal }) {
    const path = pathOf(input, `/${encodeURIComponent(String(input['action']))}`)
    return [json(toFields(await (await api.call(path, { method: 'POST', signal })).json()))]
  },
}

const removeSchedule: Tool = {
  name: 'remove_schedule',
  title: 'Remove a schedule',
  description: 'Removes a schedule and the record of its runs. Jobs that it has submitted stay.',
  properties: { schedule_id: ID },
  required: ['schedule_id'],
  isReadOnly: false,
  isDestructive: true,
  async run(input, { api, signal }) {
    await api.call(pathOf(input), { method: 'DELETE', signal })
    return [json({ removed: input['schedule_id'] })]
  },
}

export const SCHEDULE_TOOLS = [listSchedules, getSchedule, createSchedule, controlSchedule, removeSchedule]
