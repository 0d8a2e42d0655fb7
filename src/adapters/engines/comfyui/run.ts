/**
 * One run on one server: bring the inputs, hand over the graph, follow it, tell what happens, and end with one outcome. A
 * success without outputs is healed by having the outputs made anew, once. Whatever the server keeps of the run is removed
 * afterwards as far as it can be asked to. A reader who leaves early stops the run.
 */
import type { EngineRun, RunOptions } from '../../../domain/engine/engine.ts'
import type { EngineEvent, EngineFailure, NodeRef } from '../../../domain/engine/engine-event.ts'
import { EngineLostError } from '../../../domain/engine/engine-lost-error.ts'
import type { NodeCatalog } from '../../../domain/workflows/node-catalog.ts'
import { writeGraph } from '../../../domain/workflows/write-graph.ts'
import type { Log } from '../../../lib/log.ts'
import { isJsonObject, type JsonObject, stringifyLosslessJson } from '../../../lib/lossless-json.ts'
import { sleep } from '../../../lib/sleep.ts'
import { createEventQueue } from './event-queue.ts'
import { createRedact, toServerExtraData } from './extra-data.ts'
import { type FailureBounds, toFailure } from './failure.ts'
import { type FollowDeps, RunFollower } from './follow-run.ts'
import { type EngineMessage, toText } from './frames.ts'
import { type HistoryEntry, readHistory } from './history.ts'
import { CallError } from './http.ts'
import type { Hub, RunListener } from './hub.ts'
import { missingReports } from './missing-reports.ts'
import { earlierPromptIds, promptIdOf } from './prompt-id.ts'
import { type Refusal, toRefusal } from './refusal.ts'
import { createReporter, type ToReport } from './report.ts'
import { countReachable, type FreshOutputs, namesToStage, rewriteGraph } from './rewrite-graph.ts'
import { InputTooLargeError, type Stage } from './stage-inputs.ts'
import { type Submitted, submitRun } from './submit-run.ts'
import { type Executed, startTranslation, type TranslateState, toRef, translate } from './translate.ts'

export interface RunDeps extends FollowDeps {
  readonly hub: Hub
  readonly stage: Stage
  readonly log: Log
  readonly catalog: NodeCatalog
  /** How long printed lines may lag behind the run's end. */
  readonly printedAfterMs: number
  /** Shared by all runs on the engine, and learnt from them. */
  readonly silentClasses: Set<string>
  /** The server refused what its node classes allow: they may have changed. */
  onSurprise(): void
  /** The server has forgotten a run: its process is a new one. */
  onForgotten(): void
}

export async function* runOnServer(deps: RunDeps, run: EngineRun, { signal }: RunOptions): AsyncGenerator<EngineEvent> {
  const queue = createEventQueue(deps.bounds.maxWaitingEvents)
  const left = new AbortController()
  const attempt = new Attempt(deps, run, { stop: AbortSignal.any([signal, left.signal]), emit: queue.push })
  attempt.run().then(queue.end, queue.fail)
  try {
    yield* queue
  } finally {
    left.abort()
  }
}

interface AttemptOptions {
  readonly stop: AbortSignal
  emit(event: EngineEvent): void
}

/** What a round came to; `again` asks for one more: with these outputs made anew, or with the inputs brought again. */
type RoundEnd =
  | EngineEvent
  | { readonly type: 'again'; readonly why: 'empty' | 'files'; readonly nodeIds: readonly string[] }

class Attempt {
  readonly #deps: RunDeps
  readonly #run: EngineRun
  readonly #stop: AbortSignal
  readonly #emit: (event: EngineEvent) => void
  readonly #folder: string
  readonly #toReport: ToReport
  readonly #failureBounds: FailureBounds
  /** Reports by node, as text: one that comes again is not told again. */
  readonly #told = new Map<string, string>()
  readonly #ran = new Set<string>()
  #translation: TranslateState
  /** Reports take a moment to be made; they are told in their order. */
  #reports: Promise<void> = Promise.resolve()
  #waitingTurns = 0
  #isStarted = false
  /** Outputs that were made anew because nothing was told of them. */
  #healed: readonly string[] = []

