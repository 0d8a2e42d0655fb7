/**
 * One attempt at one job: starts the engine, has its outputs and progress written to the store, and ends the job with one fenced
 * write. The states of a run and its moves are in run-moves.ts; this file reports what happens as moves and carries out their
 * effects. How an attempt ends is decided in run-moves.ts.
 */
import type { Graph } from '../../../../engine/graph/graph.ts'
import type { Log } from '../../../../lib/log.ts'
import { MAX_TIMER_MS } from '../../../../lib/waiting/sleep.ts'
import type { EngineRun } from '../../engine/engine-port.ts'
import { MACHINE_FAULT, OUT_OF_MEMORY } from '../../engine/fleet/run-judge.ts'
import { isStoreAway, outlastOutage } from '../../errors.ts'
import type { Claim, CommitOutcome, Lease, ReturnedLease } from '../job-store.ts'
import type { OutputCheck, OutputVerdict } from '../outputs/check-outputs.ts'
import { createRunOutputs, type OutputFault, type RunOutputs } from '../outputs/run-outputs.ts'
import { toResultKey } from '../reuse/result-key.ts'
import type { RunOutcome } from './apply-engine-event.ts'
import { Committer } from './committer.ts'
import { type GpuUse, sumClasses } from './gpu-use.ts'
import type { AssignedEngine, RunDeps, RunEnd } from './run-deps.ts'
import {
  decideEnd,
  explainMissing,
  isDeaf,
  moveRun,
  type RunEffect,
  type RunFacts,
  type RunMove,
  type RunState,
  type RunVerdict,
  START,
  toEngineLoss,
  toFailure,
} from './run-moves.ts'
import { type EndingRun, EngineListener, prepareRun, writeEnd } from './run-steps.ts'
import type { RunTrace } from './run-trace.ts'

const COLLECT_MS = 5_000

interface JobRunOptions extends RunDeps {
  readonly leaseUntil: Date
  readonly trace: RunTrace | null
}

export class JobRun {
  readonly claim: Claim
  readonly lease: Lease
  leaseUntil: Date
  /** The newest version that this run itself has written. */
  version: number
  readonly done: Promise<RunEnd>

  readonly #deps: RunDeps
  readonly #assigned: AssignedEngine
  readonly #log: Log
  readonly #interrupt = new AbortController()
  /** The engine goes on with the run, for whoever adopts it. */
  readonly #leave = new AbortController()
  readonly #settled = Promise.withResolvers<boolean>()
  #isReturned = false
  readonly #gaveUp = Promise.withResolvers<void>()
  readonly #committer: Committer
  readonly #outputs: RunOutputs
  readonly #listener: EngineListener
  readonly #trace: RunTrace | null
  /** Nothing of what it makes is seen before its end. */
  readonly #isHeld: boolean
  /** What became of the outputs of a held run; null: another process decides that, or nobody has to. */
  #checked: OutputVerdict | null = null
  /** When the engine had done its part; null: its end is that of the job. */
  #endedAt: Date | null = null
  #state: RunState = START
  #engineEnd: Promise<void> = Promise.resolve()
  #graph: Graph | null = null
  #timers: NodeJS.Timeout[] = []
  /** What the engine reported may have been its own fault: the job runs once more. */
  #again: RunFacts['again'] = null
  #isEngineLoss = false

