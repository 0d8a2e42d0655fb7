/**
 * One attempt at one job: feeds the engine, folds what it says, keeps outputs and progress flowing into the store, and ends
 * the job with one fenced write. It can be told to stop for three reasons (cancel, time limit, an output that cannot be
 * kept), and it can be told that its work no longer counts (the lease is lost or given back). An engine that does not react
 * to an interrupt within the grace period is given up: the job ends, and whatever the engine still says is ignored.
 */

import type { EngineEvent } from '../../../../engine/graph/run-event.ts'
import type { Log } from '../../../../lib/log.ts'
import { MAX_TIMER_MS } from '../../../../lib/sleep.ts'
import { inOneStep } from '../../../../lib/turns.ts'
import { EngineLostError } from '../../engine/engine-lost-error.ts'
import type { EngineRun } from '../../engine/engine-port.ts'
import { CUDA_FAULT, OUT_OF_MEMORY } from '../../engine/fleet/engine-slot.ts'
import { ServiceError } from '../../errors.ts'
import { decideEnd, type RunVerdict, type StopCause, toJobError } from '../end/end-of-run.ts'
import type { JobError, JobLog } from '../job.ts'
import type { Claim, CommitOutcome, Lease, RunChange } from '../job-store.ts'
import { createRunOutputs, type OutputFault, type RunOutputs, toFault } from '../outputs/run-outputs.ts'
import { type ExtraData, joinExtraData } from '../submit/extra-data-keeper.ts'
import { applyEngineEvent, type RunState, startRunState } from './apply-engine-event.ts'
import { type Committer, createCommitter } from './committer.ts'
import { toEngineInputs } from './engine-inputs.ts'
import { readLog } from './log-tail.ts'
import { toProgress } from './progress.ts'
import type { RunDeps, RunEnd, RunPlace } from './run-deps.ts'
import { publishLive, toTerminalEvent } from './run-notices.ts'
import { createRunRecorder } from './run-record.ts'
import { readStoredGraph } from './stored-graph.ts'

export class JobRun {
  readonly claim: Claim
  readonly lease: Lease
  leaseUntil: Date
  /** The newest version that this run itself has written. */
  version: number
  readonly done: Promise<RunEnd>

  readonly #deps: RunDeps
  readonly #place: RunPlace
  readonly #log: Log
  readonly #interrupt = new AbortController()
  readonly #gaveUp = Promise.withResolvers<void>()
  readonly #committer: Committer
  readonly #outputs: RunOutputs
  readonly #recorder = createRunRecorder()
  #state: RunState = startRunState({ graph: new Map(), earlierProgress: null })
  #terminalEvent: EngineEvent | null = null
  #stop: StopCause | null = null
  #isDiscarded = false
  #isFinishing = false
  /** Whether a last write that failed is worth another try. */
  #mayRetry = true
  #isEngineLost = false
  #lossReason = ''
  #isBlameless = false
  #isUntouched = false
  #isPumping = false
  #pumpEnd: Promise<void> = Promise.resolve()
  #isStuck = false
  /** Outputs were given up together with the run, so it cannot count as succeeded. */
  #isIngestCut = false
  #timers: NodeJS.Timeout[] = []

