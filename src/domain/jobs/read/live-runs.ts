/**
 * How far the nodes of running jobs are and what they print, as it is told live. Nothing of it is stored: when a run ends, what it
 * showed is with the job. Of runs in this process everything is known from their beginning; of runs elsewhere, what their process
 * tells whoever comes later.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import { sleep } from '../../../../lib/waiting/sleep.ts'
import type { EventBus, JobLive } from '../../events/event-bus.ts'
import type { LiveEvent } from '../../events/live-event.ts'
import type { LogLine } from '../run/log-lines.ts'
import { createNodeSpans, type NodeSpan, type NodeSpans } from '../run/node-spans.ts'

export interface LiveRun {
  readonly nodes: readonly NodeSpan[]
  readonly isCut: boolean
  /** The newest lines. */
  readonly lines: readonly LogLine[]
}

export interface LiveRuns extends Disposable {
  /** null: nothing is known of a run of this job. */
  read(jobId: string): Promise<LiveRun | null>
  /** What is known at any time from now on. */
  follow(jobId: string): FollowedRun
}

interface FollowedRun {
  now(): LiveRun
  stop(): void
}

interface LiveRunsDeps {
  readonly bus: Pick<EventBus<LiveEvent>, 'hasOthers' | 'onLive'>
  readonly clock: Clock
  readonly maxJobs?: number
  /** How long a run elsewhere has to tell what it told before. */
  readonly patienceMs?: number
}

interface RunSoFar {
  take(event: LiveEvent): void
  now(): LiveRun
}

const MAX_LINES = 2000
const MAX_LINE_LENGTH = 4000

function createRunSoFar(clock: Clock): RunSoFar {
  const spans: NodeSpans = createNodeSpans()
  const lines: LogLine[] = []
  const running = new Set<string>()
  let count = 0
  let open = ''

  function print(text: string, at: Date): void {
    const nodeId = [...running].at(-1) ?? null
    const parts = (open + text).split('\n')
    // What is not ended yet is told with its end.
    open = (parts.pop() ?? '').slice(0, MAX_LINE_LENGTH)
    for (const part of parts) {
      lines.push({ n: count, at, nodeId, text: part.slice(0, MAX_LINE_LENGTH) })
      count += 1
    }
    if (lines.length > 2 * MAX_LINES) lines.splice(0, lines.length - MAX_LINES)
  }

  return {
    take(event) {
      const at = clock.now()
      spans.take(event, at.getTime())
      if (event.type === 'node_started') running.add(event.displayNodeId)
      else if (event.type === 'node_finished') running.delete(event.displayNodeId)
      else if (event.type === 'log') print(event.text, at)
      else if (event.type === 'node_blocked')
        print(`[${event.displayNodeId}] Execution Blocked: ${event.message}\n`, at)
    },
    now: () => ({ nodes: spans.list(), isCut: spans.isCut(), lines: lines.slice(-MAX_LINES) }),
  }
}

export function createLiveRuns({ bus, clock, maxJobs = 256, patienceMs = 250 }: LiveRunsDeps): LiveRuns {
  const runs = new BoundedMap<string, RunSoFar>(maxJobs)
  const stop = bus.onLive('published_here', ({ jobId, event }: JobLive<LiveEvent>) => {
    if (event.type === 'started') runs.set(jobId, createRunSoFar(clock))
    if (event.type === 'succeeded' || event.type === 'failed' || event.type === 'interrupted') runs.delete(jobId)
    else runs.get(jobId)?.take(event)
  })

  return {
    async read(jobId) {
      const known = runs.get(jobId)
      if (known !== undefined) return known.now()
      if (!bus.hasOthers) return null
      const elsewhere = createRunSoFar(clock)
      const leave = bus.onLive({ jobId }, ({ event }) => elsewhere.take(event))
      await sleep(patienceMs)
      leave()
      const so = elsewhere.now()
      return so.nodes.length + so.lines.length === 0 ? null : so
    },
    follow(jobId) {
      // A run elsewhere tells what it told before; one that is still to begin may begin here.
      const heard = createRunSoFar(clock)
      const stop = bus.onLive({ jobId }, ({ event }) => heard.take(event))
      return { now: () => (runs.get(jobId) ?? heard).now(), stop }
    },
    [Symbol.dispose]() {
      stop()
      runs.clear()
    },
  }
}
