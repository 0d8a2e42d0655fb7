/**
 * One run on one server: upload the inputs, submit the graph, follow it, emit what happens, and end with one outcome. A success
 * without outputs is repaired by running the output nodes once more. Afterwards the files and the history entry of the run are
 * removed from the server, as far as it allows that. A reader who leaves early stops the run.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { writeGraphSteps } from '../../../../../engine/graph/graph-json.ts'
import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import type { EngineEvent, OutcomeEvent } from '../../../../../engine/graph/run-event.ts'
import { writeJsonSteps } from '../../../../../lib/json/write-json-steps.ts'
import type { Log } from '../../../../../lib/log.ts'
import { sleep } from '../../../../../lib/waiting/sleep.ts'
import { createTurns } from '../../../../../lib/waiting/turns.ts'
import { EngineLostError } from '../../../../domain/engine/engine-lost-error.ts'
import type { EngineRun, RunOptions } from '../../../../domain/engine/engine-port.ts'
import { OutputCleanup, type Remover } from '../files/output-cleanup.ts'
import { createReporter } from '../files/report-outputs.ts'
import { InputTooLargeError, RunInputs, type Stage } from '../files/stage-inputs.ts'
import { type Fitness, silenceError, watchLiveness } from '../health/fitness.ts'
import { CallError, isNobodyThere } from '../wire/comfy-http.ts'
import type { EngineSocket } from '../wire/comfy-socket.ts'
import type { MessageDispatcher } from '../wire/message-dispatcher.ts'
import type { PrintedLines } from '../wire/printed-lines.ts'
import { createRedact, markOf, promptIdOf, readPromptId, toServerExtraData } from './comfy-prompt.ts'
import { type FoundRun, findRun } from './find-run.ts'
import { type FollowDeps, RunFollower } from './follow-run.ts'
import { toRefusal } from './graph-refusal.ts'
import { type FailureBounds, toFailure } from './node-failure.ts'
import { CACHE_BREAKER_INPUT, countReachable, createRestore, type FreshOutputs, rewriteGraph } from './rewrite-graph.ts'
import { EventQueue, ForwardingListener, RunEmitter } from './run-emitter.ts'
import {
  ALWAYS_REPORTS,
  beganLate,
  type EndingContext,
  endForgotten,
  endStalled,
  endUnrecorded,
  endWithdrawn,
  failed,
  type HistoryEntry,
  lostByCall,
  missingReports,
  readHistory,
} from './run-endings.ts'
import type { Forgetter } from './stop-run.ts'
import { type Submitted, submitRun } from './submit-run.ts'
import { SENDS_RESULTS } from './translate-messages.ts'

export interface RunDeps extends FollowDeps {
  readonly dispatcher: MessageDispatcher
  readonly prints: PrintedLines
  readonly remover: Remover
  /** Aborted when the engine closes. */
  readonly closing: AbortSignal
  readonly fitness: Pick<Fitness, 'isAbandoned' | 'markStandstill' | 'abandon' | 'follow' | 'doubt'>
  /** The socket of a client that an earlier process was. */
  under(clientId: string): { readonly socket: EngineSocket } & Disposable
  readonly stage: Stage
  readonly forgetter: Forgetter
  readonly log: Log
  readonly catalog: NodeCatalog
  /** How long to wait for printed lines after the run has ended. */
  readonly printedAfterMs: number
  /** Output classes that report nothing. Shared by all runs on the engine, which find them out. */
  readonly silentClasses: Set<string>
  /** The server refused a graph that its node classes allow: they may have changed. */
  onUnexpectedRefusal(): void
  /** The server has forgotten a run, so a new process runs there. */
  onForgotten(): void
}

export async function* runOnServer(
  deps: RunDeps,
  run: EngineRun,
  { signal, leave = NEVER }: RunOptions,
): AsyncGenerator<EngineEvent> {
  const queue = new EventQueue(deps.bounds.maxWaitingEvents)
  const leaving = new AbortController()
  const stop = AbortSignal.any([signal, deps.closing, leaving.signal])
  const attempt = new Attempt(deps, run, { stop, leave, emit: (event) => queue.push(event) })
  attempt.run().then(
    () => queue.end(),
    (error: unknown) => queue.fail(error),
  )
  try {
    yield* queue
  } finally {
    if (!leave.aborted) leaving.abort(LEFT)
    queue.abandon(releaseFiles)
  }
}

