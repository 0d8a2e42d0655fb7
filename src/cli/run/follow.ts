/**
 * Follows a job to its end. The event stream is quick, polling is reliable: whenever the stream ends without a terminal status,
 * breaks, goes silent or is refused, the job itself is read and the stream is tried again. A server that is away for a moment
 * (a restart) does not end the wait; one that stays away does.
 */

import { readEvents } from '../../../lib/outbound/read-event-stream.ts'
import { createBackoff } from '../../../lib/waiting/backoff.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { RefusedError, type RunClient, UnreachableError } from '../server/client.ts'
import {
  type JobView,
  type ProgressView,
  readOutput,
  readProgress,
  TERMINAL_STATUSES,
  toFields,
} from '../server/job-answers.ts'

export interface FollowDisplay {
  status(status: string, queuePosition: number | null): void
  progress(progress: ProgressView): void
  output(name: string): void
}

interface FollowOptions {
  readonly display: FollowDisplay
  readonly signal: AbortSignal
}

const IDLE_MS = 45_000
// Longer than a restart with recovery takes.
const AWAY_MS = 60_000

export async function followJob(client: RunClient, job: JobView, options: FollowOptions): Promise<JobView> {
  const backoff = createBackoff({ firstMs: 500, maxMs: 4000 })
  let current = job
  let awaySince: number | null = null
  while (true) {
    try {
      if (await streamToEnd(client, job, options)) awaySince = null
      current = await client.job(job.selfLink, options.signal)
      awaySince = null
    } catch (error) {
      if (!(error instanceof UnreachableError)) throw error
      awaySince ??= Date.now()
      if (Date.now() - awaySince > AWAY_MS) throw error
    }
    if (TERMINAL_STATUSES.has(current.status)) return current
    show(current, options.display)
    await sleep(backoff.nextMs(), options.signal)
    options.signal.throwIfAborted()
  }
}

function show(job: JobView, display: FollowDisplay): void {
  display.status(job.status, job.queuePosition)
  if (job.progress !== null) display.progress(job.progress)
}

/** True when the stream gave the terminal status. A refused stream (too many, not offered) leaves everything to polling. */
async function streamToEnd(client: RunClient, job: JobView, { display, signal }: FollowOptions): Promise<boolean> {
  try {
    const response = await client.events(job.eventsLink, signal)
    if (response.body === null) return false
    for await (const { name, data } of readEvents(response.body, IDLE_MS)) {
      if (applyEvent(name, data, display)) return true
    }
    return false
  } catch (error) {
    if (signal.aborted) throw error
    if (error instanceof RefusedError && error.status !== 401) return false
    if (error instanceof RefusedError || error instanceof UnreachableError) throw error
    // The connection broke or went silent; the poll that follows finds out the state of the job.
    return false
  }
}

/** Shows one event; true when it was the last. */
function applyEvent(name: string, data: unknown, display: FollowDisplay): boolean {
  const fields = toFields(data)
  if (name === 'progress') {
    const progress = readProgress(fields)
    if (progress !== null) display.progress(progress)
  }
  if (name === 'output') display.output(readOutput(fields).name)
  if (name !== 'status' || typeof fields['status'] !== 'string') return false
  const position = fields['queue_position']
  display.status(fields['status'], typeof position === 'number' ? position : null)
  return TERMINAL_STATUSES.has(fields['status'])
}
