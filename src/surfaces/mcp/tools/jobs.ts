/** Tools about jobs: find, follow, cancel. */
import { tellJob, toJobFacts } from '../job-text.ts'
import { toFields } from '../service-api.ts'
import { json, readWaitMs, type Tool, type ToolInput, WAIT_PROPERTY } from '../tool.ts'
import { watchJob } from '../watch-job.ts'

const STATUSES = ['queued', 'running', 'canceling', 'succeeded', 'failed', 'canceled', 'expired']
const MAX_LISTED = 50
const JOB_ID = { type: 'string', maxLength: 64, description: 'The id of the job.' }

function pathOf(input: ToolInput, rest = ''): string {
  return `/api/v2/jobs/${encodeURIComponent(String(input['job_id']))}${rest}`
}

const listJobs: Tool = {
  name: 'list_jobs',
  title: 'List jobs',
  description: `Lists the jobs of this account, the newest first, at most ${MAX_LISTED} at a time.`,
  properties: {
    status: { type: 'array', items: { enum: STATUSES }, description: 'Only jobs in one of these states.' },
    limit: { type: 'integer', minimum: 1, maximum: MAX_LISTED },
    cursor: { type: 'string', maxLength: 512, description: 'The next_cursor of the page before.' },
  },
  isReadOnly: true,
  async run({ status, limit = 20, cursor }, { api, signal }) {
    const query = new URLSearchParams({ limit: String(limit) })
    if (Array.isArray(status) && status.length > 0) query.set('status', status.join(','))
    if (cursor !== undefined) query.set('cursor', String(cursor))
    const page = toFields(await (await api.call(`/api/v2/jobs?${query}`, { signal })).json())
    const jobs = (Array.isArray(page['jobs']) ? page['jobs'] : []).map((job) => toJobFacts(job, api))
    return [json({ jobs, next_cursor: page['next_cursor'] })]
  },
}

const getJob: Tool = {
  name: 'get_job',
  title: 'Read a job',
  description: 'Says where a job stands, with its outputs and its error. get_output shows an output.',
  properties: { job_id: JOB_ID },
  required: ['job_id'],
  isReadOnly: true,
  async run(input, { api, signal }) {
    return tellJob(await (await api.call(pathOf(input), { signal })).json(), api)
  },
}

const followJob: Tool = {
  name: 'watch_job',
  title: 'Wait for a job',
  description:
    'Waits until a job ends or wait_seconds are over, telling its progress meanwhile, and says where it stands. Call it again for a job that has not ended.',
  properties: { job_id: JOB_ID, ...WAIT_PROPERTY },
  required: ['job_id'],
  isReadOnly: true,
  async run(input, call) {
    return tellJob(await watchJob(pathOf(input), call, readWaitMs(input)), call.api)
  },
}

const cancelJob: Tool = {
  name: 'cancel_job',
  title: 'Cancel a job',
  description: 'Asks for a job to end. A job that waits ends at once, one that runs ends at its next step.',
  properties: { job_id: JOB_ID },
  required: ['job_id'],
  isReadOnly: false,
  isDestructive: true,
  async run(input, { api, signal }) {
    return tellJob(await (await api.call(pathOf(input, '/cancel'), { method: 'POST', signal })).json(), api)
  },
}

export const JOB_TOOLS = [listJobs, getJob, followJob, cancelJob]
