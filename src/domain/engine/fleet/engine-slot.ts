/**
 * A unit of an engine's capacity while one run occupies it. The run reports how it went; the slot does what that calls for (a
 * pause, a quarantine, freed memory, a fresh process) and stays taken until that is done: the next run finds a sound engine. After
 * a success it is given on as soon as the engine has computed everything.
 */
import type { Log } from '../../../../lib/log.ts'
import { settlesWithin } from '../../../../lib/waiting/sleep.ts'
import type { Engine } from '../engine-port.ts'
import type { FleetMember } from './fleet-member.ts'
import { CUDA_FAULT, type Judgement, OUT_OF_MEMORY, type RunFailure, type RunJudge } from './run-judge.ts'

interface RunReport {
  /** It ignored an interrupt and may still be running, or it starts nothing. */
  readonly isStuck: boolean
  /** The code of the failure that the engine reported; null when there was none. */
  readonly failureCode: string | null
  readonly hasSucceeded: boolean
}

export interface EngineSlot {
  readonly engineId: string
  readonly engine: Pick<Engine, 'run' | 'catalog'>
  /** It is a part of this process. */
  readonly isResident: boolean
  /** Its runs go on without this process. */
  readonly keepsRuns: boolean
  /** What the run loads. */
  readonly weights: readonly string[]
  /** Whether another engine could stand in for it. */
  hasOther(): boolean
  /** It can free memory after a run had too little. */
  readonly canFree: boolean
  /** The engine broke off, or cannot be reached: it gets no work for a while. */
  lose(reason: string): void
  /**
   * The run failed on the engine. Says whether its job runs once more, and does with the engine what that calls for, before the job is
   * back in the queue. `losses`: how often the job was moved before.
   */
  fail(failure: RunFailure, losses: number): Judgement
  /** The engine is done with the run, however it went: the slot is about to be free. */
  leave(): void
  /** The engine has computed everything: the next run may begin there, while what this one made is read from it. */
  vacate(): void
  /** Never rejects, and settles within a bounded time. A second call does nothing. */
  end(report: RunReport): Promise<void>
}

interface SlotDeps {
  readonly lane: string
  readonly jobId: string
  readonly judge: Pick<RunJudge, 'judge' | 'succeeded'>
  /** Whether another engine could stand in for this one. */
  hasOther(): boolean
  readonly log: Log
  /** The engine has computed everything of a good run. */
  onComputed(): void
  onFreed(): void
}

const REPAIR_WITHIN_MS = 30_000

export function createSlot(
  member: FleetMember,
  weights: readonly string[],
  { lane, jobId, judge, hasOther, log, onComputed, onFreed }: SlotDeps,
): EngineSlot {
  const { id, engine } = member
  const judged = { engineId: id, jobId, lane }
  let isOver = false
  let isVacated = false
  let lossReason: string | null = null
  let isDoubted = false
  let isLeaving = false
  const { incarnation } = member
  member.begin(weights)

  return {
    engineId: id,
    engine,
    isResident: engine.isResident === true,
    keepsRuns: engine.keepsRuns === true,
    weights,
    hasOther,
    canFree: engine.free !== undefined,
    lose(reason) {
      lossReason = reason
      member.lose(reason, incarnation)
    },
    fail(failure, losses) {
      if (engine.isResident) return { isAgain: false, told: failure, isDoubted: false }
      const judgement = judge.judge(failure, judged, losses)
      isDoubted = judgement.isDoubted
      return judgement
    },
    leave() {
      if (isOver || isLeaving || isVacated) return
      isLeaving = true
      member.leave()
    },
    vacate() {
      if (isOver || isVacated || lossReason !== null) return
      isVacated = true
      if (isLeaving) member.stay()
      isLeaving = false
      member.vacate()
      onComputed()
      onFreed()
    },
    async end(report) {
      if (isOver) return
      isOver = true
      if (report.failureCode !== null) member.countFailure()
      const repairing = repair(member, report, { hasOther, log, lossReason })
      if (repairing !== null) {
        const repaired = repairing.catch((error) =>
          log.error({ err: error, engine: id }, 'an engine could not be repaired'),
        )
        await settlesWithin(repaired, REPAIR_WITHIN_MS)
      }
      if (isLeaving) member.stay()
      const hasSucceeded = report.hasSucceeded && lossReason === null
      if (hasSucceeded) judge.succeeded(judged)
      if (hasSucceeded && !isVacated) onComputed()
      member.end({ isGood: lossReason === null && !report.isStuck && !isDoubted, isVacated, hasSucceeded })
      onFreed()
    },
  }
}

interface RepairDeps extends Pick<SlotDeps, 'hasOther' | 'log'> {
  readonly lossReason: string | null
}

/** Does what the engine needs before its next run; null in the ordinary case. */
function repair(member: FleetMember, report: RunReport, deps: RepairDeps): Promise<void> | null {
  const { isStuck, failureCode } = report
  if (member.engine.isResident) return null
  if (isStuck) return replace(member, deps.lossReason ?? 'it ignored an interrupt', deps)
  if (failureCode === CUDA_FAULT) return restCard(member, deps)
  return failureCode === OUT_OF_MEMORY ? free(member) : null
}

async function replace(member: FleetMember, reason: string, { log }: RepairDeps): Promise<void> {
  log.error({ engine: member.id, reason }, 'an engine is taken out of service')
  if (member.isSupervised) await member.recycle(reason)
  else member.quarantine(reason)
}

/** One that nobody can stand in for is only paused: a job that breaks cards must not stop everybody's. */
async function restCard(member: FleetMember, deps: RepairDeps): Promise<void> {
  const reason = 'its graphics card reported a fault'
  if (member.isSupervised || deps.hasOther()) await replace(member, reason, deps)
  else member.pause(reason)
}

async function free({ loaded, engine }: FleetMember): Promise<void> {
  loaded.clear()
  await engine.free?.({ signal: AbortSignal.timeout(REPAIR_WITHIN_MS) })
}
