/**
 * The messages about runs: every engine event in the order and the words that ComfyUI uses. Runs are followed whether or not
 * a socket is open, so that a client which connects in the middle is told how far its run is.
 */
import type { NodeRef } from '../../../../engine/graph/run-event.ts'
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { LiveEvent, LiveFailure } from '../../../domain/events/live-event.ts'
import { toShownOutput } from '../../../domain/jobs/run/record/run-record.ts'
import { toExceptionMessage, toExceptionType, toNodeNames, toTraceback } from '../legacy-errors.ts'
import type { Batch } from './batch.ts'
import { encodeNodeText } from './frames.ts'

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

/**
 * How far one run is, node by node, folded from its events: for `progress_state`, which shows all nodes each time, for errors,
 * which name the nodes that have run, and for clients that connect in the middle. The text of each node is kept, because it is
 * sent again and again and rarely changes.
 */
type NodeState = 'running' | 'finished'

interface NodeEntry {
  readonly ref: NodeRef
  readonly value: string
  readonly max: string
  readonly state: NodeState
  /** Made on first use. */
  json: string | null
}

// Python writes these two as floats; the numbers that a node reports are written as they came.
const START = '0.0'
const WHOLE = '1.0'

class RunProgress {
  readonly jobId: string
  readonly accountId: string
  readonly #idJson: string
  readonly #nodes = new Map<string, NodeEntry>()
  readonly #running = new Map<string, NodeRef>()
  readonly #executed: string[] = []
  readonly #hasExecuted = new Set<string>()
  /** The node that clients were last shown as executing. */
  lastNode: NodeRef | null = null
  /** When `progress_state` was last told, and whether more happened since. */
  toldAt = Number.NEGATIVE_INFINITY
  isStateDue = false

  constructor(jobId: string, accountId: string) {
    this.jobId = jobId
    this.accountId = accountId
    this.#idJson = JSON.stringify(jobId)
  }

  get nodeCount(): number {
    return this.#nodes.size
  }

  /** Nodes that this run itself has finished: not those that were cached. */
  get executed(): readonly string[] {
    return this.#executed
  }

  /** The submitted node that is running, of several the one that began last; otherwise the last one that ran. */
  get current(): NodeRef | null {
    const ref = [...this.#running.values()].at(-1) ?? this.lastNode
    return ref === null ? null : (this.#nodes.get(ref.displayNodeId)?.ref ?? ref)
  }

  take(event: LiveEvent): void {
    if (event.type === 'node_started') this.#start(event)
    else if (event.type === 'node_progress') this.#step(event)
    else if (event.type === 'node_finished') this.#finish(event)
  }

  /** The `nodes` of a `progress_state`: every node that has begun. */
  nodesJson(): string {
    let json = '{'
    for (const entry of this.#nodes.values()) {
      entry.json ??= this.#toJson(entry)
      json += json === '{' ? entry.json : `,${entry.json}`
    }
    return `${json}}`
  }

  #start(ref: NodeRef): void {
    this.lastNode = ref
    this.#running.delete(ref.nodeId)
    this.#running.set(ref.nodeId, ref)
    this.#put(ref, { value: START, max: WHOLE, state: 'running' })
  }

  #step(event: Extract<LiveEvent, { type: 'node_progress' }>): void {
    this.#put(event, { value: toNumber(event.value), max: toNumber(event.max), state: 'running' })
  }

  #finish(ref: NodeRef): void {
    if (this.#running.delete(ref.nodeId) && !this.#hasExecuted.has(ref.nodeId)) {
      this.#hasExecuted.add(ref.nodeId)
      this.#executed.push(ref.nodeId)
    }
    const max = this.#nodes.get(ref.nodeId)?.max ?? WHOLE
    this.#put(ref, { value: max, max, state: 'finished' })
  }

  #put(ref: NodeRef, shown: Pick<NodeEntry, 'value' | 'max' | 'state'>): void {
    this.#nodes.set(ref.nodeId, { ref, ...shown, json: null })
  }

  #toJson({ ref, value, max, state }: NodeEntry): string {
    const id = JSON.stringify(ref.nodeId)
    const display = JSON.stringify(ref.displayNodeId)
    return (
      `${id}:{"value":${value},"max":${max},"state":"${state}","node_id":${id},"prompt_id":${this.#idJson},` +
      `"display_node_id":${display},"parent_node_id":${JSON.stringify(ref.parentNodeId)},"real_node_id":${display}}`
    )
  }
}

