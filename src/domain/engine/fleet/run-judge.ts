/**
 * Whose fault a failed run was: that of its job, or of the engine that ran it. A fault of a machine (a full disk, a missing library)
 * rests its engine at once, and the job runs elsewhere; whatever else fails is the job's own, unless the engine fails most of its runs,
 * or is on trial after a rest: then another engine is asked for a second opinion, and only where the same job succeeds is the first one
 * rested. A job that fails alike elsewhere acquits the engines before. No engine is rested that no other could stand in for, and one job
 * rests one engine: those it fails on later wait for the proof, since processes do not see how each other's runs end.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'

/** Codes of failures that say something about the engine and not only about the job. */
export const OUT_OF_MEMORY = 'out_of_memory'
/** Its process cannot use the graphics card any more. */
export const CUDA_FAULT = 'cuda_fault'
/** Its disk, its libraries or its driver failed. */
export const MACHINE_FAULT = 'machine_fault'
/** Failures that may be either's. */
const ORDINARY_CODES: ReadonlySet<string> = new Set(['node_execution_error', 'missing_weights'])

/** All that a run said when it failed. */
export interface RunFailure {
  readonly code: string
  readonly message: string
  readonly nodeId: string | null
  readonly classType: string | null
  readonly traceback: string | null
}

/** A run that an engine did. */
interface JudgedRun {
  readonly engineId: string
  readonly jobId: string
  readonly lane: string
}

export interface Judgement {
  /** The job runs once more, without having spent an attempt. */
  readonly isAgain: boolean
  /** What its owner is told if this was its end. */
  readonly told: RunFailure
  /** The engine is not trusted with the next job as before. */
  readonly isDoubted: boolean
}

interface Accusation {
  readonly engineId: string
  readonly failure: RunFailure
  readonly wasOnTrial: boolean
  /** The engine got its rest for it. */
  readonly isRested: boolean
}

/** What happened to the job of a run before. */
interface BeforeRun {
  readonly before: readonly Accusation[]
  readonly losses: number
  readonly engineId: string
}

/** What the judge may do with the engines of a fleet. */
interface Bench {
  /** Whether an engine that is none of these is ready and can run jobs of the lane. */
  hasOther(except: ReadonlySet<string>, lane: string): boolean
  /** The same without those that broke their latest run, or are on trial: one that did its part last can stand in. */
  hasTrusted(except: ReadonlySet<string>, lane: string): boolean
  /** The same, with those that rest: they are tried again. */
  willHaveOther(except: ReadonlySet<string>, lane: string): boolean
  isOnTrial(engineId: string): boolean
  isResting(engineId: string): boolean
  /** The same, and this judge said so. */
  restsByVerdict(engineId: string): boolean
  /** `jobId`: of the run that it is rested for. */
  rest(engineId: string, reason: string, jobId: string): void
  /** It gets no work for a moment, and others come first. */
  pause(engineId: string, reason: string): void
  /** The same while another engine is asked for a second opinion on this job. */
  doubt(engineId: string, reason: string, jobId: string): void
  /** Ends a rest or a doubt that this job brought about. */
  acquit(engineId: string, jobId: string): void
  /** The rest that this job brought about was right. */
  confirm(engineId: string, jobId: string): void
  /** Nobody is left that did its part last: those that rest on the word of one job may be sound, and are tried now. */
  tryUnproved(): void
  /** Nobody will say whether it was right: the engine is tried now. */
  shorten(engineId: string, jobId: string): void
}

/** A card that a job broke must not be followed by all others. */
const MAX_CUDA_MOVES = 1
/** Of one job, for faults on engines that were trusted: as many as may fall ill together. */
const MAX_MACHINE_MOVES = 4
/** Of one job that comes back to an engine while all others rest: one of them may do so for another job's fault, which shows soon. */
const MAX_WAITS = 8
/** Of one job whose second opinion no other engine is free to give: about half a minute, with the pauses between. */
const MAX_DOUBTS = 8
/** Of one job, all counted. Trials are rare, and each engine's next one is twice as far away. */
const MAX_MOVES = 20
/** So many of an engine's latest runs failed: another one is asked. */
const LATEST_RUNS = 8
const MANY_FAILURES = 5
/** After a job failed alike everywhere, for so long no fault of its lane rests an engine before another one proved it. */
const SUSPECT_MS = 600_000
/** The same after a job failed on one engine and then on the next. Less than twenty moves take: both may be ill, and no proof may come. */
const MOVED_SUSPECT_MS = 40_000
const MAX_KEPT = 1000
const MAX_REASON = 200

