/**
 * One run on one server: bring the inputs, hand over the graph, follow it, tell what happens, and end with one outcome. A
 * success without outputs is healed by having the outputs made anew, once. Whatever the server keeps of the run is removed
 * afterwards as far as it can be asked to. A reader who leaves early stops the run.
 */

import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import type { EngineEvent, EngineFailure } from '../../../../../engine/graph/run-event.ts'
import { writeGraphSteps } from '../../../../../engine/graph/write-graph.ts'
import { writeJsonSteps } from '../../../../../lib/json/write-json-steps.ts'
import type { Log } from '../../../../../lib/log.ts'
import { sleep } from '../../../../../lib/sleep.ts'
import { createTurns } from '../../../../../lib/turns.ts'
import type { EngineRun, RunOptions } from '../../../../domain/engine/engine.ts'
import { EngineLostError } from '../../../../domain/engine/engine-lost-error.ts'
import { createLeftFiles, type LeftFiles } from '../files/output-cleanup.ts'
import type { Remover } from '../files/remove-files.ts'
import { createReporter } from '../files/report-outputs.ts'
import { InputTooLargeError, type Stage } from '../files/stage-inputs.ts'
import type { Fitness } from '../health/fitness.ts'
import { silenceError, watchLife } from '../health/liveness-watch.ts'
import { CallError, isNobodyThere } from '../wire/comfy-http.ts'
import type { Hub } from '../wire/message-dispatcher.ts'
import type { PrintLog } from '../wire/printed-lines.ts'
import { createRedact, earlierPromptIds, promptIdOf, toServerExtraData } from './comfy-prompt.ts'
import { createEventQueue } from './event-queue.ts'
import { type FollowDeps, RunFollower, type Standstill } from './follow-run.ts'
import type { Forgetter } from './forget-runs.ts'
import { type Refusal, toRefusal } from './graph-refusal.ts'
import { type FailureBounds, type FailureCode, toFailure } from './node-failure.ts'
import {
  BREAKER_INPUT,
  countReachable,
  createRestore,
  type FreshOutputs,
  namesToStage,
  rewriteGraph,
} from './rewrite-graph.ts'
import { RunTeller, TellingListener } from './run-emitter.ts'
import { type HistoryEntry, missingReports, readHistory } from './run-history.ts'
import { type Submitted, submitRun } from './submit-run.ts'

export interface RunDeps extends FollowDeps {
  readonly hub: Hub
  readonly prints: PrintLog
  readonly remover: Remover
  /** Aborted when the engine closes. */
  readonly closing: AbortSignal
  readonly fitness: Pick<Fitness, 'isLeft' | 'freeze' | 'leave'>
  readonly stage: Stage
  readonly forgetter: Forgetter
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
    left.abort(LEFT)
  }
}

// One for all: an abort without a reason makes an error with a stack, for every run.
const LEFT = new Error('nobody reads the run any more')

interface AttemptOptions {
  readonly stop: AbortSignal
  emit(event: EngineEvent): void
}

/** What a round came to; `again` asks for one more: with outputs made anew, or after the inputs were brought again. */
type RoundEnd = EngineEvent | { readonly type: 'again'; readonly why: 'empty' | 'files' }

class Attempt {
  readonly #deps: RunDeps
  readonly #run: EngineRun
  readonly #stop: AbortSignal
  readonly #folder: string
  readonly #turns = createTurns()
  readonly #failureBounds: FailureBounds
  readonly #teller: RunTeller
  readonly #left: LeftFiles
  /** Outputs that were made anew because nothing was told of them. */
  #healed: readonly string[] = []
  /** Names of the inputs on the server. */
  #staged: ReadonlySet<string> = new Set()
  #isBroughtAgain = false
  /** By the names that stand in the graph. */
  #stagedNames: ReadonlyMap<string, string> = new Map()