  constructor(claim: Claim, place: RunPlace, { leaseUntil, ...deps }: RunDeps & { readonly leaseUntil: Date }) {
    this.claim = claim
    this.lease = { jobId: claim.job.id, leaseId: claim.leaseId }
    this.leaseUntil = leaseUntil
    this.version = claim.job.version
    this.#deps = deps
    this.#place = place
    this.#log = deps.log.child({ jobId: claim.job.id, attempt: claim.job.attempt, engine: claim.engineId })
    this.#committer = createCommitter({
      pace: deps.pace,
      log: this.#log,
      send: (change) => this.#commit(change),
      readState: () => ({ progress: toProgress(this.#state.progress), outputsReused: this.#state.outputsReused }),
      onOutcome: (outcome) => this.#heed(outcome),
      mayRetry: () => this.#mayRetry && this.leaseUntil > deps.clock.now(),
    })
    this.#outputs = createRunOutputs(deps, {
      job: claim.job,
      earlier: claim.earlierOutputs,
      committer: this.#committer,
      onFault: (cause, fault) => this.#failOutput(cause, fault),
    })
    deps.verdicts?.asked(claim.job.id)
    this.done = this.#run()
  }

  /** Somebody canceled the job. Harmless once the run is at its end: what it reached counts. */
  cancel(): void {
    this.#interruptFor({ cause: 'cancel' })
  }

  /** The lease is lost: nothing of this attempt counts any more. */
  lose(): void {
    if (this.#discard()) this.#deps.observer.leaseLost({ jobId: this.lease.jobId })
  }

  /** The lease is given back: the same, on purpose. */
  abandon(): void {
    this.#discard()
  }

  async #run(): Promise<RunEnd> {
    try {
      const verdict = this.#refuse() ?? (await this.#prepare()) ?? (await this.#execute())
      if (verdict !== null) await this.#carryOut(verdict)
      return this.#toEnd(this.#endWord(verdict))
    } catch (error) {
      // A defect of ours, or a store that is gone: the lease runs out by itself and the job gets its next attempt.
      this.#log.error({ err: error }, 'a run broke off')
      this.#discard()
      return { ...this.#toEnd('discarded'), isShortOfRoom: true }
    } finally {
      this.#deps.verdicts?.settled(this.lease.jobId)
      this.#outputs.cut('the run is over')
      this.#committer.stop()
      for (const timer of this.#timers) clearTimeout(timer)
    }
  }

  /** The verdict over a job whose account may not run anything any more, or null. Nobody pays for it: it never ran. */
  #refuse(): RunVerdict | null {
    try {
      this.#deps.mustBeActive?.(this.claim.job.accountId)
      return null
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      return this.#fail(toJobError(error.refusal, error.message))
    }
  }

  /** The verdict over a job that must not run at all, or null when it may. */
  async #prepare(): Promise<RunVerdict | null> {
    const { claim } = this
    try {
      const graph = await readStoredGraph(claim.workflow, this.#deps.turns)
      if (this.#isDiscarded) return null
      this.#state = startRunState({ graph, earlierProgress: claim.job.progress })
      const credentials = claim.needsExtraData ? this.#deps.extraData.take(claim.job.id, claim.sealedExtraData) : null
      if (claim.needsExtraData && credentials === null) {
        return this.#fail(toJobError('credentials_lost', CREDENTIALS_LOST))
      }
      this.#startEngine(this.#toEngineRun(graph, joinExtraData(claim.notes, credentials)))
      return null
    } catch (error) {
      this.#log.error({ err: error }, 'a recorded job could not be prepared')
      return this.#fail(toJobError('internal_error', 'the recorded workflow could not be read'))
    }
  }

  #startEngine(run: EngineRun): void {
    const maxRunMs = this.#deps.limits.maxRunMs(run.accountId)
    if (maxRunMs !== null) this.#after(maxRunMs, () => this.#interruptFor({ cause: 'timeout', limitMs: maxRunMs }))
    this.#isPumping = true
    this.#pumpEnd = this.#pump(run)
  }

  /** Waits for the engine's last word, or until it is given up. null: this attempt no longer counts. */
  async #execute(): Promise<RunVerdict | null> {
    await Promise.race([this.#pumpEnd, this.#gaveUp.promise])
    if (this.#isDiscarded) return null
    if (this.#state.outcome?.kind === 'interrupted' && this.#stop === null) await this.#deps.checkLease(this.lease)
    if (this.#isEngineLost) this.#outputs.cut('the engine is gone')
    this.#after(this.#deps.limits.maxIngestMs, () => this.#outputs.cut('storing outputs took too long'))
    await this.#outputs.allStored()
    if (this.#isDiscarded) return null
    this.#isFinishing = true
    return decideEnd({
      outcome: this.#isIngestCut ? { kind: 'interrupted' } : this.#state.outcome,
      stop: this.#stop,
      lossReason: this.#isEngineLost ? this.#lossReason : null,
      isBlameless: this.#isBlameless,
      isUntouched: this.#isUntouched,
      deservesSecondChance: this.#deservesSecondChance(),
      attempt: this.claim.job.attempt,
      maxAttempts: this.#deps.limits.maxAttempts,
    })
  }

  /** A failure that may have been the engine's and not the job's: once per job, where there is hope that it goes better. */
  #deservesSecondChance(): boolean {
    const code = this.#failureCode()
    const { slot, hasOther } = this.#place
    const hasHope = (code === OUT_OF_MEMORY && slot.canFree) || (code === CUDA_FAULT && hasOther())
    return hasHope && !this.#deps.secondChances.wasGiven(this.lease.jobId)
  }

  #failureCode(): string | null {
    return this.#state.outcome?.kind === 'failed' ? this.#state.outcome.error.code : null
  }

  /** Never rejects: an iterator that throws means that the engine is gone. */
  async #pump(run: EngineRun): Promise<void> {
    try {
      const events = this.#place.slot.engine.run(run, { signal: this.#interrupt.signal })[Symbol.asyncIterator]()
      while (true) {
        const step = await events.next()
        if (this.#isDeaf()) return void events.return?.().catch(() => {})
        if (step.done) break
        // Events may come in thousands without a break, and whoever else is served here must not wait for all of them.
        await this.#deps.turns.run(inOneStep(() => this.#take(step.value)))
        if (this.#isDeaf()) return void events.return?.().catch(() => {})
        if (this.#state.outcome !== null) return void events.return?.().catch(() => {})
        await this.#outputs.hasRoom()
      }
      throw new Error('the engine ended the run without an outcome')
    } catch (error) {
      if (this.#isDeaf()) return
      this.#loseEngine(error)
      this.#log.warn({ err: error }, 'the engine broke off')
    } finally {
      this.#isPumping = false
    }
  }

  /** Given up or discarded: what the engine says is no longer heard. */
  #isDeaf(): boolean {
    return this.#isDiscarded || this.#isStuck
  }

  #take(event: EngineEvent): void {
    const before = this.#state
    const after = applyEngineEvent(before, event)
    this.#state = after
    this.#recorder.take(event, this.#deps.clock.now().getTime())
    if (event.type === 'started') this.#deps.verdicts?.settled(this.lease.jobId)
    if (after.outcome !== null) this.#terminalEvent = event
    else publishLive(this.#deps.bus, this.claim.job, event)
    if (after.reportedCount > this.#deps.limits.maxOutputs) {
      const message = `the job reported more than ${this.#deps.limits.maxOutputs} outputs`
      this.#interruptFor({ cause: 'failed', error: toJobError('too_many_outputs', message), mayPass: false })
      return
    }
    this.#outputs.add(after.fresh)
    if (after.progress !== before.progress) this.#committer.progressed()
  }

  /** Told to the slot at once: it must not be offered again before the job is back in the queue. */
  #loseEngine(cause: unknown): void {
    this.#isEngineLost = true
    this.#lossReason = cause instanceof EngineLostError ? cause.message : 'the engine broke off'
    if (cause instanceof EngineLostError && cause.isUnfit) this.#isStuck = true
    this.#isUntouched = cause instanceof EngineLostError && cause.isUntouched
    this.#isBlameless = cause instanceof EngineLostError && cause.isBlameless
    // A thread that another run took down has been replaced: there is nothing to wait for.
    if (!this.#isBlameless) this.#place.slot.lose(this.#lossReason)
  }

  #failOutput(cause: unknown, { error, mayPass, loss }: OutputFault): void {
    if (this.#isDiscarded || this.#isEngineLost) return
    if (this.#stop !== null && this.#outputs.isCut) {
      this.#isIngestCut = true
      return
    }
    this.#log.error({ err: cause }, 'an output could not be kept')
    if (loss !== null) this.#loseEngine(loss)
    this.#interruptFor({ cause: 'failed', error, mayPass })
  }

  #interruptFor(stop: StopCause): void {
    if (this.#isDiscarded || this.#isFinishing) return
    // An output that cannot be kept is a stronger reason than a cancel or a limit: the job cannot succeed any more.
    if (this.#stop !== null && (stop.cause !== 'failed' || this.#stop.cause === 'failed')) return
    this.#stop = stop
    this.#startLadder()
  }

  /** True the first time. */
  #discard(): boolean {
    this.#mayRetry = false
    if (this.#isDiscarded || this.#isFinishing) return false
    this.#isDiscarded = true
    this.#committer.stop()
    this.#outputs.cut('the run no longer counts')
    this.#startLadder()
    return true
  }

  #startLadder(): void {
    if (this.#interrupt.signal.aborted) return
    this.#interrupt.abort()
    this.#after(this.#deps.limits.cancelGraceMs, () => {
      this.#isStuck ||= this.#isPumping
      this.#outputs.cut('the run was stopped')
      this.#gaveUp.resolve()
    })
  }

  async #carryOut(verdict: RunVerdict): Promise<void> {
    if (verdict.verdict === 'finish') return this.#finish(verdict)
    this.#committer.stop()
    if (this.#deservesSecondChance()) this.#deps.secondChances.give(this.lease.jobId)
    if (verdict.verdict === 'return') return this.#deps.giveBack(this.lease)
    this.#deps.observer.attemptLost({ jobId: this.lease.jobId, attempt: this.claim.job.attempt })
    await this.#deps.surrender(this.lease)
  }

  async #finish({ status, from, error }: Extract<RunVerdict, { verdict: 'finish' }>): Promise<void> {
    this.#isFinishing = true
    if (await this.#withdraw()) return
    const { clock, bus, observer, extraData } = this.#deps
    const { id: jobId, accountId, startedAt } = this.claim.job
    const at = clock.now()
    const record = this.#recorder.finish(at.getTime())
    const outcome = await this.#committer.finish({ status, from, at, error, record }, this.#toLog(at))
    if (outcome.outcome === 'lost') {
      this.#isDiscarded = true
      observer.leaseLost({ jobId })
      return
    }
    this.version = outcome.version
    extraData.forget(jobId)
    this.#deps.secondChances.forget(jobId)
    if (outcome.job !== undefined) this.#deps.onStored?.(outcome.job)
    bus.publishChanged({ jobId, accountId, version: outcome.version, move: 'ended' })
    bus.publishLive({ jobId, accountId, event: toTerminalEvent(status, error, this.#terminalEvent) })
    bus.publishWork()
    const executionMs = startedAt === null ? null : at.getTime() - startedAt.getTime()
    observer.finished({ jobId, accountId, status, code: error?.code ?? null, executionMs })
  }

  /** True: the engine refused the graph while its submit still waits for an answer, and that is where the refusal goes. */
  async #withdraw(): Promise<boolean> {
    const { verdicts, store, clock, extraData, bus } = this.#deps
    const { id: jobId, accountId } = this.claim.job
    const refusal = this.#terminalEvent?.type === 'failed' ? this.#terminalEvent.failure.refusal : undefined
    if (refusal === undefined || verdicts?.hold(jobId) !== true) return false
    if (!(await store.withdraw(this.lease, clock.now()))) return false
    this.#committer.stop()
    this.version++
    extraData.forget(jobId)
    bus.publishChanged({ jobId, accountId, version: this.version, move: 'ended' })
    bus.publishWork()
    verdicts.refused(jobId, refusal)
    return true
  }

  #commit(change: RunChange): Promise<CommitOutcome> {
    return this.#deps.store.commit(this.lease, change)
  }

  /** What a commit on the way told about the job. */
  #heed(outcome: CommitOutcome): void {
    if (outcome.outcome === 'lost') {
      this.lose()
      return
    }
    const { id: jobId, accountId } = this.claim.job
    this.version = outcome.version
    this.#deps.bus.publishChanged({ jobId, accountId, version: outcome.version })
    if (outcome.status === 'canceling') this.cancel()
  }

  #fail(error: JobError): RunVerdict {
    return decideEnd({
      outcome: { kind: 'failed', error },
      stop: null,
      lossReason: null,
      isBlameless: false,
      isUntouched: false,
      deservesSecondChance: false,
      attempt: 0,
      maxAttempts: 0,
    })
  }

  #toLog(capturedAt: Date): JobLog | null {
    const { text, truncated } = readLog(this.#state.log)
    return text === '' && !truncated ? null : { text, truncated, capturedAt, complete: true }
  }

  #toEngineRun(graph: EngineRun['graph'], extraData: ExtraData | null): EngineRun {
    const { store, blobs } = this.#deps
    const { job, inputs } = this.claim
    return {
      jobId: job.id,
      accountId: job.accountId,
      attempt: job.attempt,
      graph,
      graphText: this.claim.workflow,
      inputs: toEngineInputs(inputs, blobs),
      extraData,
      reserveOutputNumbers: (folder, prefix, count) =>
        store.reserveOutputNumbers(job.accountId, folder, prefix, count).catch((error) => {
          // To the engine this is a node that failed; the reason is ours.
          const fault = toFault(error)
          if (fault.mayPass) this.#failOutput(error, fault)
          throw error
        }),
    }
  }

  #after(ms: number, act: () => void): void {
    this.#timers.push(setTimeout(act, Math.min(ms, MAX_TIMER_MS)))
  }

  #toEnd(end: RunEnd['end']): RunEnd {
    return {
      end,
      isShortOfRoom: this.#stop?.cause === 'failed' && this.#stop.mayPass && !this.#isEngineLost,
      isStuck: this.#isStuck,
      failureCode: this.#failureCode(),
    }
  }

  #endWord(verdict: RunVerdict | null): RunEnd['end'] {
    if (this.#isDiscarded || verdict === null) return 'discarded'
    return verdict.verdict === 'finish' ? 'finished' : 'requeued'
  }
}

const CREDENTIALS_LOST =
  'the credentials of this job were kept in memory only and did not survive a restart; submit the job again'
