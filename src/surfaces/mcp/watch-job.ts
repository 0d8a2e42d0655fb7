/**
 * Follows a job until it ends or the time is over. The event stream is quick; when it is refused (an account may hold few of them)
 * or breaks off, the job is read again every little while.
 */
import { readEvents } from '../../../lib/outbound/read-event-stream.ts'
import { createBackoff } from '../../../lib/waiting/backoff.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { ENDED } from './job-text.ts'
import { isPassing, toFields } from './service-api.ts'
import type { ToolCall } from './tool.ts'

// Polls count against the rate of the account.
const POLLS = { firstMs: 1000, maxMs: 8000 }
// The service sends a sign of life every 15 s.
const SILENCE_MS = 45_000

/** The job as it is at the end of the wait. `path` is that of the job. */
export async function watchJob(path: string, call: ToolCall, waitMs: number): Promise<unknown> {
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
    if (!(await streamToEnd(path, call, watching))) await sleep(polls.nextMs(), watching)
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
