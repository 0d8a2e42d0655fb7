/**
 * The events of a run: messages of the socket, translated, reports from socket and history (each only once), and printed lines.
 * All are emitted in the order in which they came, although making a report takes a moment.
 */
import type { EngineEvent, NodeRef } from '../../../../../engine/graph/run-event.ts'
import { isJsonObject, type JsonObject, stringifyLosslessJson } from '../../../../../lib/json/lossless-json.ts'
import type { EngineRun } from '../../../../domain/engine/engine-port.ts'
import type { ToReport } from '../files/report-outputs.ts'
import type { RunListener } from '../wire/message-dispatcher.ts'
import { type EngineMessage, toText } from '../wire/socket-frames.ts'
import type { RunFollower } from './follow-run.ts'
import type { HistoryEntry } from './run-endings.ts'
import { type Executed, startTranslation, type TranslateState, toRef, translate } from './translate-messages.ts'

interface EmitterDeps {
  readonly graph: EngineRun['graph']
  readonly nodesTotal: number
  readonly toReport: ToReport
  redact(text: string): string
  emit(event: EngineEvent): void
}

export class RunEmitter {
  readonly #deps: EmitterDeps
  /** Reports by node, as text: one that comes again is not emitted again. */
  readonly #emitted = new Map<string, string>()
  readonly #ran = new Set<string>()
  #translation: TranslateState
  #lastInOrder: Promise<void> = Promise.resolve()
  #waiting = 0
  #isStarted = false

  constructor(deps: EmitterDeps) {
    this.#deps = deps
    this.#translation = startTranslation(deps.graph)
  }

  /** What the socket said about the present round. */
  get heard(): Pick<TranslateState, 'end' | 'error' | 'current'> {
    return this.#translation
  }

  /** The success of the present round as the history would have it; null: the socket has not told it. */
  get toldSuccess(): HistoryEntry | null {
    const { isRecorded, end, cached } = this.#translation
    if (!isRecorded || end !== 'success') return null
    return { outcome: 'success', error: null, cached, outputs: [], startedAt: null, endedAt: null, meta: {} }
  }

  /** The last message of the present round has come. */
  get isRecorded(): boolean {
    return this.#translation.isRecorded
  }

  /** Nodes whose report was emitted. */
  get reported(): ReadonlySet<string> {
    return new Set(this.#emitted.keys())
  }

  /** Nodes that were seen to run. */
  get ran(): ReadonlySet<string> {
    return this.#ran
  }

  /** The graph is submitted once more: the messages of the earlier submit no longer count. */
  beginRound(): void {
    this.#translation = startTranslation(this.#deps.graph)
  }

  /** Harmless when called twice. */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#deps.emit({ type: 'started', nodesTotal: this.#deps.nodesTotal })
  }

  take(message: EngineMessage): void {
    const { state, events } = translate(this.#translation, message)
    this.#translation = state
    // The first message may come before the answer to the submit.
    if (events.length > 0) this.start()
    for (const event of events) {
      if (event.type === 'node_started') this.#ran.add(event.nodeId)
      if (event.type === 'executed') this.#emitReport(event)
      else this.#emit(event)
    }
  }

  log(text: string): void {
    this.#emit({ type: 'log', text: this.#deps.redact(text) })
  }

  /** Emits the reports that are in the history and did not come over the socket. */
  emitHistory(entry: HistoryEntry): void {
    for (const [nodeId, output] of entry.outputs) {
      this.#emitReport({ type: 'executed', ...this.#refOf(entry, nodeId), output, cached: entry.cached.has(nodeId) })
    }
  }

  /** Emits the outcome after everything that still waits. Throws the error of a report that could not be made. */
  async end(event: EngineEvent): Promise<void> {
    await this.#lastInOrder
    const isRefused = event.type === 'failed' && event.failure.refusal !== undefined
    if (!isRefused) this.start()
    this.#deps.emit(event)
  }

  #refOf({ meta }: HistoryEntry, nodeId: string): NodeRef {
    const told: JsonObject = isJsonObject(meta[nodeId]) ? meta[nodeId] : {}
    const ids = { nodeId, displayNodeId: toText(told.display_node), parentNodeId: toText(told.parent_node) }
    return toRef(this.#deps.graph, ids)
  }

  #emitReport({ output, cached, nodeId, classType, displayNodeId, parentNodeId }: Executed): void {
    const text = stringifyLosslessJson(output)
    if (this.#emitted.get(nodeId) === text) return
    this.#emitted.set(nodeId, text)
    const ref = { nodeId, classType, displayNodeId, parentNodeId }
    const made = this.#deps.toReport(output)
    this.#inOrder(async () => this.#deps.emit({ type: 'node_report', ...ref, report: await made, cached }))
  }

  /** After the reports that are still being made, if there are any. */
  #emit(event: EngineEvent): void {
    if (this.#waiting === 0) this.#deps.emit(event)
    else this.#inOrder(() => this.#deps.emit(event))
  }

  #inOrder(act: () => void | Promise<void>): void {
    this.#waiting++
    this.#lastInOrder = this.#lastInOrder.then(act).finally(() => {
      this.#waiting--
    })
    // `end` awaits it and throws its error.
    this.#lastInOrder.catch(() => {})
  }
}

