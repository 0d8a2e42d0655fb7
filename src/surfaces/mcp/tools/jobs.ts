/** Tools about jobs: find, follow, cancel. */

import { readEvents } from '../../../../lib/outbound/read-event-stream.ts'
import { createBackoff, sleep } from '../../../../lib/waiting/sleep.ts'
import { ENDED, tellJob, toJobFacts } from '../job-text.ts'
import { isPassing, toFields } from '../service-api.ts'
import { json, readWaitMs, type Tool, type ToolCall, type ToolInput, WAIT_PROPERTY } from '../tool.ts'

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

const moveJob: Tool = {
  name: 'move_job',
  title: 'Move a job that waits',
  description:
    'Moves a waiting job to the front or the back of the queue of its account, changes its priority, or holds it until a time (not_before; null lets it go). One that runs or has ended cannot be moved.',
  properties: {
    job_id: JOB_ID,
    move: { enum: ['front', 'back'] },
    priority: { type: 'integer', description: 'Higher runs first. Not together with move.' },
    not_before: { type: ['string', 'null'], maxLength: 40, description: 'Such as 2030-01-31T12:00:00Z.' },
  },
  required: ['job_id'],
  isReadOnly: false,
  async run(input, { api, signal }) {
    const { job_id: _, ...change } = input
    const body = JSON.stringify(change)
    return tellJob(await (await api.call(pathOf(input), { method: 'PATCH', body, signal })).json(), api)
  },
}

const pauseQueue: Tool = {
  name: 'pause_queue',
  title: 'Pause or resume the queue',
  description:
    'Pauses the queue of this account (no waiting job begins to run, new ones are accepted) or resumes it, and says what is paused. What runs goes on.',
  properties: {
    is_paused: { type: 'boolean' },
    reason: { type: 'string', maxLength: 500, description: 'Of a pause: shown to whoever asks why a job waits.' },
  },
  required: ['is_paused'],
  isReadOnly: false,
  async run({ is_paused: isPaused, reason }, { api, signal }) {
    const path = `/api/v2/queue/${isPaused === true ? 'pause' : 'resume'}`
    const body = JSON.stringify(isPaused === true && reason !== undefined ? { reason } : {})
    return [json(toFields(await (await api.call(path, { method: 'POST', body, signal })).json()))]
  },
}

export const JOB_TOOLS = [listJobs, getJob, followJob, cancelJob, moveJob, pauseQueue]

// Follows a job until it ends or the time is over. The event stream is quick; when it is refused (an account may hold few of them)
// or breaks off, the job is read again every little while.

// Polls count against the rate of the account.
const POLLS = { firstMs: 1000, maxMs: 8000 }
// The service sends a sign of life every 15 s.
const SILENCE_MS = 45_000

/** The job as it is at the end of the wait. `path` is where it is read; its events are below `eventsOf`. */
export async function watchJob(path: string, call: ToolCall, waitMs: number, eventsOf = path): Promise<unknown> {
  const { signal } = call
  const over = AbortSignal.timeout(waitMs)
  const watching = AbortSignal.any([signal, over])
  const polls = createBackoff(POLLS)
  while (true) {
    const job = await readJob(path, call, over)
    const { status, progress, queue_position: position } = toFields(job)
    // Sent even for a job that has already ended: a client that asked for progress sees at least how it ended.
    if (job !== null) await tell(call, { status, ...(position !== null && { position }), ...toFields(progress) })
    if (job !== null && (ENDED.has(status) || over.aborted)) return job
    if (!(await streamToEnd(eventsOf, call, watching))) await sleep(polls.nextMs(), watching)
    signal.throwIfAborted()
  }
}

/** null: it cannot be read just now, and there is time left. */
async function readJob(path: string, { api, signal }: ToolCall, over: AbortSignal): Promise<unknown> {
  try {
    return await (await api.call(path, { signal })).json()
  } catch (error) {
    if (!isPassing(error) || over.aborted) throw error
    return null
  }
}

/** True when the stream reported the end. */
async function streamToEnd(path: string, call: ToolCall, signal: AbortSignal): Promise<boolean> {
  try {
    const headers = { Accept: 'text/event-stream' }
    const { body } = await call.api.call(`${path}/events`, { headers, signal })
    if (body === null) return false
    for await (const { name, data } of readEvents(body, SILENCE_MS)) {
      const fields = toFields(data)
      if (name === 'progress') await tell(call, fields)
      if (name === 'status') await tell(call, { status: fields['status'] })
      if (name === 'status' && ENDED.has(fields['status'])) return true
    }
    return false
  } catch {
    // The next read of the job shows what happened: the job is gone, the service does not answer, or only the stream broke.
    return false
  }
}

function tell(call: ToolCall, { status, position, value, message }: Readonly<Record<string, unknown>>): Promise<void> {
  const words = [status, typeof position === 'number' ? `position ${position}` : null, message]
  const said = words.filter((word) => typeof word === 'string' && word !== '').join(', ')
  return call.tell(typeof value === 'number' ? value : 0, said, 1)
}
