/** Follows a job and shows on the terminal how far it is. */
import { Presets, SingleBar } from 'cli-progress'
import { readEvents } from '../../../lib/outbound/read-event-stream.ts'
import { createBackoff, sleep } from '../../../lib/waiting/sleep.ts'
import { RefusedError, type RunClient, UnreachableError } from '../server/client.ts'
import {
  type JobView,
  type ProgressView,
  readOutput,
  readProgress,
  TERMINAL_STATUSES,
  toFields,
} from '../server/job-answers.ts'
import { printLine, type Terminal, toPrintable } from '../terminal.ts'
import { tellWait } from './tell-wait.ts'

export interface RunDisplay extends FollowDisplay {
  say(text: string): void
  /** Removes the bar; the lines that were printed stay. */
  end(): void
}

// Wide enough for "KSampler 21/50" and a file name, narrow enough for a small window.
const MAX_MESSAGE = 40

export function createDisplay(terminal: Terminal): RunDisplay {
  return terminal.stderr.isTTY ? createBarDisplay(terminal) : createLineDisplay(terminal)
}

function describeStatus(status: string, queuePosition: number | null): string {
  return queuePosition === null ? status : `${status}, position ${queuePosition}`
}

function shorten(text: string): string {
  return toPrintable(text).slice(0, MAX_MESSAGE)
}

function createBarDisplay(terminal: Terminal): RunDisplay {
  const bar = new SingleBar(
    {
      format: '{bar} {percentage}% {message}',
      stream: terminal.stderr,
      hideCursor: true,
      clearOnComplete: true,
      barsize: 30,
    },
    Presets.shades_classic,
  )
  let isShown = false
  const update = (value: number | null, message: string) => {
    if (!isShown) bar.start(1000, 0, { message })
    isShown = true
    if (value === null) bar.update({ message })
    else bar.update(Math.round(value * 1000), { message })
  }
  const end = () => {
    if (isShown) bar.stop()
    isShown = false
  }
  let lastValue = 0
  return {
    status: (status, position) => update(null, shorten(describeStatus(status, position))),
    progress({ value, message }) {
      lastValue = value
      update(value, shorten(message ?? ''))
    },
    output: (name) => update(lastValue, shorten(name)),
    say(text) {
      end()
      printLine(terminal.stderr, toPrintable(text))
    },
    end,
  }
}

function createLineDisplay(terminal: Terminal): RunDisplay {
  let last = ''
  const say = (text: string) => {
    if (text !== last) printLine(terminal.stderr, toPrintable(text))
    last = text
  }
  return {
    status: (status, position) => say(describeStatus(status, position)),
    progress: (progress: ProgressView) =>
      say(`${Math.round(progress.value * 100)}% ${progress.message ?? ''}`.trimEnd()),
    output: (name) => say(`output ${name}`),
    say,
    end() {},
  }
}

interface FollowDisplay {
  status(status: string, queuePosition: number | null): void
  progress(progress: ProgressView): void
  output(name: string): void
}

interface FollowOptions {
  readonly display: RunDisplay
  readonly signal: AbortSignal
}

const IDLE_MS = 45_000
// Longer than a restart with recovery takes.
const AWAY_MS = 60_000

/** Until the job has ended. Beside its progress it is told why it waits, where it waits for long. */
export async function followJob(client: RunClient, job: JobView, options: FollowOptions): Promise<JobView> {
  const over = new AbortController()
  const telling = tellWait(client, job, {
    display: options.display,
    signal: AbortSignal.any([over.signal, options.signal]),
  })
  try {
    return await followToEnd(client, job, options)
  } finally {
    over.abort(null)
    await telling
  }
}

async function followToEnd(client: RunClient, job: JobView, options: FollowOptions): Promise<JobView> {
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
