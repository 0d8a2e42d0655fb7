/**
 * What a run tells upward: translated messages of the socket, reports from socket and history alike (each only once), and
 * printed lines, all in the order in which they came although making a report takes a moment.
 */
import type { EngineEvent, NodeRef } from '../../../../../engine/graph/run-event.ts'
import { isJsonObject, type JsonObject, stringifyLosslessJson } from '../../../../../lib/json/lossless-json.ts'
import type { EngineRun } from '../../../../domain/engine/engine.ts'
import type { ToReport } from '../files/report-outputs.ts'
import type { RunListener } from '../wire/message-dispatcher.ts'
import { type EngineMessage, toText } from '../wire/socket-frames.ts'
import type { RunFollower } from './follow-run.ts'
import type { HistoryEntry } from './run-history.ts'
import { type Executed, startTranslation, type TranslateState, toRef, translate } from './translate-messages.ts'

export interface TellerDeps {
  readonly graph: EngineRun['graph']
  readonly nodesTotal: number
  readonly toReport: ToReport
  redact(text: string): string
  emit(event: EngineEvent): void
}

export class RunTeller {
  readonly #deps: TellerDeps
  /** Reports by node, as text: one that comes again is not told again. */
  readonly #told = new Map<string, string>()
  readonly #ran = new Set<string>()
  #translation: TranslateState
  #turns: Promise<void> = Promise.resolve()
  #waitingTurns = 0
  #isStarted = false

  constructor(deps: TellerDeps) {
    this.#deps = deps
    this.#translation = startTranslation(deps.graph)
  }

  /** What the socket said about the present round. */
  get heard(): Pick<TranslateState, 'end' | 'error' | 'current'> {
    return this.#translation
  }

  /** Nodes whose report was told. */
  get reported(): ReadonlySet<string> {
    return new Set(this.#told.keys())
  }

  /** Nodes that were seen to run. */
  get ran(): ReadonlySet<string> {
    return this.#ran
  }

  /** The graph is handed over once more: its messages begin anew. */
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
    // The first news may come before the answer to the submit.
    if (events.length > 0) this.start()
    for (const event of events) {
      if (event.type === 'node_started') this.#ran.add(event.nodeId)
      if (event.type === 'executed') this.#tellReport(event)
      else this.#tell(event)
    }
  }

  log(text: string): void {
    this.#tell({ type: 'log', text: this.#deps.redact(text) })
  }

  /** Everything that the history has and the socket did not bring. */
  tellHistory(entry: HistoryEntry): void {
    for (const [nodeId, output] of entry.outputs) {
      this.#tellReport({ type: 'executed', ...this.#refOf(entry, nodeId), output, cached: entry.cached.has(nodeId) })
    }
  }

  /** The last word, behind everything that still waits. Throws what kept a report from being made. */
  async end(event: EngineEvent): Promise<void> {
    await this.#turns
    const isRefused = event.type === 'failed' && event.failure.refusal !== undefined
    if (!isRefused) this.start()
    this.#deps.emit(event)
  }

  #refOf({ meta }: HistoryEntry, nodeId: string): NodeRef {
    const told: JsonObject = isJsonObject(meta[nodeId]) ? meta[nodeId] : {}
    const place = { nodeId, displayNodeId: toText(told.display_node), parentNodeId: toText(told.parent_node) }
    return toRef(this.#deps.graph, place)
  }

  #tellReport({ output, cached, nodeId, classType, displayNodeId, parentNodeId }: Executed): void {
    const text = stringifyLosslessJson(output)
    if (this.#told.get(nodeId) === text) return
    this.#told.set(nodeId, text)
    const ref = { nodeId, classType, displayNodeId, parentNodeId }
    const made = this.#deps.toReport(output)
    this.#inTurn(async () => this.#deps.emit({ type: 'node_report', ...ref, report: await made, cached }))
  }

  /** Behind the reports that are still being made, if there are any. */
  #tell(event: EngineEvent): void {
    if (this.#waitingTurns === 0) this.#deps.emit(event)
    else this.#inTurn(() => this.#deps.emit(event))
  }

  #inTurn(act: () => void | Promise<void>): void {
    this.#waitingTurns++
    this.#turns = this.#turns.then(act).finally(() => {
      this.#waitingTurns--
    })
    // Whoever ends the run waits for it and hears of its failure.
    this.#turns.catch(() => {})
  }
}

type Hinted = Pick<RunFollower, 'heard' | 'hint' | 'hintSoon'>

// How Python tells that the thread in which ComfyUI runs prompts has ended. Its HTTP goes on, and nothing runs any more.
const WORKER_DEATH = /^Exception in thread .*\(prompt_worker\)/m
// A line may come in pieces.
const TAIL_LENGTH = 200

export class TellingListener implements RunListener {
  readonly #teller: RunTeller
  #follower: Hinted | null = null
  #isWorkerDead = false
  #printed = '\n'

  constructor(teller: RunTeller) {
    this.#teller = teller
  }

  wake(follower: Hinted): void {
    this.#follower = follower
    // The run may have ended before its submit was answered.
    if (this.#teller.heard.end !== null) follower.hint()
  }

  /** The server told the end of the run, or printed that of the thread that runs it and was not heard of the run since. */
  get isSaidToBeOver(): boolean {
    return this.#isWorkerDead || this.#teller.heard.end !== null
  }

  onMessage(message: EngineMessage): void {
    this.#isWorkerDead = false
    this.#teller.take(message)
    this.#follower?.heard()
    if (isLastWord(message)) this.#follower?.hint()
    else if (this.#teller.heard.end !== null) this.#follower?.hintSoon()
  }

  onLog(text: string): void {
    this.#teller.log(text)
    this.#follower?.heard()
    const printed = this.#printed + text
    if (WORKER_DEATH.test(printed)) this.#isWorkerDead = true
    this.#printed = this.#isWorkerDead ? '' : printed.slice(-TAIL_LENGTH)
  }

  onQueueChange(): void {
    this.#follower?.hint()
  }
}

/** Sent when the history has its entry; success, failure and interruption are told before. */
function isLastWord(message: EngineMessage): boolean {
  return message.kind === 'json' && message.type === 'executing' && message.data.node === null
}
