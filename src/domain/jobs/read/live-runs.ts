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
import type { LogLine } from '../run/record/log-lines.ts'
import { createNodeSpans, type NodeSpan, type NodeSpans } from '../run/record/run-record.ts'

export interface LiveRun {
  /** Another one for another run of the same job. */
  readonly key: symbol
  /** The same list until one of them changes. */
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
  /** How long another process has to send the earlier events of a run. */
  readonly patienceMs?: number
}

interface RunSoFar {
  take(event: LiveEvent): void
  now(): LiveRun
}

const MAX_LINES = 2000
const MAX_LINE_LENGTH = 4000
// Of all lines of a run together.
const MAX_LENGTH = 128 * 1024

function createRunSoFar(clock: Clock): RunSoFar {
  const spans: NodeSpans = createNodeSpans()
  const key = Symbol('run')
  const lines: LogLine[] = []
  const running = new Set<string>()
  let count = 0
  let length = 0
  let open = ''

  function print(text: string, at: Date): void {
    const nodeId = [...running].at(-1) ?? null
    const parts = (open + text).split('\n')
    // Nodes that have not ended yet are sent with their end.
    open = (parts.pop() ?? '').slice(0, MAX_LINE_LENGTH)
    for (const part of parts) {
      const line = part.slice(0, MAX_LINE_LENGTH)
      lines.push({ n: count, at, nodeId, text: line })
      count += 1
      length += line.length
    }
    // Dropped at twice the bounds, so that a line costs the same whatever came before it.
    if (lines.length > 2 * MAX_LINES || length > 2 * MAX_LENGTH) drop()
  }

  function drop(): void {
    let excess = Math.max(0, lines.length - MAX_LINES)
    for (const { text } of lines.slice(0, excess)) length -= text.length
    for (; length > MAX_LENGTH; excess += 1) length -= lines[excess]?.text.length ?? 0
    lines.splice(0, excess)
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
    now: () => ({ key, nodes: spans.list(), isCut: spans.isCut(), lines: lines.slice(-MAX_LINES) }),
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
      let elsewhere = createRunSoFar(clock)
      const leave = bus.onLive({ jobId }, ({ event }) => {
        if (event.type === 'started') elsewhere = createRunSoFar(clock)
        elsewhere.take(event)
      })
      await sleep(patienceMs)
      leave()
      const so = elsewhere.now()
      return so.nodes.length + so.lines.length === 0 ? null : so
    },
    follow(jobId) {
      // Another process sends the earlier events of its run; a run that is still to begin may begin here.
      let heard = createRunSoFar(clock)
      // A run that ends here is forgotten, but its last events are still to be sent.
      let here = runs.get(jobId)
      const stop = bus.onLive({ jobId }, ({ event }) => {
        if (event.type === 'started') {
          // The next attempt, wherever it runs.
          heard = createRunSoFar(clock)
          here = undefined
        }
        heard.take(event)
      })
      return {
        now() {
          here = runs.get(jobId) ?? here
          return (here ?? heard).now()
        },
        stop,
      }
    },
    [Symbol.dispose]() {
      stop()
      runs.clear()
    },
  }
}