/** Nobody will read them. */
function releaseFiles(event: EngineEvent): void {
  if (event.type !== 'node_report') return
  for (const item of Object.values(event.report).flat()) if (item.kind === 'file') item.release?.()
}

// One for all runs: an abort without a reason would create an error with a stack each time.
const LEFT = new Error('the reader of the run has left')
const NEVER = new AbortController().signal
const WITHHELD = '[withheld: nobody knows the credentials of this job any more]'

interface AttemptOptions {
  readonly stop: AbortSignal
  /** Aborted to leave the run on the server to whoever adopts it. */
  readonly leave: AbortSignal
  emit(event: EngineEvent): void
}

/** How one submit of the graph ended; `again` asks for another: to make missing outputs, or to upload the inputs again. */
type RoundEnd = OutcomeEvent | { readonly type: 'again'; readonly why: 'empty' | 'files' }

class Attempt {
  readonly #deps: RunDeps
  readonly #run: EngineRun
  readonly #stop: AbortSignal
  readonly #leave: AbortSignal
  /** Aborted when the server's process has ended, or the run is left: nothing more is asked of it. */
  readonly #gone: AbortSignal
  /** The one that the server tells of the run. */
  #socket: EngineSocket
  #promptId: string | null = null
  /** On the server, within its output folder. */
  readonly #folder: string
  readonly #cleanup: OutputCleanup
  readonly #turns = createTurns()
  readonly #failureBounds: FailureBounds
  readonly #emitter: RunEmitter
  readonly #inputs: RunInputs
  /** How long the server computed what was submitted so far, as its history says; null: it did not say so of everything. */
  #computedMs: number | null = 0
  /** Output nodes that were run once more because no report of them came. */
  #repeated: readonly string[] = []
  /** The connection of the socket that was there before the submit; null if there was none. */
  #connection: number | null = null

  constructor(deps: RunDeps, run: EngineRun, { stop, leave, emit }: AttemptOptions) {
    const { api, bounds, catalog, log } = deps
    const { graph, jobId, attempt, claimId, reserveOutputNumbers } = run
    this.#deps = deps
    this.#run = run
    this.#stop = stop
    this.#leave = leave
    this.#gone = AbortSignal.any([deps.gone, leave])
    this.#socket = deps.socket
    this.#inputs = new RunInputs(deps, run)
    // What another claim of the same attempt saved is not ours to read, and not to remove.
    const folder = `atelier/${jobId}-${attempt}-${markOf(claimId)}`
    this.#folder = folder
    this.#cleanup = new OutputCleanup({ ...bounds, folder, remover: deps.remover, closing: deps.closing })
    const redact = run.areCredentialsLost === true ? () => `${WITHHELD}\n` : createRedact(run.extraData)
    this.#failureBounds = { ...bounds, redact }
    const onUnreadable = (error: unknown) => log.warn({ err: error, jobId }, 'an output could not be read')
    const names = () => ({ folder, staged: this.#inputs.names, extraInput: CACHE_BREAKER_INPUT })
    const toReport = createReporter({
      api,
      bounds,
      folder,
      cleanup: this.#cleanup,
      names,
      isDoubted: attempt > 1,
      isSameServer: () => this.#isSameConnection(),
      reserveOutputNumbers,
      onUnreadable,
    })
    this.#emitter = new RunEmitter({
      graph,
      nodesTotal: countReachable(graph, catalog),
      toReport,
      redact,
      emit,
    })
  }