export class RunJudge {
  readonly #bench: Bench
  readonly #clock: Clock
  /** By job. */
  readonly #accusations = new BoundedMap<string, readonly Accusation[]>(MAX_KEPT)
  /** By engine, whether its latest runs succeeded. */
  readonly #records = new Map<string, readonly boolean[]>()
  /** Lanes whose jobs failed alike everywhere, each with the time until which that counts. */
  readonly #suspects = new BoundedMap<string, number>(MAX_KEPT)

  constructor(bench: Bench, clock: Clock) {
    this.#bench = bench
    this.#clock = clock
  }

  /** `losses`: how often the job was moved before, by whichever process. */
  judge(failure: RunFailure, run: JudgedRun, losses: number): Judgement {
    const { engineId, jobId } = run
    const isMachine = failure.code === MACHINE_FAULT || failure.code === CUDA_FAULT
    if (!isMachine && !ORDINARY_CODES.has(failure.code)) return { isAgain: false, told: failure, isDoubted: false }
    this.#note(engineId, false)
    const before = this.#accusations.get(jobId) ?? []
    const wasOnTrial = this.#bench.isOnTrial(engineId)
    const isAgain = losses < MAX_MOVES && this.#deservesAnother(failure.code, run, losses)
    const isRested = failure.code === MACHINE_FAULT && this.#restOrPause(failure, run, losses)
    const elsewhere = before.filter((each) => each.engineId !== engineId)
    const alike = elsewhere.filter((each) => each.failure.code === failure.code)
    if (isAgain && !isMachine) this.#bench.doubt(engineId, toReason(failure), jobId)
    if (isAgain) {
      // Only the first may be told, and a traceback is long.
      const kept = before.length === 0 ? failure : { ...failure, traceback: null }
      this.#accusations.set(jobId, [...before, { engineId, failure: kept, wasOnTrial, isRested }])
    } else {
      this.#accusations.delete(jobId)
      if (alike.length > 0) this.#acquit(failure.code, run, alike)
      // Nobody was free to say whose fault it was: the next jobs are not kept waiting for that.
      else if (before.length > 0 && !isMachine) this.#records.delete(engineId)
    }
    return { isAgain, told: isMachine ? tell(failure, elsewhere) : failure, isDoubted: isMachine || isAgain }
  }

