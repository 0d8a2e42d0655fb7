/** The steps of a run, in the order in which job-run.ts takes them: the job is prepared for its engine, the engine is listened to, and the end is written. */
import type { Readable } from 'node:stream'
import type { Graph } from '../../../../engine/graph/graph.ts'
import { readGraph, readGraphSteps } from '../../../../engine/graph/graph-json.ts'
import type { EngineEvent } from '../../../../engine/graph/run-event.ts'
import { type JsonValue, keepNumber, parseLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { readJsonSteps } from '../../../../lib/json/read-json-steps.ts'
import type { Log } from '../../../../lib/log.ts'
import { inOneStep, type Turns, type Work } from '../../../../lib/waiting/turns.ts'
import type { Engine, EngineInput, EngineRun, RunOptions } from '../../engine/engine-port.ts'
import { outlastOutage, ServiceError } from '../../errors.ts'
import type { EventBus } from '../../events/event-bus.ts'
import { type LiveEvent, toLiveEvent } from '../../events/live-event.ts'
import type { Job, JobError, JobInput, JobLog, Progress } from '../job.ts'
import type { Claim, CommitOutcome, Lease } from '../job-store.ts'
import { type OutputVerdict, toCheckedEnd } from '../outputs/check-outputs.ts'
import { toHeldEvent } from '../outputs/hidden-runs.ts'
import { type OutputFault, type RunOutputs, toFault } from '../outputs/run-outputs.ts'
import { joinExtraData } from '../submit/extra-data-keeper.ts'
import { isRunEnd, type RunEndStatus, statesBeforeEnd } from '../transitions.ts'
import { applyEngineEvent, type RunFold, startFold, toProgress } from './apply-engine-event.ts'
import type { Committer } from './committer.ts'
import { GpuMeter, type GpuUse } from './gpu-use.ts'
import type { NodeTimes } from './node-times.ts'
import { createLogMarks, type LogMarks, readLog } from './record/log-lines.ts'
import { createRunRecorder, type RunRecorder } from './record/run-record.ts'
import type { RunDeps, RunInputs } from './run-deps.ts'
import { type RunMove, type RunVerdict, toEngineLoss, toJobError } from './run-moves.ts'

// Turns a claimed job into what an engine is given: its graph as the store has it, its files by the names that stand in the
// graph (read when they are asked for) and its credentials. Says which jobs must not run at all.

interface PrepareDeps extends Pick<RunDeps, 'mustBeActive' | 'turns' | 'extraData' | 'blobs' | 'store' | 'log'> {
  /** Ends the wait for a store that is away. */
  readonly signal: AbortSignal
  onOutputFault(cause: unknown, fault: OutputFault): void
}

const CREDENTIALS_LOST =
  'the credentials of this job were kept in memory only and did not survive a restart; submit the job again'

/** `error`: the job must not run at all. Nobody pays for it. */
export async function prepareRun(
  claim: Claim,
  deps: PrepareDeps,
): Promise<{ readonly run: EngineRun } | { readonly error: JobError }> {
  const { job, workflow, inputs, needsExtraData, sealedExtraData, notes } = claim
  const lease = { jobId: job.id, leaseId: claim.leaseId }
  try {
    deps.mustBeActive?.(job.accountId)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return { error: toJobError(error.refusal, error.message) }
  }
  try {
    const graph = await readStoredGraph(workflow, deps.turns)
    const credentials = needsExtraData ? deps.extraData.take(job.id, sealedExtraData) : null
    const areLost = needsExtraData && credentials === null
    if (areLost && claim.runId === undefined) return { error: toJobError('credentials_lost', CREDENTIALS_LOST) }
    const run: EngineRun = {
      jobId: job.id,
      accountId: job.accountId,
      attempt: job.attempt,
      claimId: claim.runId ?? claim.leaseId,
      ...(claim.runId !== undefined && { isAdopted: true }),
      ...(areLost && { areCredentialsLost: true }),
      graph,
      graphText: workflow,
      inputs: new Map(inputs.map((input) => [input.name, toEngineInput(input, { ...deps, lease })])),
      extraData: joinExtraData(notes === null ? null : await readStoredJson(notes, deps.turns), credentials),
      reserveOutputNumbers: (folder, prefix, count) =>
        outlastOutage(
          () => deps.store.reserveOutputNumbers(job.accountId, folder, prefix, count, lease),
          deps.signal,
        ).catch((error: unknown) => {
          // To the engine this is a node that failed; the reason is ours.
          const fault = toFault(error)
          if (fault.mayPass) deps.onOutputFault(error, fault)
          throw error
        }),
    }
    return { run }
  } catch (error) {
    deps.log.error({ err: error }, 'a recorded job could not be prepared')
    return { error: toJobError('internal_error', 'the recorded workflow could not be read') }
  }
}

/** Bytes that are away with their storage are waited for. */
function toEngineInput(
  { hash, sizeBytes, contentType }: JobInput,
  { blobs, signal, lease }: { readonly blobs: RunInputs; readonly signal: AbortSignal; readonly lease: Lease },
): EngineInput {
  const { borrow } = blobs
  return {
    hash,
    sizeBytes,
    contentType,
    localPath: blobs.localPath(hash),
    ...(borrow && { borrow: (ending: AbortSignal) => outlastOutage(() => borrow(hash), ending) }),
    read: () => readBytes(() => blobs.open(hash, undefined, lease), signal),
  }
}

async function* readBytes(open: () => Promise<Readable>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  yield* (await outlastOutage(open, signal)) as AsyncIterable<Uint8Array>
}

const SMALL_LENGTH = 65_536
// It was read within the limits of a request when it was submitted.
const NO_LIMIT = Number.POSITIVE_INFINITY
const LIMITS = { maxDepth: NO_LIMIT, maxValues: NO_LIMIT, maxMembers: NO_LIMIT, maxLongDigits: NO_LIMIT }

/** A small graph is read at once, a large one in slices, so that other work on this thread does not wait for it. */
export function readStoredGraph(text: string, turns: Turns): Graph | Promise<Graph> {
  return text.length < SMALL_LENGTH ? readGraph(parseLosslessJson(text)) : turns.run(readSteps(text))
}

/** What was stored of `extra_data` was within the bounds of a body. */
export function readStoredJson(text: string, turns: Turns): JsonValue | Promise<JsonValue> {
  if (text.length < SMALL_LENGTH) return parseLosslessJson(text)
  return turns.run(readJsonSteps(Buffer.from(text), { readNumber: keepNumber, limits: LIMITS })) as Promise<JsonValue>
}

function* readSteps(text: string): Work<Graph> {
  const value = yield* readJsonSteps(Buffer.from(text), { readNumber: keepNumber, limits: LIMITS })
  return yield* readGraphSteps(value as JsonValue)
}

// Listens to the engine during one run: folds its events, publishes live notices, hands reported items to the outputs, and
// reports to the run when the engine is lost or its events have ended. What it heard so far can be read at any time.

interface ListenerOptions {
  readonly job: Job
  readonly outputs: Pick<RunOutputs, 'add' | 'hasRoom'>
  readonly committer: Pick<Committer, 'progressed'>
  readonly log: Log
  /** Those who watch are told how far it is, and nothing of what it makes. */
  readonly isHeld: boolean
  /** Whether what the engine says is to be ignored from now on. */
  isDeaf(): boolean
  move(move: RunMove): void
}

export class EngineListener {
  readonly recorder: RunRecorder = createRunRecorder()
  readonly marks: LogMarks = createLogMarks()
  readonly #atWork = new Set<string>()
  readonly #deps: Pick<RunDeps, 'bus' | 'clock' | 'limits' | 'turns' | 'verdicts' | 'nodeTimes'>
  readonly #options: ListenerOptions
  #timer: ReturnType<NodeTimes['follow']> | null = null
  #fold: RunFold = startFold({ graph: new Map(), earlierProgress: null })
  #meter = new GpuMeter(null)
  #terminalEvent: EngineEvent | null = null

  constructor(deps: RunDeps, options: ListenerOptions) {
    this.#deps = deps
    this.#options = options
  }

  get fold(): RunFold {
    return this.#fold
  }

  /** The event that brought the outcome; null as long as there is none. */
  get terminalEvent(): EngineEvent | null {
    return this.#terminalEvent
  }

  /** The code of the failure that the engine reported; null when there was none. */
  get failureCode(): string | null {
    return this.#fold.outcome?.kind === 'failed' ? this.#fold.outcome.error.code : null
  }

  /** What is written of a run while it lasts. */
  readState(): { readonly progress: Progress; readonly outputsReused: boolean } {
    const { progress, outputsReused } = this.#fold
    return { progress: toProgress(progress), outputsReused }
  }

  /** How long the engine has computed; `nowMs`: until then it was waited for. */
  computedMs(nowMs: number): number {
    return this.#meter.read(nowMs)
  }

  /** `isAdopted`: the run began when its job did, and another process followed it. */
  expect(graph: Graph, isAdopted: boolean): void {
    const { nodeTimes } = this.#deps
    if (isAdopted) this.#meter = new GpuMeter(this.#options.job.startedAt?.getTime() ?? null)
    const expectedMs = nodeTimes?.expect(graph) ?? null
    this.#fold = startFold({ graph, earlierProgress: this.#options.job.progress, expectedMs })
    this.#timer = nodeTimes?.follow(graph) ?? null
  }

  /** Runs the graph. Never rejects: an iterator that throws means that the engine is lost. */
  async listen(engine: Pick<Engine, 'run'>, run: EngineRun, options: RunOptions): Promise<void> {
    const { isDeaf, move, outputs, log } = this.#options
    try {
      const events = engine.run(run, options)[Symbol.asyncIterator]()
      while (true) {
        const step = await events.next()
        if (isDeaf()) return void events.return?.().catch(() => {})
        if (step.done) break
        // Events may come in thousands without a break, and other work on this thread must not wait for all of them.
        await this.#deps.turns.run(inOneStep(() => this.#take(step.value)))
        if (isDeaf() || this.#fold.outcome !== null) return void events.return?.().catch(() => {})
        await outputs.hasRoom()
      }
      throw new Error('the engine ended the run without an outcome')
    } catch (error) {
      if (isDeaf()) return
      move({ move: 'engine_lost', loss: toEngineLoss(error) })
      log.warn({ err: error }, 'the engine broke off')
    } finally {
      move({ move: 'engine_silent' })
    }
  }

  /** What is printed is the work of the node that began last. */
  #noteLog(event: EngineEvent, nowMs: number): void {
    if (event.type === 'node_started') this.#atWork.add(event.displayNodeId)
    else if (event.type === 'node_finished') this.#atWork.delete(event.displayNodeId)
    else if (event.type === 'log') this.marks.note(event.text, nowMs, [...this.#atWork].at(-1) ?? null)
    else if (event.type === 'node_blocked') this.marks.note(`${event.message}\n`, nowMs, event.displayNodeId)
  }

  #take(event: EngineEvent): void {
    const { job, outputs, committer, move, isHeld } = this.#options
    const { bus, clock, limits, verdicts } = this.#deps
    const before = this.#fold
    const after = applyEngineEvent(before, event)
    this.#fold = after
    const nowMs = clock.now().getTime()
    this.recorder.take(event, nowMs)
    this.#meter.take(event, nowMs)
    this.#timer?.take(event, nowMs)
    this.#noteLog(event, nowMs)
    if (event.type === 'started') verdicts?.settled(job.id)
    if (after.outcome !== null) this.#terminalEvent = event
    else publishLive(bus, job, event, isHeld)
    if (after.reportedCount > limits.maxOutputs) {
      const error = toJobError('too_many_outputs', `the job reported more than ${limits.maxOutputs} outputs`)
      move({ move: 'stop', stop: { cause: 'failed', error, mayPass: false } })
      return
    }
    outputs.add(after.fresh)
    if (after.progress !== before.progress) committer.progressed()
  }
}

// The live notices of a run while it lasts and when it is over. They carry their content and are never stored.

// A preview is a thumbnail; a larger frame would only fill the buffers of those who watch.
export const MAX_PREVIEW_BYTES = 4 * 1024 * 1024
// A picture that is a result may be read from the socket only. Clients of the socket refuse larger frames.
const MAX_RESULT_BYTES = 256 * 1024 * 1024
const MAX_TEXT_LENGTH = 64 * 1024

type LiveBus = Pick<EventBus<LiveEvent>, 'publishLive'>

function publishLive(bus: LiveBus, job: Job, event: EngineEvent, isHeld: boolean): void {
  const told = isHeld ? toHeldEvent(toLiveEvent(event), job.metadata) : toLiveEvent(event)
  const bounded = told && toBounded(told)
  if (bounded !== null) bus.publishLive({ jobId: job.id, accountId: job.accountId, event: bounded })
}

/** null: it is larger than anybody who watches should have to hold. */
export function toBounded(event: LiveEvent): LiveEvent | null {
  if (event.type === 'preview') {
    const maxBytes = event.isResult === true ? MAX_RESULT_BYTES : MAX_PREVIEW_BYTES
    return event.bytes.byteLength <= maxBytes ? event : null
  }
  if ((event.type === 'log' || event.type === 'node_text') && event.text.length > MAX_TEXT_LENGTH) {
    return { ...event, text: event.text.slice(-MAX_TEXT_LENGTH) }
  }
  return event
}

/** The last live notice of a job. It follows the commit: a client that reads the job because of it finds the end. */
function toTerminalEvent(status: RunEndStatus, error: JobError | null, said: EngineEvent | null): LiveEvent {
  if (status === 'succeeded') return { type: 'succeeded' }
  if (status === 'canceled' || error === null) return { type: 'interrupted' }
  if (said?.type === 'failed' && said.failure.code === error.code) return toLiveEvent(said)
  const { code, message, nodeId, classType, traceback } = error
  return { type: 'failed', failure: { code, message, nodeId, classType, traceback, exceptionType: code } }
}

export interface EndingRun {
  readonly claim: Claim
  readonly lease: Lease
  readonly version: number
  readonly committer: Committer
  /** Of a success: the key of its result; null: it has none, or nobody wants it. */
  resultKey(): string | null
  readonly isHeld: boolean
  readonly checked: OutputVerdict | null
  readonly endedAt: Date | null
  /** What it took of a server; null: it was on none. */
  gpuUse(): GpuUse | null
  readonly heard: Pick<EngineListener, 'fold' | 'recorder' | 'marks' | 'terminalEvent'>
  /** Called before the notice of this version is published. */
  onVersion(version: number): void
}

interface EndOfRun {
  readonly status: RunEndStatus
  readonly error: JobError | null
}

type FinishVerdict = Extract<RunVerdict, { verdict: 'finish' }>

/** `refused`: the lease was lost, and nothing was written. */
export async function writeEnd(
  { status: reached, error: reason }: FinishVerdict,
  run: EndingRun,
  deps: RunDeps,
): Promise<'written' | 'refused'> {
  if (await withdraw(run, deps)) return 'written'
  const { clock, bus, observer, extraData } = deps
  const { id: jobId, accountId, startedAt } = run.claim.job
  const at = run.endedAt ?? clock.now()
  const record = run.heard.recorder.finish(at.getTime())
  const resultKey = reached === 'succeeded' ? run.resultKey() : null
  const gpu = run.gpuUse()
  const end = { status: reached, from: statesBeforeEnd(reached), at, error: reason, record, resultKey, gpu }
  const { checked } = run
  const { outcome, finish } = await run.committer.finish(end, toJobLog(run.heard, at), (change) =>
    checked === null ? change : toCheckedEnd(change, checked, run.claim.job.metadata),
  )
  if (outcome.outcome === 'lost') return 'refused'
  const { status, error } = toWritten(outcome, finish)
  run.onVersion(outcome.version)
  extraData.forget(jobId)
  if (outcome.job !== undefined) deps.onStored?.(outcome.job)
  bus.publishChanged?.({ jobId, accountId, version: outcome.version, move: 'ended' })
  const last = toTerminalEvent(status, error, run.heard.terminalEvent)
  const told = run.isHeld ? toHeldEvent(last, run.claim.job.metadata) : last
  bus.publishLive({ jobId, accountId, event: told ?? last })
  bus.publishWork?.()
  const executionMs = startedAt === null ? null : at.getTime() - startedAt.getTime()
  observer.finished({ jobId, accountId, status, code: error?.code ?? null, executionMs })
  return 'written'
}

/** Where another process takes the end, it may have written another one. */
function toWritten(outcome: Extract<CommitOutcome, { outcome: 'committed' }>, { status, error }: EndOfRun): EndOfRun {
  if (outcome.status === status || !isRunEnd(outcome.status)) return { status, error }
  return { status: outcome.status, error: outcome.error ?? null }
}

async function withdraw(run: EndingRun, { verdicts, clock, extraData, bus }: RunDeps): Promise<boolean> {
  const { id: jobId, accountId } = run.claim.job
  const { terminalEvent } = run.heard
  const refusal = terminalEvent?.type === 'failed' ? terminalEvent.failure.refusal : undefined
  if (refusal === undefined || verdicts?.hold(jobId) !== true) return false
  if (!(await verdicts.withdraw(run.lease, clock.now()))) return false
  run.committer.stop()
  const version = run.version + 1
  run.onVersion(version)
  extraData.forget(jobId)
  bus.publishChanged?.({ jobId, accountId, version, move: 'ended' })
  bus.publishWork?.()
  verdicts.refused(jobId, refusal)
  return true
}

function toJobLog({ fold, marks }: EndingRun['heard'], capturedAt: Date): JobLog | null {
  const { text, truncated } = readLog(fold.log)
  if (text === '' && !truncated) return null
  return { text, truncated, capturedAt, complete: true, marks: marks.finish() }
}