  constructor(claim: Claim, assigned: AssignedEngine, { leaseUntil, trace, ...deps }: JobRunOptions) {
    this.claim = claim
    this.lease = { jobId: claim.job.id, leaseId: claim.leaseId }
    this.leaseUntil = leaseUntil
    this.version = claim.job.version
    const check = deps.outputCheck?.covers(claim.job.metadata) === true ? deps.outputCheck : null
    this.#isHeld = check !== null || claim.holdsOutputs === true
    const storeBlob = check?.storeHeld ?? deps.storeBlob
    this.#deps =
      trace === null && check === null ? deps : { ...deps, storeBlob: trace?.storing(storeBlob) ?? storeBlob }
    this.#trace = trace
    this.#assigned = assigned
    this.#log = deps.log.child({ jobId: claim.job.id, attempt: claim.job.attempt, engine: claim.engineId })
    this.#committer = new Committer({
      pace: deps.pace,
      log: this.#log,
      holdsOutputs: this.#isHeld,
      send: (change) => deps.store.commit(this.lease, change),
      readState: () => this.#listener.readState(),
      onOutcome: (outcome, isDetail) => this.#onCommitted(outcome, isDetail),
      mayRetry: (error) => this.#state.holdsLease && this.#holdsUntil(error) > deps.clock.now().getTime(),
    })
    this.#outputs = createRunOutputs(this.#deps, {
      job: claim.job,
      lease: this.lease,
      earlier: claim.earlierOutputs,
      committer: this.#committer,
      onFault: (cause, fault) => this.#onOutputFault(cause, fault),
    })
    this.#listener = new EngineListener(deps, {
      job: claim.job,
      outputs: this.#outputs,
      committer: this.#committer,
      log: this.#log,
      isHeld: this.#isHeld,
      isDeaf: () => isDeaf(this.#state),
      move: (move) => this.#move(move),
    })
    deps.verdicts?.asked(claim.job.id)
    this.done =
      trace?.follow(this.#run(), this.#listener, (nodeId) => this.#graph?.get(nodeId)?.classType ?? null) ?? this.#run()
  }

  /** The engine computes, nobody has stopped it and it has not come to its end. */
  get isComputing(): boolean {
    return this.#state.phase === 'executing' && this.#state.stop === null
  }

  /** Somebody canceled the job. Harmless once the run is at its end: what it reached counts. */
  cancel(): void {
    this.#move({ move: 'stop', stop: { cause: 'cancel' } })
  }

  /** The lease is lost: nothing of this attempt counts any more. */
  lose(): void {
    this.#move({ move: 'lease_lost' })
  }

  /** The lease is given back on purpose: nothing of this attempt counts either. */
  abandon(): void {
    this.#isReturned = true
    this.#move({ move: 'lease_returned' })
  }

  /** Whether the engine keeps the run for somebody else. One whose end is being written comes to it nevertheless. */
  leave(): boolean {
    if (!this.#assigned.slot.keepsRuns) return false
    this.#move({ move: 'run_left' })
    return true
  }

  /** The lease as it is given back, with what the run took until now. */
  toReturn(): ReturnedLease {
    return { ...this.lease, gpu: this.#gpuUse() }
  }

  #move(move: RunMove): void {
    const { state, effects } = moveRun(this.#state, move)
    this.#state = state
    for (const effect of effects) this.#carryOut(effect)
  }

  #carryOut(effect: RunEffect): void {
    switch (effect.effect) {
      case 'interrupt':
        this.#interrupt.abort()
        this.#after(this.#deps.limits.cancelGraceMs, { move: 'grace_over' })
        break
      case 'let_go':
        ;(this.#assigned.slot.keepsRuns ? this.#leave : this.#interrupt).abort()
        this.#after(this.#deps.limits.cancelGraceMs, { move: 'grace_over' })
        break
      case 'cut_outputs':
        this.#outputs.cut(effect.reason)
        break
      case 'stop_writing':
        this.#committer.stop()
        break
      case 'pause_engine':
        this.#assigned.slot.lose(effect.reason)
        break
      case 'give_up_engine':
        this.#gaveUp.resolve()
        break
      case 'log_output_fault':
        this.#log.error({ err: effect.cause }, 'an output could not be kept')
        break
      case 'observe_lease_lost':
        this.#deps.observer.leaseLost({ jobId: this.lease.jobId })
        break
    }
  }

  async #run(): Promise<RunEnd> {
    try {
      const verdict = (await this.#start()) ?? (await this.#execute())
      if (verdict !== null) await this.#fulfil(verdict)
      return this.#toEnd(verdict)
    } catch (error) {
      // A defect of ours, or a store that is gone: the lease runs out by itself and the job gets its next attempt.
      this.#log.error({ err: error }, 'a run broke off')
      this.#move({ move: 'lease_returned' })
      return { ...this.#toEnd(null), isShortOfRoom: true }
    } finally {
      this.#deps.verdicts?.settled(this.lease.jobId)
      this.#outputs.end()
      this.#committer.stop()
      this.#clearTimers()
      const isOver = this.#isReturned || this.#state.phase !== 'discarded'
      if (isOver) this.#tellUse()
      // As long as its end is not written, whoever adopts it needs what the engine keeps.
      this.#settled.resolve(!this.#assigned.slot.keepsRuns || isOver)
    }
  }

  #tellUse(): void {
    const { job, engineId } = this.claim
    const gpu = this.#gpuUse()
    if (gpu !== null) this.#deps.observer.computed({ accountId: job.accountId, pool: job.pool, engineId, gpu })
  }

  #clearTimers(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers = []
  }

  /** Starts the engine. The verdict over a job that must not run at all, or null when it may. */
  async #start(): Promise<RunVerdict | null> {
    const prepared = await prepareRun(this.claim, {
      ...this.#deps,
      log: this.#log,
      signal: AbortSignal.any([this.#interrupt.signal, this.#leave.signal]),
      onOutputFault: (cause, fault) => this.#onOutputFault(cause, fault),
    })
    if ('error' in prepared) return this.#decide(toFailure(prepared.error))
    if (this.#isDiscarded()) return null
    const run: EngineRun = {
      ...prepared.run,
      settled: this.#settled.promise,
      hasOther: () => this.#assigned.slot.hasOther(),
      onEndedBefore: (tookMs) => this.#noteEarlierEnd(tookMs),
      onComputed: () => {
        this.#committer.expectEnd()
        this.#assigned.onComputed()
      },
    }
    this.#graph = run.graph
    this.#listener.expect(run.graph, run.isAdopted === true)
    const limitMs = this.#deps.limits.maxRunMs(this.claim.job.accountId)
    if (limitMs !== null) this.#after(this.#leftOf(limitMs), { move: 'stop', stop: { cause: 'timeout', limitMs } })
    this.#move({ move: 'engine_started' })
    const options = { signal: this.#interrupt.signal, leave: this.#leave.signal }
    const listen = () => this.#listener.listen(this.#assigned.slot.engine, run, options)
    this.#engineEnd = this.#trace?.engine(listen) ?? listen()
    return null
  }

  /** Of the time that the run may take. What came to its end while nobody followed it is still collected. */
  #leftOf(limitMs: number): number {
    const { job, runId } = this.claim
    if (runId === undefined || job.startedAt === null) return limitMs
    return Math.max(COLLECT_MS, limitMs - (this.#deps.clock.now().getTime() - job.startedAt.getTime()))
  }

  /** Nobody pays for the time in which nobody looked. */
  #noteEarlierEnd(tookMs: number): void {
    const { startedAt } = this.claim.job
    if (startedAt === null || !(tookMs >= 0)) return
    this.#endedAt = new Date(Math.min(startedAt.getTime() + tookMs, this.#deps.clock.now().getTime()))
  }

  /** Waits until the engine has ended or is given up, and its outputs are stored. null: this attempt no longer counts. */
  async #execute(): Promise<RunVerdict | null> {
    await Promise.race([this.#engineEnd, this.#gaveUp.promise])
    this.#assigned.slot.leave()
    if (this.#isDiscarded()) return null
    const { outcome } = this.#listener.fold
    // We did not ask for the interrupt: perhaps a cancel came whose notice was lost. The store knows.
    if (outcome?.kind === 'interrupted' && this.#state.stop === null)
      await outlastOutage(() => this.#deps.checkLease(this.lease), this.#interrupt.signal)
    this.#after(this.#deps.limits.maxIngestMs, { move: 'storing_overdue' })
    await this.#outputs.allStored()
    const { outputs } = this.#state
    const told = this.#judge()
    const judged: RunOutcome | null = outputs === 'incomplete' ? { kind: 'interrupted' } : told
    const verdict = decideEnd({ ...this.#facts(), outcome: judged })
    return this.#decide(await this.#check(this.#explain(verdict)))
  }

  /** The verdict over a held run, after its outputs were checked: until then a cancel and the loss of the lease still count. */
  async #check(verdict: RunVerdict): Promise<RunVerdict> {
    if (!this.#isHeld || verdict.verdict !== 'finish') return verdict
    const { outputCheck: check } = this.#deps
    const isDone = verdict.status === 'succeeded'
    // A run that was told to stop is not asked about, even if it came to its end meanwhile.
    if (!isDone || this.#interrupt.signal.aborted) this.#checked = { verdict: 'withhold' }
    else if (check?.covers(this.claim.job.metadata) === true) this.#checked = await this.#judgeOutputs(check)
    if (this.#checked?.verdict === 'refuse') return toFailure(this.#checked.error)
    const isHandedOut = this.#checked === null || this.#checked.verdict === 'hand_out'
    return isHandedOut || !isDone ? verdict : decideEnd({ ...this.#facts(), outcome: null })
  }

  async #judgeOutputs(check: Pick<OutputCheck, 'judge'>): Promise<OutputVerdict> {
    // The engine has done its part in time, and all that it made is stored. Nobody pays for the time that the hook takes.
    this.#clearTimers()
    this.#assigned.onComputed()
    this.#endedAt ??= this.#deps.clock.now()
    const { signal } = this.#interrupt
    try {
      return await check.judge({
        job: this.claim.job,
        outputs: this.#committer.waiting,
        store: (source, options) => this.#deps.storeBlob(source, { ...options, lease: this.lease }),
        signal,
      })
    } catch (error) {
      if (!signal.aborted) throw error
      return { verdict: 'cancel' }
    }
  }

  #facts(): Omit<RunFacts, 'outcome'> {
    const { stop, loss } = this.#state
    const { maxAttempts } = this.#deps.limits
    return { stop, loss, again: this.#again, attempt: this.claim.job.attempt, maxAttempts }
  }

  #explain(verdict: RunVerdict): RunVerdict {
    const [graph, { findWeights }] = [this.#graph, this.#deps]
    if (verdict.verdict !== 'finish' || verdict.error === null || graph === null || findWeights === undefined)
      return verdict
    return { ...verdict, error: explainMissing(verdict.error, { graph, engineId: this.claim.engineId, findWeights }) }
  }

  #onOutputFault(cause: unknown, { error, mayPass, loss }: OutputFault): void {
    const stop = { cause: 'failed', error, mayPass } as const
    this.#move({ move: 'output_failed', stop, loss: loss === null ? null : toEngineLoss(loss), cause })
  }

  /** Every commit also shows whether the lease still stands and whether a cancel came. */
  #onCommitted(outcome: CommitOutcome, isDetail: boolean): void {
    if (outcome.outcome === 'lost') {
      this.lose()
      return
    }
    const { id: jobId, accountId } = this.claim.job
    this.version = outcome.version
    const { version } = outcome
    this.#deps.bus.publishChanged?.({ jobId, accountId, version, ...(isDetail && { isDetail }) })
    if (outcome.status === 'canceling') this.cancel()
  }

  /** From here on the verdict stands. null: the attempt no longer counts, so there is nothing to decide. */
  #decide(verdict: RunVerdict): RunVerdict | null {
    if (this.#isDiscarded()) return null
    this.#move({ move: 'decided' })
    return verdict
  }

  async #fulfil(verdict: RunVerdict): Promise<void> {
    if (verdict.verdict === 'finish') {
      if ((await writeEnd(verdict, this.#toEndingRun(), this.#deps)) === 'refused') this.#move({ move: 'end_refused' })
      return
    }
    this.#committer.stop()
    const isSpent = verdict.verdict === 'requeue'
    if (isSpent) this.#deps.observer.attemptLost({ jobId: this.lease.jobId, attempt: this.claim.job.attempt })
    await this.#deps.giveBack({ ...this.toReturn(), isSpent, isEngineLoss: this.#isEngineLoss })
  }

  #toEndingRun(): EndingRun {
    return {
      claim: this.claim,
      lease: this.lease,
      version: this.version,
      committer: this.#committer,
      heard: this.#listener,
      isHeld: this.#isHeld,
      checked: this.#checked,
      endedAt: this.#endedAt,
      gpuUse: () => this.#gpuUse(),
      resultKey: () => this.#findResultKey(),
      onVersion: (version) => {
        this.version = version
      },
    }
  }

  /** null: the engine has no server of its own, or none computed anything of the run. */
  #gpuUse(): GpuUse | null {
    const { slot } = this.#assigned
    if (slot.isResident || this.#state.loss?.isUntouched === true) return null
    const nowMs = this.#deps.clock.now().getTime()
    const ms = this.#listener.computedMs(nowMs)
    if (ms === 0) return null
    const spans = this.#listener.recorder.spans()
    const classes = sumClasses({ spans, nowMs, classOf: (nodeId) => this.#graph?.get(nodeId)?.classType ?? null })
    return { ms, classes, weights: slot.weights }
  }

  /**
   * By the engine that has run the job: between submit and claim the service may have been given another one. What it had from its
   * cache may have been made by another graph, and say so.
   */
  #findResultKey(): string | null {
    const { claim } = this
    if (claim.keepsResult !== true || this.#graph === null || this.#listener.fold.hasOldReport) return null
    const facts = { graph: this.#graph, text: claim.workflow, inputs: claim.inputs, notes: claim.notes }
    const checkedBy = this.#deps.outputCheck?.keyOf(claim.job.metadata) ?? null
    const terms = { hasCredentials: claim.needsExtraData, pool: claim.job.pool, checkedBy }
    const made = toResultKey({ ...facts, ...terms }, this.#assigned.slot.engine.catalog())
    return 'key' in made ? made.key : null
  }

  /** The outcome, after it was found out whose fault a failure was. */
  #judge(): RunOutcome | null {
    const { outcome } = this.#listener.fold
    const { stop, loss } = this.#state
    if (stop?.cause === 'failed' && stop.error.code === 'storage_full' && loss === null) this.#waitForRoom()
    if (outcome?.kind !== 'failed' || stop !== null) return outcome
    const [{ error }, { slot }, { engineLosses }] = [outcome, this.#assigned, this.claim]
    if (error.code === OUT_OF_MEMORY) {
      this.#isEngineLoss = slot.canFree && engineLosses === 0
      this.#again = this.#isEngineLoss ? 'spent' : null
      return outcome
    }
    if (slot.isResident && error.code === MACHINE_FAULT) {
      this.#waitForRoom()
      return outcome
    }
    const { isAgain, told } = slot.fail(error, engineLosses)
    this.#again = isAgain ? 'free' : null
    this.#isEngineLoss = isAgain
    return { ...outcome, error: told }
  }

  /** This machine has no room for what the run makes. */
  #waitForRoom(): void {
    this.#again = this.#deps.storageWatch?.full(this.lease.jobId) === true ? 'free' : null
  }

  #holdsUntil(error: unknown): number {
    return this.leaseUntil.getTime() + (isStoreAway(error) ? this.#deps.outageGraceMs : 0)
  }

  #isDiscarded(): boolean {
    return this.#state.phase === 'discarded'
  }

  #after(ms: number, move: RunMove): void {
    this.#timers.push(setTimeout(() => this.#move(move), Math.min(ms, MAX_TIMER_MS)))
  }

  #toEnd(verdict: RunVerdict | null): RunEnd {
    const { stop, loss, engine } = this.#state
    // What a hook thinks of the outputs says nothing about the engine.
    const isDone =
      verdict?.verdict === 'finish' && (verdict.status === 'succeeded' || this.#checked?.verdict === 'refuse')
    return {
      end: verdict === null || this.#isDiscarded() ? 'discarded' : END_OF[verdict.verdict],
      isShortOfRoom: stop?.cause === 'failed' && stop.mayPass && loss === null,
      isStuck: engine === 'stuck',
      failureCode: this.#listener.failureCode,
      hasSucceeded: isDone,
    }
  }
}

const END_OF: Record<RunVerdict['verdict'], RunEnd['end']> = {
  finish: 'finished',
  requeue: 'requeued',
  return: 'requeued',
}