function toNumber(value: number): string {
  return Number.isFinite(value) ? String(value) : '0'
}

/** Every text message of the socket, with exactly the keys that clients know, in their order. Pure. */
type ReportEvent = Extract<LiveEvent, { type: 'node_report' }>
type ProgressEvent = Extract<LiveEvent, { type: 'node_progress' }>
type BlockedEvent = Extract<LiveEvent, { type: 'node_blocked' }>

const MAX_SHOWN_EXECUTED = 1000
/** The terminal size that is reported to clients; there is no terminal. */
export const TERMINAL_SIZE = { cols: 80, rows: 24 }

export function toMessage(type: string, data: object): string {
  return `{"type":"${type}","data":${JSON.stringify(data)}}`
}

/** The first one of a connection carries the id of the client. */
export function statusMessage(queueRemaining: number, sid?: string): string {
  return toMessage('status', {
    status: { exec_info: { queue_remaining: queueRemaining } },
    ...(sid !== undefined && { sid }),
  })
}

export function featureFlagsMessage(features: object): string {
  return toMessage('feature_flags', features)
}

function startMessage(jobId: string, timestamp: number): string {
  return toMessage('execution_start', { prompt_id: jobId, timestamp })
}

function cachedMessage(jobId: string, nodes: readonly string[], timestamp: number): string {
  return toMessage('execution_cached', { nodes, prompt_id: jobId, timestamp })
}

function progressStateMessage(run: RunProgress): string {
  return `{"type":"progress_state","data":{"prompt_id":${JSON.stringify(run.jobId)},"nodes":${run.nodesJson()}}}`
}

function executingMessage(jobId: string, { nodeId, displayNodeId }: NodeRef): string {
  return toMessage('executing', { node: nodeId, display_node: displayNodeId, prompt_id: jobId })
}

/** The end of a run, however it ended. */
function executingNothingMessage(jobId: string): string {
  return toMessage('executing', { node: null, prompt_id: jobId })
}

/** For a client that connects again in the middle of its run; ComfyUI names no job here. */
export function stillExecutingMessage({ displayNodeId }: NodeRef): string {
  return toMessage('executing', { node: displayNodeId })
}

function progressMessage(jobId: string, { value, max, nodeId }: ProgressEvent): string {
  return toMessage('progress', { value, max, prompt_id: jobId, node: nodeId })
}

function executedMessage(jobId: string, { nodeId, displayNodeId, report }: ReportEvent): string {
  const output = toShownOutput(report)
  return toMessage('executed', { node: nodeId, display_node: displayNodeId, output, prompt_id: jobId })
}

function successMessage(jobId: string, timestamp: number): string {
  return toMessage('execution_success', { prompt_id: jobId, timestamp })
}

/** An error in form only: the branch ends here and the run goes on. */
function blockedMessage(run: RunProgress, { nodeId, classType, message }: BlockedEvent): string {
  return toMessage('execution_error', {
    prompt_id: run.jobId,
    node_id: nodeId,
    node_type: classType,
    // A graph may have thousands of blocked nodes, and each message would name all nodes that have run.
    executed: run.executed.slice(-MAX_SHOWN_EXECUTED),
    exception_message: `Execution Blocked: ${message}`,
    exception_type: 'ExecutionBlocked',
    traceback: [],
    current_inputs: [],
    current_outputs: [],
  })
}

function errorMessage(run: RunProgress, failure: LiveFailure, timestamp: number): string {
  return toMessage('execution_error', {
    prompt_id: run.jobId,
    ...toNodeNames(failure.nodeId, failure.classType),
    executed: failure.executed ?? run.executed,
    exception_message: toExceptionMessage(failure.message),
    exception_type: toExceptionType(failure, failure.exceptionType),
    traceback: toTraceback(failure.traceback),
    current_inputs: failure.currentInputs ?? {},
    current_outputs: failure.currentOutputs ?? [],
    timestamp,
  })
}

function interruptedMessage(run: RunProgress, timestamp: number): string {
  return toMessage('execution_interrupted', {
    prompt_id: run.jobId,
    ...toNodeNames(run.current?.nodeId ?? null, run.current?.classType ?? null),
    executed: run.executed,
    timestamp,
  })
}

/** A sentence for people about one job. */
export function notificationMessage(jobId: string, value: string): string {
  return toMessage('notification', { value, id: jobId, prompt_id: jobId })
}

/** What runs printed. */
export function logsMessage(entries: readonly object[]): string {
  return toMessage('logs', { entries, size: TERMINAL_SIZE })
}