  /** What failed of this job elsewhere was the fault of the engines there. */
  succeeded(run: JudgedRun): void {
    this.#note(run.engineId, true)
    const before = this.#accusations.get(run.jobId)
    if (before === undefined) return
    this.#accusations.delete(run.jobId)
    this.#suspects.delete(run.lane)
    const proved = new Map(
      before.filter(({ engineId }) => engineId !== run.engineId).map((each) => [each.engineId, each]),
    )
    for (const { engineId, failure } of proved.values()) {
      const isRested = before.some((each) => each.engineId === engineId && each.isRested)
      // One illness is one rest, however many jobs tell of it.
      const isKnown = this.#bench.isResting(engineId) || this.#bench.isOnTrial(engineId)
      if (!isRested && (isKnown || !this.#bench.hasOther(new Set([engineId]), run.lane))) continue
      if (!isRested) this.#rest(engineId, `what failed on it succeeded elsewhere; ${toReason(failure)}`, run.jobId)
      this.#bench.confirm(engineId, run.jobId)
    }
  }

  /** The job ended while it waited, so no run of it will prove anything. False: it accused nobody. */
  forget(jobId: string): boolean {
    for (const { engineId } of this.#accusations.get(jobId) ?? []) this.#bench.shorten(engineId, jobId)
    return this.#accusations.delete(jobId)
  }

  #deservesAnother(code: string, run: JudgedRun, losses: number): boolean {
    const { engineId, jobId, lane } = run
    const before = this.#accusations.get(jobId) ?? []
    const tried = new Set([...before.map((each) => each.engineId), engineId])
    const alike = this.#countAlike(code, { before, losses, engineId })
    if (code === MACHINE_FAULT) {
      if (this.#bench.hasOther(tried, lane)) return alike < MAX_MACHINE_MOVES
      // It comes back to those that it was on until one that rests is tried again.
      if (this.#bench.willHaveOther(tried, lane)) return before.length + 1 - tried.size < MAX_WAITS
      // Alone, it may still have been the matter of a moment.
      return losses === 0
    }
    if (!this.#bench.hasOther(tried, lane)) return false
    if (code === CUDA_FAULT) return alike < MAX_CUDA_MOVES
    // One that comes back because no other engine was free has heard no second opinion yet.
    const isUnheard = tried.size === 1 && losses === before.length && losses < MAX_DOUBTS
    // A run may end on an engine after that was rested for others.
    const isMistrusted = this.#bench.isOnTrial(engineId) || this.#bench.restsByVerdict(engineId)
    return isMistrusted || (isUnheard && this.#failsMuch(engineId))
  }

  /** What happened on trial does not count, nor what happened on the same engine; what another process saw does. */
  #countAlike(code: string, { before, losses, engineId }: BeforeRun): number {
    const own = before.filter((each) => each.failure.code === code && !each.wasOnTrial && each.engineId !== engineId)
    return new Set(own.map(({ engineId }) => engineId)).size + Math.max(0, losses - before.length)
  }

  #restOrPause({ message }: RunFailure, { engineId, jobId, lane }: JudgedRun, losses: number): boolean {
    const before = this.#accusations.get(jobId) ?? []
    // One that was here before came back because no other engine was free: it says no more about its lane than it did then.
    const isMoved = losses + before.length > 0 && !before.some((each) => each.engineId === engineId)
    if (isMoved) this.#suspect(lane, MOVED_SUSPECT_MS)
    const reason = `a run on it failed: ${firstLine(message)}`
    const hasTrusted = this.#bench.hasTrusted(new Set([engineId]), lane)
    const isRested = hasTrusted && !this.#isSuspect(lane)
    if (isRested) this.#rest(engineId, reason, jobId)
    else this.#bench.pause(engineId, reason)
    if (!hasTrusted) this.#bench.tryUnproved()
    return isRested
  }

  #rest(engineId: string, reason: string, jobId: string): void {
    this.#records.delete(engineId)
    this.#bench.rest(engineId, firstLine(reason), jobId)
  }

  #acquit(code: string, { engineId: last, jobId, lane }: JudgedRun, alike: readonly Accusation[]): void {
    if (code === MACHINE_FAULT) this.#suspect(lane, SUSPECT_MS)
    for (const engineId of [last, ...alike.map((each) => each.engineId)]) {
      this.#records.delete(engineId)
      if (code !== CUDA_FAULT) this.#bench.acquit(engineId, jobId)
    }
  }

  #suspect(lane: string, ms: number): void {
    this.#suspects.set(lane, Math.max(this.#suspects.get(lane) ?? 0, this.#clock.now().getTime() + ms))
  }

  #isSuspect(lane: string): boolean {
    return (this.#suspects.get(lane) ?? 0) > this.#clock.now().getTime()
  }

  #failsMuch(engineId: string): boolean {
    return (this.#records.get(engineId) ?? []).filter((isGood) => !isGood).length >= MANY_FAILURES
  }

  #note(engineId: string, isGood: boolean): void {
    this.#records.set(engineId, [...(this.#records.get(engineId) ?? []), isGood].slice(-LATEST_RUNS))
  }
}

/** What the owner of a job reads that ends on a machine that is ill. It is free unless the job failed alike elsewhere. */
function tell(failure: RunFailure, elsewhere: readonly Accusation[]): RunFailure {
  // The other one was in doubt, so its word is told without being held against the job.
  const said = elsewhere.find((each) => ORDINARY_CODES.has(each.failure.code))
  if (said !== undefined) return { ...said.failure, code: MACHINE_FAULT }
  const isOwn = elsewhere.some((each) => each.failure.code === failure.code)
  return isOwn && failure.code === MACHINE_FAULT ? { ...failure, code: 'node_execution_error' } : failure
}

function toReason({ code, message }: RunFailure): string {
  return firstLine(`${code}: ${message}`)
}

function firstLine(text: string): string {
  return (text.trim().split('\n', 1)[0] ?? '').slice(0, MAX_REASON).toWellFormed()
}
