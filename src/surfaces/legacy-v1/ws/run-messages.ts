/**
 * The messages about runs: every engine event in the order and the words that ComfyUI uses. Runs are followed whether or not
 * a socket is open, so that a client which connects in the middle is told how far its run is.
 */

import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { LiveEvent } from '../../../domain/events/live-event.ts'
import type { Batch } from './batch.ts'
import { encodeNodeText } from './frames.ts'
import {
  blockedMessage,
  cachedMessage,
  errorMessage,
  executedMessage,
  executingMessage,
  executingNothingMessage,
  interruptedMessage,
  progressMessage,
  progressStateMessage,
  startMessage,
  statusMessage,
  successMessage,
} from './messages.ts'
import { RunProgress } from './run-progress.ts'

export type EndEvent = Extract<LiveEvent, { type: 'succeeded' | 'failed' | 'interrupted' }>
type RunningEvent = Exclude<LiveEvent, EndEvent | { type: 'log' }>
type Writer<Type> = (batch: Batch, run: RunProgress, event: Extract<RunningEvent, { type: Type }>) => void

export interface RunKey {
  readonly jobId: string
  readonly accountId: string
}

export interface RunMessages {
  /** Follows the run. If the event has messages for clients, `say` is called with a function that writes them. */
  take(key: RunKey, event: Exclude<LiveEvent, EndEvent>, say: (write: (batch: Batch) => void) => void): void
  /** The end of a run, then the status of the queue, then the `executing` without a node that clients wait for. Forgets the run. */
  end(key: RunKey, event: EndEvent, live: () => number): (batch: Batch) => void
  forget(jobId: string): void
  has(jobId: string): boolean
  ofAccount(accountId: string): readonly RunProgress[]
}

interface RunMessagesDeps {
  readonly clock: Clock
  readonly maxRuns?: number
}

/**
 * Each `progress_state` shows every node so far, so in a graph of thousands all of them together grow with the square. Beyond
 * this many nodes it is sent now and then; the steps themselves are always sent.
 */
const MANY_NODES = 100
const MANY_NODES_EVERY_MS = 250
const PAUSE_MS_PER_NODE = 0.1
// Runs are dropped when they end; this only bounds what a defect could leave behind.
const MAX_RUNS = 10_000

/** The more nodes there are, the longer the pause, so that the cost per second stays the same. */
function pauseFor(nodes: number): number {
  return Math.max(MANY_NODES_EVERY_MS, nodes * PAUSE_MS_PER_NODE)
}

export function createRunMessages({ clock, maxRuns = MAX_RUNS }: RunMessagesDeps): RunMessages {
  const runs = new BoundedMap<string, RunProgress>(maxRuns)
  const nowMs = () => clock.now().getTime()

  function begin({ jobId, accountId }: RunKey): RunProgress {
    const run = new RunProgress(jobId, accountId)
    runs.set(jobId, run)
    return run
  }

  function addState(batch: Batch, run: RunProgress): void {
    const now = nowMs()
    run.isStateDue = run.nodeCount > MANY_NODES && now - run.toldAt < pauseFor(run.nodeCount)
    if (run.isStateDue) return
    run.toldAt = now
    batch.addText(progressStateMessage(run))
  }

  const writers: { readonly [Type in RunningEvent['type']]: Writer<Type> } = {
    started: (batch, { jobId }) => batch.addText(startMessage(jobId, nowMs())),
    cached: (batch, { jobId }, { nodeIds }) => batch.addText(cachedMessage(jobId, nodeIds, nowMs())),
    node_started(batch, run, event) {
      addState(batch, run)
      batch.addText(executingMessage(run.jobId, event))
    },
    node_progress(batch, run, event) {
      addState(batch, run)
      batch.addProgress(progressMessage(run.jobId, event))
    },
    preview: (batch, { jobId }, event) => batch.addPreview(jobId, event),
    node_text: (batch, _run, { nodeId, text }) => batch.addBinary(encodeNodeText(nodeId, text)),
    node_report: (batch, { jobId }, event) => batch.addText(executedMessage(jobId, event)),
    node_finished: (batch, run) => addState(batch, run),
    node_blocked: (batch, run, event) => batch.addText(blockedMessage(run, event)),
  }

  function writeEnd(batch: Batch, run: RunProgress, event: EndEvent): void {
    if (run.isStateDue) batch.addText(progressStateMessage(run))
    if (event.type === 'succeeded') batch.addText(successMessage(run.jobId, nowMs()))
    else if (event.type === 'interrupted') batch.addText(interruptedMessage(run, nowMs()))
    else batch.addText(errorMessage(run, event.failure, nowMs()))
  }

  return {
    take(key, event, say) {
      if (event.type === 'log' || (event.type === 'node_progress' && event.isOwn === true)) return
      const run = event.type === 'started' ? begin(key) : (runs.get(key.jobId) ?? begin(key))
      run.take(event)
      say((batch) => (writers[event.type] as Writer<typeof event.type>)(batch, run, event as never))
    },
    end(key, event, live) {
      const run = runs.get(key.jobId) ?? new RunProgress(key.jobId, key.accountId)
      runs.delete(key.jobId)
      return (batch) => {
        writeEnd(batch, run, event)
        batch.addTextForAll(statusMessage(live()))
        batch.addText(executingNothingMessage(key.jobId))
      }
    },
    forget: (jobId) => void runs.delete(jobId),
    has: (jobId) => runs.has(jobId),
    ofAccount: (accountId) => [...runs.values()].filter((run) => run.accountId === accountId),
  }
}