  /** Ends with exactly one outcome, or throws EngineLostError. */
  async run(): Promise<void> {
    try {
      const end = await this.#rounds().catch((error) => this.#toEnd(error))
      await this.#emitter.end(this.#computedMs === null ? end : { ...end, computedMs: this.#computedMs })
    } finally {
      this.#inputs.release()
      if (this.#leave.aborted && this.#promptId !== null) this.#deps.fitness.doubt(this.#promptId)
      if (this.#run.settled === undefined) await this.#cleanup.runEnded()
      else this.#whenSettled(() => void this.#cleanup.runEnded())
    }
  }

  /** What the server keeps of the run is removed only when its end is written: until then it may have to be read again. */
  #whenSettled(act: () => void): void {
    if (this.#run.settled === undefined) act()
    else void this.#run.settled.then((isFree) => isFree && act())
  }

  async #rounds(): Promise<OutcomeEvent> {
    const { attempt, isAdopted = false } = this.#run
    const isFirst = attempt === 1
    if (!isFirst && !isAdopted) await this.#stopEarlier()
    // The server may have outputs of an earlier attempt in its cache whose files are gone, so all outputs are made again.
    let fresh: Pick<FreshOutputs, 'nodeIds'> | null = isFirst ? null : { nodeIds: null }
    const found = isAdopted ? await this.#find() : null
    for (let round = found?.round ?? 0; ; round++) {
      const end = round === found?.round ? await this.#resume(found) : await this.#round(round, fresh)
      if (end.type !== 'again') return end
      if (end.why === 'empty') fresh = { nodeIds: new Set(this.#repeated) }
      this.#deps.log.info({ jobId: this.#run.jobId, why: end.why }, 'a run is submitted to its engine once more')
    }
  }

  /** A call to the server that failed means a lost attempt; other errors have an outcome of their own or are defects. */
  #toEnd(error: unknown): OutcomeEvent {
    if (this.#stop.aborted && !(error instanceof EngineLostError)) return { type: 'interrupted' }
    if (error instanceof InputTooLargeError) return failed('input_too_large', error.message)
    if (!(error instanceof CallError)) throw error
    throw lostByCall('the engine could not be used', error)
  }

  /** Stops earlier attempts of the job that may still run on this server: only one of them may end. */
  async #stopEarlier(): Promise<void> {
    const { api, stopper } = this.#deps
    const { jobId, attempt } = this.#run
    const { running, pending } = await api.queue({ signal: this.#stop })
    // One of the same attempt belongs to a claim that the database forgot. Nothing of this claim is on the server yet.
    const isEarlier = (promptId: string) => (readPromptId(promptId, jobId)?.attempt ?? Infinity) <= attempt
    for (const { promptId } of pending) if (isEarlier(promptId)) await stopper.stop(promptId, 'pending')
    for (const { promptId } of running) if (isEarlier(promptId)) await stopper.stop(promptId, 'running')
  }

  /** Where the server has the run that an earlier process began. Whoever stops it meanwhile stops it there. */
  async #find(): Promise<FoundRun> {
    const { jobId, attempt, claimId } = this.#run
    const found = await findRun({ ...this.#deps, gone: this.#gone }, { jobId, attempt, claimId })
    const isWhole = found !== null && !this.#sendsResults()
    if (isWhole) return found
    // Pictures that only the socket brings were sent to nobody: such a run begins anew.
    if (found !== null && found.clientId !== null) this.#deps.fitness.abandon(found.promptId)
    throw new EngineLostError('engine_restarted', 'the engine does not have the run that was left on it', {
      isBlameless: true,
    })
  }

  /** Follows it from where it is: what was told before is in its history at the end. */
  async #resume({ promptId, clientId }: FoundRun): Promise<RoundEnd> {
    const { dispatcher, socket, fitness, log, bounds, under } = this.#deps
    this.#promptId = promptId
    // Their names stand in what the run saves. They are there as long as the server is.
    if (!this.#inputs.isEmpty)
      await this.#inputs.upload(this.#gone).catch((error) => log.debug({ err: error }, 'inputs'))
    using client = under(clientId ?? socket.clientId())
    this.#socket = client.socket
    this.#emitter.beginRound()
    const listener = new ForwardingListener(this.#emitter)
    dispatcher.attach(promptId, listener)
    fitness.follow(promptId)
    try {
      await client.socket.untilOpen(bounds.socketWaitMs)
      return await this.#follow(promptId, { listener, clientId: client.socket.clientId(), wasOver: clientId === null })
    } finally {
      this.#socket = socket
      dispatcher.detach(promptId)
    }
  }

  async #round(round: number, fresh: Pick<FreshOutputs, 'nodeIds'> | null): Promise<RoundEnd> {
    const { dispatcher, socket, bounds } = this.#deps
    const promptId = promptIdOf({ ...this.#run, round })
    this.#promptId = promptId
    using life = watchLiveness(this.#deps)
    const { silent } = life
    const graphText = await this.#prepareGraph(fresh === null ? null : { ...fresh, token: promptId }, silent)
    if (this.#stop.aborted) return { type: 'interrupted' }
    if (this.#leave.aborted) throw new EngineLostError('engine_unreachable', 'the run was left')
    await socket.untilOpen(bounds.socketWaitMs)
    this.#connection = socket.state() === 'open' ? socket.reconnects() : null
    this.#emitter.beginRound()
    const listener = new ForwardingListener(this.#emitter)
    // Attached before the submit: from then on the socket keeps its id, and no event of the run is missed.
    dispatcher.attach(promptId, listener)
    try {
      const clientId = socket.clientId()
      const body = await this.#toBody(graphText, promptId, clientId)
      const submitted = await this.#orAbandon(
        promptId,
        submitRun(this.#deps, { promptId, stop: this.#stop, silent, body }),
      )
      // From here on the follower's own questions show whether the server answers.
      life[Symbol.dispose]()
      if (submitted.kind === 'given_up') return { type: 'interrupted' }
      if (submitted.kind === 'refused') return await this.#refuse(submitted)
      return await this.#follow(submitted.promptId, { listener, clientId })
    } finally {
      dispatcher.detach(promptId)
    }
  }

  async #prepareGraph(fresh: FreshOutputs | null, silent: AbortSignal): Promise<string> {
    const { graph } = this.#run
    const { catalog } = this.#deps
    if (!this.#inputs.isEmpty)
      await this.#inputs.upload(AbortSignal.any([this.#stop, silent])).catch((error) => {
        throw silent.aborted ? silenceError(this.#deps) : error
      })
    const { names: staged } = this.#inputs
    const rewritten = rewriteGraph(graph, { catalog, staged, folder: this.#folder, fresh })
    return this.#turns.run(writeGraphSteps(rewritten))
  }

  async #toBody(graphText: string, promptId: string, clientId: string): Promise<string> {
    const rest = { client_id: clientId, prompt_id: promptId, extra_data: toServerExtraData(this.#run.extraData) }
    const text = await this.#turns.run(writeJsonSteps(rest))
    return `{"prompt":${graphText},${text.slice(1)}`
  }

  async #refuse({ body, isQueued, promptId }: Extract<Submitted, { kind: 'refused' }>): Promise<RoundEnd> {
    const restore = createRestore({ staged: this.#inputs.names, folder: this.#folder })
    const refusal = toRefusal(body, this.#failureBounds, restore)
    if (isQueued) await this.#takeBack(promptId)
    else if (this.#inputs.mayUploadAgain(refusal)) return { type: 'again', why: 'files' }
    this.#deps.onUnexpectedRefusal()
    return { type: 'failed', failure: refusal.failure }
  }

  /** Stops a graph of which only a part was accepted: a part of a job is not the job. */
  async #takeBack(promptId: string): Promise<void> {
    const { stopper, api } = this.#deps
    await stopper.stop(promptId, 'pending').catch(() => {})
    await stopper.stop(promptId, 'running').catch(() => {})
    await api.forgetHistory([promptId]).catch(() => {})
  }

  async #follow(
    promptId: string,
    { listener, clientId, wasOver = false }: { listener: ForwardingListener; clientId: string; wasOver?: boolean },
  ): Promise<RoundEnd> {
    const { dispatcher, prints, printedAfterMs } = this.#deps
    const over = new AbortController()
    const ranMs = this.#computedMs
    this.#computedMs = null
    this.#emitter.start()
    // Very old servers assign an id of their own.
    dispatcher.attach(promptId, listener)
    try {
      const heard = {
        isSaidToBeOver: () => listener.isSaidToBeOver,
        mayHaveMore: () => !this.#emitter.isRecorded && this.#sendsResults(),
        findToldEnd: () => this.#findToldEnd(),
        hasOther: () => this.#run.hasOther?.() ?? true,
      }
      const deps = { ...this.#deps, socket: this.#socket, gone: this.#gone }
      const follower = new RunFollower(deps, { promptId, clientId, stop: this.#stop, ...heard })
      listener.wake(follower)
      void prints.keepUp(over.signal)
      const end = await this.#orAbandon(promptId, follower.follow())
      if (follower.isStalled && (end.kind !== 'ended' || end.entry.outcome !== 'success'))
        return endStalled(this.#ending())
      if (end.kind === 'withdrawn') return endWithdrawn(end.why, this.#ending())
      if (end.kind === 'unrecorded') return this.#unrecorded(promptId)
      if (end.kind !== 'ended') return endForgotten(this.#ending()) ?? this.#forgotten()
      if (follower.isWithdrawn && end.entry.outcome === 'interrupted' && !this.#stop.aborted) throw beganLate()
      dispatcher.noteTimes(promptId, end.entry)
      const { startedAt, endedAt } = end.entry
      const computedMs = startedAt === null || endedAt === null || endedAt < startedAt ? null : endedAt - startedAt
      this.#computedMs = computedMs === null || ranMs === null ? null : ranMs + computedMs
      if (wasOver && computedMs !== null) this.#run.onEndedBefore?.(computedMs)
      if (end.entry.outcome === 'success' && !this.#mayRepeat(end.entry)) this.#run.onComputed?.()
      const [concluded] = await Promise.all([
        this.#conclude(end.entry, promptId),
        prints.catchUp({ isStopping: this.#stop.aborted }),
      ])
      this.#whenSettled(() => this.#deps.forgetter.add(promptId))
      if (printedAfterMs > 0) {
        await sleep(printedAfterMs, this.#stop)
        // A busy process learns that the time is over before it reads what came meanwhile.
        await nextTurn()
      }
      return concluded
    } finally {
      over.abort(LEFT)
      dispatcher.detach(promptId)
    }
  }

  /** Only over a connection that did not break since the submit: then no message is missing. */
  #findToldEnd(): HistoryEntry | null {
    const told = this.#isSameConnection() ? this.#emitter.toldSuccess : null
    return told === null || this.#missing(told).length > 0 ? null : told
  }

  #isSameConnection(): boolean {
    const socket = this.#socket
    return socket.state() === 'open' && socket.reconnects() === this.#connection
  }

  #sendsResults(): boolean {
    return this.#run.graph.values().some(({ classType }) => classType === SENDS_RESULTS)
  }

  /** A prompt that is given up may still be on the server, which must not get work before it is gone. */
  async #orAbandon<Result>(promptId: string, work: Promise<Result>): Promise<Result> {
    try {
      return await work
    } catch (error) {
      const isGone = this.#gone.aborted || (error instanceof EngineLostError && isNobodyThere(error.cause))
      if (!isGone) this.#deps.fitness.abandon(promptId)
      throw error
    }
  }

  #ending(): EndingContext {
    const { bounds } = this.#deps
    return { bounds, isStopped: this.#stop.aborted, emitter: this.#emitter, failure: this.#failureContext() }
  }

  #unrecorded(promptId: string): OutcomeEvent {
    this.#deps.fitness.abandon(promptId)
    return endUnrecorded(this.#ending())
  }

  #forgotten(): never {
    this.#deps.onForgotten()
    const message = 'the engine has forgotten the run: it was restarted, or its queue was emptied'
    throw new EngineLostError('engine_restarted', message)
  }

  async #conclude(entry: HistoryEntry, promptId: string): Promise<RoundEnd> {
    this.#emitter.emitHistory(entry)
    if (entry.outcome === 'interrupted') return { type: 'interrupted' }
    if (entry.outcome === 'error') {
      return { type: 'failed', failure: toFailure(entry.error ?? this.#emitter.heard.error, this.#failureContext()) }
    }
    this.#learnFromRepeat()
    if (!this.#mayRepeat(entry)) return { type: 'succeeded' }
    const missing = this.#missing(await this.#readAgain(entry, promptId))
    if (missing.length === 0) return { type: 'succeeded' }
    this.#repeated = missing
    return { type: 'again', why: 'empty' }
  }

  #mayRepeat(entry: HistoryEntry): boolean {
    return this.#repeated.length === 0 && !this.#stop.aborted && this.#missing(entry).length > 0
  }

  #failureContext() {
    return { ...this.#failureBounds, graph: this.#run.graph }
  }

  /** A class whose nodes ran once more for their output, and again reported none, reports none ever, unless something kept it from running. */
  #learnFromRepeat(): void {
    const { reported } = this.#emitter
    for (const nodeId of this.#repeated) {
      const classType = this.#run.graph.get(nodeId)?.classType
      if (reported.has(nodeId) || classType === undefined || ALWAYS_REPORTS.has(classType)) continue
      this.#deps.silentClasses.add(classType)
    }
  }

  /** The server may add outputs to the history a moment after the run. */
  async #readAgain(entry: HistoryEntry, promptId: string): Promise<HistoryEntry> {
    const { api, bounds } = this.#deps
    await sleep(bounds.pollFirstMs, this.#stop)
    const raw = await api.history(promptId, {}).catch(() => null)
    const again = raw === null ? entry : readHistory(raw)
    this.#emitter.emitHistory(again)
    return again
  }

  #missing(entry: HistoryEntry): string[] {
    const { catalog, silentClasses } = this.#deps
    const { reported, ran } = this.#emitter
    return missingReports({ graph: this.#run.graph, catalog, entry, reported, ran, silentClasses })
  }
}