type WokenFollower = Pick<RunFollower, 'heard' | 'hint' | 'hintSoon'>

// What Python prints when the thread in which ComfyUI runs prompts has died. The server still answers, but runs nothing more.
const WORKER_DEATH = /^Exception in thread .*\(prompt_worker\)/m
// A line may come in pieces, so the end of what was printed is kept.
const TAIL_LENGTH = 200

/** What the dispatcher has for a run goes to the run's emitter, and wakes the follower. */
export class ForwardingListener implements RunListener {
  readonly #emitter: RunEmitter
  #follower: WokenFollower | null = null
  #isWorkerDead = false
  #printed = '\n'

  constructor(emitter: RunEmitter) {
    this.#emitter = emitter
  }

  wake(follower: WokenFollower): void {
    this.#follower = follower
    // The run may have ended before its submit was answered.
    if (this.#emitter.heard.end !== null) follower.hint()
  }

  /** The server told the end of the run, or printed the death of its thread and has sent nothing of the run since. */
  get isSaidToBeOver(): boolean {
    return this.#isWorkerDead || this.#emitter.heard.end !== null
  }

  onMessage(message: EngineMessage): void {
    this.#isWorkerDead = false
    this.#emitter.take(message)
    this.#follower?.heard()
    if (isRecorded(message)) this.#follower?.hint()
    else if (this.#emitter.heard.end !== null) this.#follower?.hintSoon()
  }

  onLog(text: string): void {
    this.#emitter.log(text)
    this.#follower?.heard()
    const printed = this.#printed + text
    if (WORKER_DEATH.test(printed)) this.#isWorkerDead = true
    this.#printed = this.#isWorkerDead ? '' : printed.slice(-TAIL_LENGTH)
  }

  /** What it means for the run is told by messages of its own, a moment later; only where they fail to come it is asked. */
  onQueueChange(): void {
    this.#follower?.hintSoon()
  }
}

/** This message is sent after the history got its entry; success, failure and interruption are told before. */
function isRecorded(message: EngineMessage): boolean {
  return message.kind === 'json' && message.type === 'executing' && message.data.node === null
}

/**
 * Events of a run on their way to its reader. With a slow reader the queue grows up to a bound; then previews and progress are
 * dropped, oldest first, and after them printed lines. Outputs are never lost by that: reports stay, and so do pictures that
 * exist nowhere else.
 */
const EXPENDABLE: readonly EngineEvent['type'][] = ['preview', 'node_progress', 'log', 'node_text']

function isResult(event: EngineEvent): boolean {
  return event.type === 'preview' && event.isResult === true
}

export class EventQueue implements AsyncIterable<EngineEvent> {
  readonly #maxWaiting: number
  readonly #waiting: EngineEvent[] = []
  #over: { readonly error: unknown } | 'ended' | null = null
  #wake: (() => void) | null = null
  #onDropped: ((event: EngineEvent) => void) | null = null

  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting
  }

  push(event: EngineEvent): void {
    if (this.#onDropped !== null) {
      this.#onDropped(event)
      return
    }
    if (this.#over !== null) return
    if (this.#waiting.length >= this.#maxWaiting) this.#makeRoom()
    this.#waiting.push(event)
    this.#wake?.()
  }

  /** Events that were pushed before are still read. */
  end(): void {
    this.#over ??= 'ended'
    this.#wake?.()
  }

  fail(error: unknown): void {
    this.#over ??= { error }
    this.#wake?.()
  }

  /** Nobody reads any more: what waits, and what still comes, is handed to `onDropped`. */
  abandon(onDropped: (event: EngineEvent) => void): void {
    this.#onDropped = onDropped
    for (const event of this.#waiting.splice(0)) onDropped(event)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<EngineEvent, void, undefined> {
    const waiting = this.#waiting
    while (true) {
      for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) yield event
      const over = this.#over
      if (over === 'ended') return
      if (over !== null) throw over.error
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = null
    }
  }

  #makeRoom(): void {
    for (const type of EXPENDABLE) {
      const at = this.#waiting.findIndex((event) => event.type === type && !isResult(event))
      if (at === -1) continue
      this.#waiting.splice(at, 1)
      return
    }
  }
}