  constructor(deps: RunDeps, run: EngineRun, { stop, emit }: AttemptOptions) {
    const { api, bounds, catalog, log } = deps
    const { graph, jobId, attempt, reserveOutputNumbers } = run
    this.#deps = deps
    this.#run = run
    this.#stop = stop
    this.#folder = `atelier/${jobId}-${attempt}`
    const redact = createRedact(run.extraData)
    this.#failureBounds = { ...bounds, redact }
    const onUnreadable = (error: unknown) => log.warn({ err: error, jobId }, 'an output could not be read')
    this.#left = createLeftFiles({ ...deps, folder: this.#folder, ...bounds })
    const left = this.#left
    const names = () => ({ folder: this.#folder, staged: this.#stagedNames, extraInput: BREAKER_INPUT })
    const toReport = createReporter({
      api,
      bounds,
      folder: this.#folder,
      names,
      left,
      isDoubted: attempt > 1,
      reserveOutputNumbers,
      onUnreadable,
    })
    this.#teller = new RunTeller({ graph, nodesTotal: countReachable(graph, catalog), toReport, redact, emit })
  }

  /** Ends with exactly one outcome, or throws EngineLostError. */
  async run(): Promise<void> {
    try {
      await this.#teller.end(await this.#rounds().catch((error) => this.#toEnd(error)))
    } finally {
      this.#deps.stage.letGo(this.#stagedNames)
      await this.#left.over()
    }
  }

  async #rounds(): Promise<EngineEvent> {
    const isFirst = this.#run.attempt === 1
    if (!isFirst) await this.#stopEarlier()
    // What an earlier attempt left in the server's cache may be gone from its folders: then all outputs are made anew.
    let fresh: Pick<FreshOutputs, 'nodeIds'> | null = isFirst ? null : { nodeIds: null }
    for (let round = 0; ; round++) {
      const end = await this.#round(round, fresh)
      if (end.type !== 'again') return end
      if (end.why === 'empty') fresh = { nodeIds: new Set(this.#healed) }
      this.#deps.log.info({ jobId: this.#run.jobId, why: end.why }, 'a run is repeated on its engine')
    }
  }

  /** A failure of ours to talk to the server is a lost attempt; everything else has a name. */
  #toEnd(error: unknown): EngineEvent {
    if (this.#stop.aborted && !(error instanceof EngineLostError)) return { type: 'interrupted' }
    if (error instanceof InputTooLargeError) return failed('input_too_large', error.message)
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

  async #round(round: number, fresh: Pick<FreshOutputs, 'nodeIds'> | null): Promise<RoundEnd> {
    const { hub, socket, bounds } = this.#deps
    const { jobId, attempt } = this.#run
    const promptId = promptIdOf({ jobId, attempt, round })
    using life = watchLife(this.#deps)
    const { silent } = life
    const graphText = await this.#prepareGraph(fresh === null ? null : { ...fresh, token: promptId }, silent)
    if (this.#stop.aborted) return { type: 'interrupted' }
    await socket.untilOpen(bounds.socketWaitMs)
    this.#teller.beginRound()
    const listener = new TellingListener(this.#teller)
    // Attached first: from then on the socket keeps its id, and no event of the run is missed.
    hub.attach(promptId, listener)
    try {
      const clientId = socket.clientId()
      const body = await this.#toBody(graphText, promptId, clientId)
      const submitted = await this.#orLeave(
        promptId,
        submitRun(this.#deps, { promptId, stop: this.#stop, silent, body }),
      )
      // From here on the run's own questions tell.
      life[Symbol.dispose]()
      if (submitted.kind === 'given_up') return { type: 'interrupted' }
      if (submitted.kind === 'refused') return await this.#refuse(submitted)
      return await this.#follow(submitted.promptId, { listener, clientId })
    } finally {
      hub.detach(promptId)
    }
  }

  async #prepareGraph(fresh: FreshOutputs | null, silent: AbortSignal): Promise<string> {
    const { catalog, stage } = this.#deps
    const { graph, inputs } = this.#run
    const names = namesToStage(graph, catalog, new Set(inputs.keys()))
    const wanted = new Map([...inputs].filter(([name]) => names.has(name)))
    const staged = await stage.bring(wanted, AbortSignal.any([this.#stop, silent])).catch((error) => {
      throw silent.aborted ? silenceError(this.#deps) : error
    })
    this.#staged = new Set(staged.values())
    this.#deps.stage.letGo(this.#stagedNames)
    this.#stagedNames = staged
    const rewritten = rewriteGraph(graph, { catalog, staged, folder: this.#folder, fresh })
    return this.#turns.run(writeGraphSteps(rewritten))
  }

  async #toBody(graphText: string, promptId: string, clientId: string): Promise<string> {
    const rest = { client_id: clientId, prompt_id: promptId, extra_data: toServerExtraData(this.#run.extraData) }
    const text = await this.#turns.run(writeJsonSteps(rest))
    return `{"prompt":${graphText},${text.slice(1)}`
  }

  async #refuse({ body, isQueued, promptId }: Extract<Submitted, { kind: 'refused' }>): Promise<RoundEnd> {
    const restore = createRestore({ staged: this.#stagedNames, folder: this.#folder })
    const refusal = toRefusal(body, this.#failureBounds, restore)
    if (isQueued) await this.#takeBack(promptId)
    else if (this.#bringAgain(refusal)) return { type: 'again', why: 'files' }
    this.#deps.onSurprise()
    return { type: 'failed', failure: refusal.failure }
  }

  /** True when the refusal is about files that we brought, and there is another way to bring them. */
  #bringAgain({ isAboutFiles, unknownChoices }: Refusal): boolean {
    const { stage } = this.#deps
    if (this.#isBroughtAgain || this.#staged.size === 0) return false
    this.#isBroughtAgain = true
    const isNoChoice = unknownChoices.some((name) => this.#staged.has(name))
    if (isNoChoice) stage.flatten()
    else if (isAboutFiles) stage.forget()
    return isNoChoice || isAboutFiles
  }

  /** A part of the graph was accepted, and a part of a job is none. */
  async #takeBack(promptId: string): Promise<void> {
    const { stopper, api } = this.#deps
    await stopper.press(promptId, 'pending').catch(() => {})
    await stopper.press(promptId, 'running').catch(() => {})
    await api.forgetHistory([promptId]).catch(() => {})
  }

  async #follow(
    promptId: string,
    { listener, clientId }: { listener: TellingListener; clientId: string },
  ): Promise<RoundEnd> {
    const { hub, prints, printedAfterMs } = this.#deps
    const over = new AbortController()
    this.#teller.start()
    // Very old servers give an id of their own.
    hub.attach(promptId, listener)
    try {
      const isSaidToBeOver = () => listener.isSaidToBeOver
      const follower = new RunFollower(this.#deps, { promptId, clientId, stop: this.#stop, isSaidToBeOver })
      listener.wake(follower)
      void prints.keepUp(over.signal)
      const end = await this.#orLeave(promptId, follower.follow())
      if (follower.isStalled && (end.kind !== 'ended' || end.entry.outcome !== 'success')) return this.#stalled()
      if (end.kind === 'withdrawn') return this.#withdrawn(end.why)
      if (end.kind === 'unrecorded') return this.#unrecorded(promptId)
      if (end.kind !== 'ended') return this.#forgotten()
      if (follower.isWithdrawn && end.entry.outcome === 'interrupted' && !this.#stop.aborted) throw beganLate()
      hub.noteTimes(promptId, end.entry)
      const [concluded] = await Promise.all([
        this.#conclude(end.entry, promptId),
        prints.catchUp({ isStopping: this.#stop.aborted }),
      ])
      this.#deps.forgetter.add(promptId)
      if (printedAfterMs > 0) await sleep(printedAfterMs, this.#stop)
      return concluded
    } finally {
      over.abort(LEFT)
      hub.detach(promptId)
    }
  }

  /** Whoever gives a prompt up says so: it may be there still, and the server must not be given work before it is gone. */
  async #orLeave<Result>(promptId: string, work: Promise<Result>): Promise<Result> {
    try {
      return await work
    } catch (error) {
      const isGone = this.#deps.gone.aborted || (error instanceof EngineLostError && isNobodyThere(error.cause))
      if (!isGone) this.#deps.fitness.leave(promptId)
      throw error
    }
  }

  #withdrawn(why: Standstill): EngineEvent {
    if (this.#stop.aborted) return { type: 'interrupted' }
    const { idleMs, queueStillMs } = this.#deps.bounds
    const isIdle = why === 'idle'
    const seconds = Math.round((isIdle ? idleMs : (queueStillMs ?? 0)) / 1000)
    const what = isIdle ? 'nothing ran there' : 'it stood behind the same prompt, and nothing was heard of that'
    const message = `the engine did not begin the run: for ${seconds} s ${what}`
    throw new EngineLostError('engine_idle', message, { isUnfit: isIdle, isUntouched: true })
  }

  /** The thread that runs prompts is dead, as far as can be seen. What it told of this one counts: it must not kill the next. */
  #unrecorded(promptId: string): EngineEvent {
    this.#deps.fitness.leave(promptId)
    const { end, error, current } = this.#teller.heard
    if (end === 'success' && this.#teller.reported.size > 0) return { type: 'succeeded' }
    if (error !== null) return { type: 'failed', failure: toFailure(error, this.#failureContext()) }
    if (this.#stop.aborted) return { type: 'interrupted' }
    // It would kill one server after the other.
    if (current !== null) return this.#failAtNode('node_execution_error', (place) => `the engine's worker died${place}`)
    const message = 'the thread of the engine that runs prompts has died'
    throw new EngineLostError('engine_stuck', message, { isUnfit: true })
  }

  #stalled(): EngineEvent {
    const seconds = Math.round((this.#deps.bounds.stallMs ?? 0) / 1000)
    return this.#failAtNode('stalled', (place) => `nothing happened${place} for ${seconds} s; the run was stopped`)
  }

  /** In the node that was at work, as far as that is known. */
  #failAtNode(code: FailureCode, toMessage: (place: string) => string): EngineEvent {
    const { current } = this.#teller.heard
    const place = current === null ? '' : ` in node ${current.displayNodeId} (${current.classType})`
    return failed(code, toMessage(place), {
      nodeId: current?.displayNodeId ?? null,
      classType: current?.classType ?? null,
    })
  }

  /** Nobody knows the run any more. If it was stopped, that is what was wanted; if it was seen to succeed, it did. */
  #forgotten(): EngineEvent {
    if (this.#teller.heard.end === 'success' && this.#teller.reported.size > 0) return { type: 'succeeded' }
    if (this.#stop.aborted) return { type: 'interrupted' }
    this.#deps.onForgotten()
    const message = 'the engine has forgotten the run: it was restarted, or its queue was emptied'
    throw new EngineLostError('engine_restarted', message)
  }

  async #conclude(entry: HistoryEntry, promptId: string): Promise<RoundEnd> {
    this.#teller.tellHistory(entry)
    if (entry.outcome === 'interrupted') return { type: 'interrupted' }
    if (entry.outcome === 'error') {
      return { type: 'failed', failure: toFailure(entry.error ?? this.#teller.heard.error, this.#failureContext()) }
    }
    this.#learnSilence()
    const isHealed = this.#healed.length > 0
    if (isHealed || this.#stop.aborted || this.#missing(entry).length === 0) return { type: 'succeeded' }
    const missing = this.#missing(await this.#readAgain(entry, promptId))
    if (missing.length === 0) return { type: 'succeeded' }
    this.#healed = missing
    return { type: 'again', why: 'empty' }
  }

  #failureContext() {
    return { ...this.#failureBounds, graph: this.#run.graph }
  }

  /** Classes that ran for the sake of their output alone and told none have none. */
  #learnSilence(): void {
    const { reported } = this.#teller
    for (const nodeId of this.#healed) {
      const node = this.#run.graph.get(nodeId)
      if (node !== undefined && !reported.has(nodeId)) this.#deps.silentClasses.add(node.classType)
    }
  }

  /** Outputs may be added to the history a moment after the run. */
  async #readAgain(entry: HistoryEntry, promptId: string): Promise<HistoryEntry> {
    const { api, bounds } = this.#deps
    await sleep(bounds.pollFirstMs, this.#stop)
    const raw = await api.history(promptId, {}).catch(() => null)
    const again = raw === null ? entry : readHistory(raw)
    this.#teller.tellHistory(again)
    return again
  }

  #missing(entry: HistoryEntry): string[] {
    const { catalog, silentClasses } = this.#deps
    const { reported, ran } = this.#teller
    return missingReports({ graph: this.#run.graph, catalog, entry, reported, ran, silentClasses })
  }
}

function beganLate(): EngineLostError {
  return new EngineLostError('engine_idle', 'the engine began the run only while it was withdrawn')
}

function failed(code: FailureCode, message: string, place: Partial<EngineFailure> = {}): EngineEvent {
  const nowhere = { nodeId: null, classType: null, traceback: null, exceptionType: 'EngineError' }
  return { type: 'failed', failure: { code, message, ...nowhere, ...place } }
}