  constructor(deps: RunDeps, run: EngineRun, { stop, emit }: AttemptOptions) {
    const { bounds } = deps
    this.#deps = deps
    this.#run = run
    this.#stop = stop
    this.#emit = emit
    this.#folder = `atelier/${run.jobId}-${run.attempt}`
    this.#toReport = createReporter({
      api: deps.api,
      bounds,
      folder: this.#folder,
      reserveOutputNumbers: run.reserveOutputNumbers,
      onUnreadable: (error) => deps.log.warn({ err: error, jobId: run.jobId }, 'an output could not be read'),
    })
    this.#failureBounds = { ...bounds, redact: createRedact(run.extraData) }
    this.#translation = startTranslation(run.graph)
  }

  /** Ends with exactly one outcome, or throws EngineLostError. */
  async run(): Promise<void> {
    const end = await this.#rounds().catch((error) => this.#toEnd(error))
    await this.#reports
    this.#start()
    this.#emit(end)
  }

  async #rounds(): Promise<EngineEvent> {
    if (this.#run.attempt > 1) await this.#stopEarlier()
    // What an earlier attempt left in the server's cache may be gone from its folders.
    let freshIds: ReadonlySet<string> | null | undefined = this.#run.attempt > 1 ? null : undefined
    for (let round = 0; ; round++) {
      const end = await this.#round(round, freshIds)
      if (end.type !== 'again') return end
      if (end.why === 'files') this.#deps.stage.forget()
      else freshIds = new Set(end.nodeIds)
      this.#deps.log.info({ jobId: this.#run.jobId, why: end.why }, 'a run is repeated on its engine')
    }
  }

  /** A failure of ours to talk to the server is a lost attempt; everything else has a name. */
  #toEnd(error: unknown): EngineEvent {
    if (this.#stop.aborted && !(error instanceof EngineLostError)) return { type: 'interrupted' }
    if (error instanceof InputTooLargeError)
      return { type: 'failed', failure: plainFailure('input_too_large', error.message) }
    if (!(error instanceof CallError)) throw error
    const code = error.fault === 'status' || error.fault === 'malformed' ? 'engine_overloaded' : 'engine_unreachable'
    throw new EngineLostError(code, `the engine could not be used: ${error.message}`, { cause: error })
  }

  /** An attempt before this one may still be at it here: two of them must not come to an end. */
  async #stopEarlier(): Promise<void> {
    const { api, stopper } = this.#deps
    const ids = earlierPromptIds(this.#run.jobId, this.#run.attempt)
    const { running, pending } = await api.queue({ signal: this.#stop })
    for (const { promptId } of pending) if (ids.has(promptId)) await stopper.press(promptId, 'pending')
    for (const { promptId } of running) if (ids.has(promptId)) await stopper.press(promptId, 'running')
  }

  /** `freshIds`: outputs to be made anew; null: all, undefined: none. */
  async #round(round: number, freshIds: ReadonlySet<string> | null | undefined): Promise<RoundEnd> {
    const { hub, socket, bounds } = this.#deps
    const { jobId, attempt } = this.#run
    const token = `${jobId}-${attempt}-${round}`
    const graphText = await this.#prepareGraph(freshIds === undefined ? null : { token, nodeIds: freshIds })
    if (this.#stop.aborted) return { type: 'interrupted' }
    const promptId = promptIdOf({ jobId, attempt, round })
    await socket.untilOpen(bounds.socketWaitMs)
    this.#translation = startTranslation(this.#run.graph)
    // Attached first: from then on the socket keeps its id, and no event of the run is missed.
    const listener = this.#listen()
    hub.attach(promptId, listener)
    try {
      const clientId = socket.clientId()
      const submitted = await submitRun(this.#deps, {
        promptId,
        stop: this.#stop,
        body: this.#toBody(graphText, promptId, clientId),
      })
      if (submitted.kind === 'given_up') return { type: 'interrupted' }
      if (submitted.promptId !== promptId) hub.attach(submitted.promptId, listener)
      try {
        return await this.#finish(submitted, { listener, clientId, round })
      } finally {
        hub.detach(submitted.promptId)
      }
    } finally {
      hub.detach(promptId)
    }
  }

  async #prepareGraph(fresh: FreshOutputs | null): Promise<string> {
    const { catalog, stage } = this.#deps
    const { graph, inputs } = this.#run
    const names = namesToStage(graph, catalog, new Set(inputs.keys()))
    const wanted = new Map([...inputs].filter(([name]) => names.has(name)))
    const staged = await stage.bring(wanted, this.#stop)
    return writeGraph(rewriteGraph(graph, { catalog, staged, folder: this.#folder, fresh }))
  }

  #toBody(graphText: string, promptId: string, clientId: string): string {
    const rest = { client_id: clientId, prompt_id: promptId, extra_data: toServerExtraData(this.#run.extraData) }
    return `{"prompt":${graphText},${stringifyLosslessJson(rest).slice(1)}`
  }

  #listen(): Listener {
    return new Listener(
      (message) => this.#take(message),
      (text) => this.#log(text),
    )
  }

  #log(text: string): void {
    this.#tell({ type: 'log', text: this.#failureBounds.redact(text) })
  }

  /** Behind the reports that are still being made, if there are any: what a node says keeps its order. */
  #tell(event: EngineEvent): void {
    if (this.#waitingTurns === 0) this.#emit(event)
    else this.#inTurn(() => this.#emit(event))
  }

  #inTurn(act: () => void | Promise<void>): void {
    this.#waitingTurns++
    this.#reports = this.#reports.then(act).finally(() => {
      this.#waitingTurns--
    })
    // Whoever ends the run waits for it and hears of its failure.
    this.#reports.catch(() => {})
  }

  #take(message: EngineMessage): void {
    const { state, events } = translate(this.#translation, message)
    this.#translation = state
    // The first news may come before the answer to the submit.
    if (events.length > 0) this.#start()
    for (const event of events) {
      if (event.type === 'node_started') this.#ran.add(event.nodeId)
      if (event.type === 'executed') this.#tellReport(event)
      else this.#tell(event)
    }
  }

  #tellReport({ output, cached, ...node }: Executed): void {
    const text = stringifyLosslessJson(output)
    if (this.#told.get(node.nodeId) === text) return
    this.#told.set(node.nodeId, text)
    const report = this.#toReport(output)
    const { nodeId, classType, displayNodeId, parentNodeId } = node
    this.#inTurn(async () =>
      this.#emit({ type: 'node_report', nodeId, classType, displayNodeId, parentNodeId, report: await report, cached }),
    )
  }

  #start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#emit({ type: 'started', nodesTotal: countReachable(this.#run.graph, this.#deps.catalog) })
  }

  async #finish(
    submitted: Exclude<Submitted, { kind: 'given_up' }>,
    { listener, clientId, round }: { listener: Listener; clientId: string; round: number },
  ): Promise<RoundEnd> {
    const { promptId } = submitted
    if (submitted.kind === 'refused') return this.#refuse(submitted, round)
    this.#start()
    const follower = new RunFollower(this.#deps, { promptId, clientId, stop: this.#stop })
    listener.follow(follower, () => this.#translation.end !== null)
    const end = await follower.follow()
    if (follower.isStalled && (end.kind !== 'ended' || end.entry.outcome !== 'success')) return this.#stalled()
    if (end.kind !== 'ended') return this.#forgotten()
    const concluded = await this.#conclude(end.entry, promptId, round)
    this.#clean(promptId)
    if (this.#deps.printedAfterMs > 0) await sleep(this.#deps.printedAfterMs, this.#stop)
    return concluded
  }

  async #refuse(
    { body, isQueued, promptId }: Extract<Submitted, { kind: 'refused' }>,
    round: number,
  ): Promise<RoundEnd> {
    const { stopper, api } = this.#deps
    if (isQueued) {
      await stopper.press(promptId, 'pending').catch(() => {})
      await stopper.press(promptId, 'running').catch(() => {})
      await api.forgetHistory(promptId).catch(() => {})
    }
    const { failure, isAboutFiles }: Refusal = toRefusal(body, this.#failureBounds)
    if (isAboutFiles && !isQueued && round === 0 && this.#run.inputs.size > 0)
      return { type: 'again', why: 'files', nodeIds: [] }
    this.#deps.onSurprise()
    return { type: 'failed', failure }
  }

  #stalled(): EngineEvent {
    const { current } = this.#translation
    const seconds = Math.round((this.#deps.bounds.stallMs ?? 0) / 1000)
    const place = current === null ? '' : ` in node ${current.displayNodeId} (${current.classType})`
    const failure = plainFailure('stalled', `nothing happened${place} for ${seconds} s; the run was stopped`)
    return {
      type: 'failed',
      failure: { ...failure, nodeId: current?.displayNodeId ?? null, classType: current?.classType ?? null },
    }
  }

  /** Nobody knows the run any more. If it was stopped, that is what was wanted; if it was seen to succeed, it did. */
  #forgotten(): EngineEvent {
    if (this.#translation.end === 'success' && this.#told.size > 0) return { type: 'succeeded' }
    if (this.#stop.aborted) return { type: 'interrupted' }
    this.#deps.onForgotten()
    throw new EngineLostError(
      'engine_restarted',
      'the engine has forgotten the run: it was restarted, or its queue was emptied',
    )
  }

  async #conclude(entry: HistoryEntry, promptId: string, round: number): Promise<RoundEnd> {
    for (const [nodeId, output] of entry.outputs) this.#tellFromHistory(entry, nodeId, output)
    if (entry.outcome === 'interrupted') return { type: 'interrupted' }
    if (entry.outcome === 'error') {
      return { type: 'failed', failure: toFailure(entry.error ?? this.#translation.error, this.#failureBounds) }
    }
    this.#learnSilence()
    if (round > 0 || this.#stop.aborted || this.#missing(entry).length === 0) return { type: 'succeeded' }
    const missing = this.#missing(await this.#readAgain(entry, promptId))
    if (missing.length === 0) return { type: 'succeeded' }
    this.#healed = missing
    return { type: 'again', why: 'empty', nodeIds: missing }
  }

  /** Classes that ran for the sake of their output alone and told none have none. */
  #learnSilence(): void {
    for (const nodeId of this.#healed) {
      const node = this.#run.graph.get(nodeId)
      if (node !== undefined && !this.#told.has(nodeId)) this.#deps.silentClasses.add(node.classType)
    }
  }

  /** Outputs may be added to the history a moment after the run. */
  async #readAgain(entry: HistoryEntry, promptId: string): Promise<HistoryEntry> {
    const { api, bounds } = this.#deps
    await sleep(bounds.pollFirstMs, this.#stop)
    const raw = await api.history(promptId, {}).catch(() => null)
    const again = raw === null ? entry : readHistory(raw)
    for (const [nodeId, output] of again.outputs) this.#tellFromHistory(again, nodeId, output)
    return again
  }

  #missing(entry: HistoryEntry): string[] {
    const { catalog, silentClasses } = this.#deps
    const reported = new Set(this.#told.keys())
    return missingReports({ graph: this.#run.graph, catalog, entry, reported, ran: this.#ran, silentClasses })
  }

  #tellFromHistory(entry: HistoryEntry, nodeId: string, output: JsonObject): void {
    const meta = isJsonObject(entry.meta[nodeId]) ? entry.meta[nodeId] : {}
    const place = { nodeId, displayNodeId: toText(meta.display_node), parentNodeId: toText(meta.parent_node) }
    const ref: NodeRef = toRef(this.#run.graph, place)
    this.#tellReport({ type: 'executed', ...ref, output, cached: entry.cached.has(nodeId) })
  }

  /** Not waited for: the outcome is known, and a server that does not answer has nothing to add to it. */
  #clean(promptId: string): void {
    this.#deps.api
      .forgetHistory(promptId)
      .catch((error) => this.#deps.log.debug({ err: error }, 'a history entry stays'))
  }
}

/** What the hub tells goes to the run, and wakes its follower. */
class Listener implements RunListener {
  readonly #onMessage: (message: EngineMessage) => void
  readonly onLog: (text: string) => void
  #follower: RunFollower | null = null
  #isOver: () => boolean = () => false

  constructor(onMessage: (message: EngineMessage) => void, onLog: (text: string) => void) {
    this.#onMessage = onMessage
    this.onLog = (text) => {
      onLog(text)
      this.#follower?.heard()
    }
  }

  follow(follower: RunFollower, isOver: () => boolean): void {
    this.#follower = follower
    this.#isOver = isOver
    // The run may have ended before its submit was answered.
    if (isOver()) follower.hint()
  }

  onMessage(message: EngineMessage): void {
    this.#onMessage(message)
    this.#follower?.heard()
    if (this.#isOver()) this.#follower?.hint()
  }

  onQueueChange(): void {
    this.#follower?.hint()
  }
}

function plainFailure(code: string, message: string): EngineFailure {
  return { code, message, nodeId: null, classType: null, traceback: null, exceptionType: 'EngineError' }
}
