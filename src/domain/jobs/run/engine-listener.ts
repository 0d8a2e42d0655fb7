/**
 * Listens to the engine during one run: folds its events, publishes live notices, hands reported items to the outputs, and
 * reports to the run when the engine is lost or its events have ended. What it heard so far can be read at any time.
 */
import type { Graph } from '../../../../engine/graph/graph.ts'
import type { EngineEvent } from '../../../../engine/graph/run-event.ts'
import type { Log } from '../../../../lib/log.ts'
import { inOneStep } from '../../../../lib/waiting/turns.ts'
import type { Engine, EngineRun } from '../../engine/engine-port.ts'
import { toEngineLoss, toJobError } from '../end/end-of-run.ts'
import type { Job, Progress } from '../job.ts'
import type { RunOutputs } from '../outputs/run-outputs.ts'
import { applyEngineEvent, type RunFold, startFold, toProgress } from './apply-engine-event.ts'
import type { Committer } from './committer.ts'
import { createLogMarks, type LogMarks } from './record/log-lines.ts'
import { createRunRecorder, type RunRecorder } from './record/run-record.ts'
import type { RunDeps } from './run-deps.ts'
import type { RunMove } from './run-moves.ts'
import { publishLive } from './run-notices.ts'

interface ListenerOptions {
  readonly job: Job
  readonly outputs: Pick<RunOutputs, 'add' | 'hasRoom'>
  readonly committer: Pick<Committer, 'progressed'>
  readonly log: Log
  /** Whether what the engine says is to be ignored from now on. */
  isDeaf(): boolean
  move(move: RunMove): void
}

export class EngineListener {
  readonly recorder: RunRecorder = createRunRecorder()
  readonly marks: LogMarks = createLogMarks()
  readonly #atWork = new Set<string>()
  readonly #deps: Pick<RunDeps, 'bus' | 'clock' | 'limits' | 'turns' | 'verdicts'>
  readonly #options: ListenerOptions
  #fold: RunFold = startFold({ graph: new Map(), earlierProgress: null })
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

  expect(graph: Graph): void {
    this.#fold = startFold({ graph, earlierProgress: this.#options.job.progress })
  }

  /** Runs the graph. Never rejects: an iterator that throws means that the engine is lost. */
  async listen(engine: Pick<Engine, 'run'>, run: EngineRun, signal: AbortSignal): Promise<void> {
    const { isDeaf, move, outputs, log } = this.#options
    try {
      const events = engine.run(run, { signal })[Symbol.asyncIterator]()
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
    const { job, outputs, committer, move } = this.#options
    const { bus, clock, limits, verdicts } = this.#deps
    const before = this.#fold
    const after = applyEngineEvent(before, event)
    this.#fold = after
    const nowMs = clock.now().getTime()
    this.recorder.take(event, nowMs)
    this.#noteLog(event, nowMs)
    if (event.type === 'started') verdicts?.settled(job.id)
    if (after.outcome !== null) this.#terminalEvent = event
    else publishLive(bus, job, event)
    if (after.reportedCount > limits.maxOutputs) {
      const error = toJobError('too_many_outputs', `the job reported more than ${limits.maxOutputs} outputs`)
      move({ move: 'stop', stop: { cause: 'failed', error, mayPass: false } })
      return
    }
    outputs.add(after.fresh)
    if (after.progress !== before.progress) committer.progressed()
  }
}
