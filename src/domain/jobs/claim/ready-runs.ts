/**
 * The jobs that lie ready on an engine's own queue, so that it has no pause between two runs. As far as the store knows they still wait:
 * each is claimed when its engine begins it. What would no longer be claimed next is withdrawn.
 */
import type { EngineSlot } from '../../engine/fleet/engine-slot.ts'
import type { EngineOffer } from '../../engine/fleet/lane-offers.ts'
import type { Claim, ClaimRequest, ForeseenJob } from '../job-store.ts'
import type { JobRun, TakeLate } from '../run/job-run.ts'
import type { LeaseKeeper } from './lease-keeper.ts'
import type { WorkerDeps, WorkerOptions } from './worker-options.ts'

/** What such runs need of the worker that they become runs of. */
interface ReadyWorker {
  readonly leases: Pick<LeaseKeeper, 'noteUnanswered'>
  readonly closing: AbortSignal
  claimant(): Pick<ClaimRequest, 'pool' | 'workerId' | 'maxOvertakes'>
  open(
    claim: Claim,
    slot: EngineSlot,
    begin: { readonly leaseUntil: Date; readonly takeLate: TakeLate },
  ): { readonly run: JobRun; readonly occupied: Promise<void> }
  /** The engine has begun the run: from here on it occupies a place. */
  onBegun(occupied: Promise<void>): void
  /** The job is held. */
  onTaken(claim: Claim, run: JobRun): void
  onClaimFailed(error: unknown): void
  /** A claim was answered, whatever the answer. */
  onAnswered(): void
}

export class ReadyRuns {
  readonly #deps: WorkerDeps
  readonly #options: WorkerOptions
  readonly #worker: ReadyWorker
  /** By job. */
  readonly #runs = new Map<string, JobRun>()

  constructor(deps: WorkerDeps, options: WorkerOptions, worker: ReadyWorker) {
    this.#deps = deps
    this.#options = options
    this.#worker = worker
  }

  jobIds(): string[] {
    return [...this.#runs.keys()]
  }

  /** Harmless when the job does not lie ready. */
  withdraw(jobId: string): void {
    this.#runs.get(jobId)?.abandon()
  }

  withdrawAll(isWithdrawn: (engineId: string) => boolean = () => true): void {
    for (const run of this.#runs.values()) if (isWithdrawn(run.claim.engineId)) run.abandon()
  }

  /** Lays as many of the jobs that would be claimed next ready on an engine. */
  async lay(engine: EngineOffer, most: number): Promise<void> {
    const { store, clock, log } = this.#deps
    if (store.foresee === undefined || store.claimForeseen === undefined) return
    const known = this.jobIds()
    const now = clock.now()
    const request = { ...this.#worker.claimant(), now, leaseUntil: now, engine, count: known.length + most, known }
    const foreseen = await store.foresee(request).catch((error: unknown) => {
      log.debug({ err: error }, 'the next jobs could not be foreseen')
      return []
    })
    this.#withdrawOvertaken(engine.engineId, foreseen)
    let room = most
    for (const { claim } of foreseen) {
      if (claim === null) continue
      if (room-- <= 0 || this.#worker.closing.aborted || !mayLieReady(claim)) return
      this.#begin({ ...claim, leaseId: this.#deps.newId() })
    }
  }

  /**
   * Of what lies ready on an engine, what would not be claimed soon, and what a job of a higher priority comes before. Others that the
   * fair share would put before it come right after it: they wait for what lies ready there and no longer.
   */
  #withdrawOvertaken(engineId: string, foreseen: readonly ForeseenJob[]): void {
    const next = new Set<string>()
    let priority = Number.NEGATIVE_INFINITY
    for (const { jobId, claim } of foreseen) {
      if (claim !== null) priority = Math.max(priority, claim.job.priority)
      else if ((this.#runs.get(jobId)?.claim.job.priority ?? 0) >= priority) next.add(jobId)
    }
    for (const [jobId, run] of this.#runs) if (run.claim.engineId === engineId && !next.has(jobId)) run.abandon()
  }

  #begin(foreseen: Claim): void {
    const { engineId, needs, job } = foreseen
    const slot = this.#deps.fleet.layReady(engineId, { jobId: job.id, lane: needs })
    const takeLate: TakeLate = () => {
      clearTimeout(tooLong)
      slot.begin()
      this.#worker.onBegun(occupied)
      return this.#take(foreseen, run)
    }
    const { run, occupied } = this.#worker.open(foreseen, slot, { leaseUntil: this.#deps.clock.now(), takeLate })
    const tooLong = setTimeout(() => run.abandon(), this.#options.readyForMs)
    this.#runs.set(job.id, run)
    void occupied.finally(() => {
      clearTimeout(tooLong)
      if (this.#runs.get(job.id) === run) this.#runs.delete(job.id)
    })
  }

  async #take({ engineId, leaseId, job }: Claim, run: JobRun): Promise<Awaited<ReturnType<TakeLate>>> {
    const { store, clock } = this.#deps
    const { pool, workerId, leaseMs } = this.#options
    const now = clock.now()
    const leaseUntil = new Date(now.getTime() + leaseMs)
    try {
      const request = { pool, workerId, leaseId, leaseUntil, now, engineId, jobId: job.id }
      const claim = (await store.claimForeseen?.(request)) ?? null
      if (claim === null) return null
      this.#runs.delete(job.id)
      this.#worker.onTaken(claim, run)
      return { claim, leaseUntil }
    } catch (error) {
      this.#worker.leases.noteUnanswered([leaseId], leaseUntil)
      this.#worker.onClaimFailed(error)
      return null
    } finally {
      this.#worker.onAnswered()
    }
  }
}

/** Credentials are handed out once, and an earlier attempt may have to be ended on its engine first. */
function mayLieReady({ job, needsExtraData }: NonNullable<ForeseenJob['claim']>): boolean {
  return job.attempt === 1 && !needsExtraData
}
